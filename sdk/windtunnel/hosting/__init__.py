"""Inference: models, endpoints, transform jobs, and requests to them."""
