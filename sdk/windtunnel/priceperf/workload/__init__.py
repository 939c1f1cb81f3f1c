"""The work of one step of a job, counted in a rehearsal or described, and its time on any cluster."""
