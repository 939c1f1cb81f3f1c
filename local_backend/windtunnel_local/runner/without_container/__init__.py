"""A job's host without a container: what the runners `process` and `slurm` share."""
