"""A CreateTrainingJob request: its checks, its values, and the plan of containers made from it."""
