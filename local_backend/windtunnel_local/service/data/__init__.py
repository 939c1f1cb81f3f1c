"""What goes into a job and what comes out: channels, source, checkpoints, artifacts, caches."""
