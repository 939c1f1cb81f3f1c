"""A model that answers: models, endpoints, and asking them."""
