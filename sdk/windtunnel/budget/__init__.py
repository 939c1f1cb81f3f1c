"""A limit in dollars on what a job may cost."""
