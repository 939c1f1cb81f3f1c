"""Inference: AWS's costs recomputed, what the model says, how right it is, what an endpoint here answers."""
