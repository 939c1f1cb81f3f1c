"""What one step of a job is, counted in a rehearsal or described, and its time on any cluster."""
