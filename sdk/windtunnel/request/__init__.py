"""Checked keyword arguments become a CreateTrainingJob request and the uploads it needs. Knows no session."""
