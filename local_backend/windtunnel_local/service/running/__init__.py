"""What the steps of a job share: its record, its containers, its place in the line, and when it ends."""
