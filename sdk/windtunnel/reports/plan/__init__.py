"""Where and how to train a model: plans by cost and by time."""
