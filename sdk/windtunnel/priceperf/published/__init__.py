"""Jobs and tables that AWS published: recomputed, and predicted by the model."""
