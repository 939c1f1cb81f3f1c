"""What is sent: keyword arguments, checked, become a CreateTrainingJob request and its uploads. Knows no session."""
