"""A model that answers: models, endpoints, transform jobs, and asking them."""
