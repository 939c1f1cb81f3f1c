"""A CreateTrainingJob request: whether it is accepted, what it asks for, and the containers that it means."""
