"""Inference: AWS's published costs recomputed, the model's figures, its errors, and an endpoint under load."""
