"""What a million inferences cost."""
