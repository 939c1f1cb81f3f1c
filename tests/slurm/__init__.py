"""Jobs on a real Slurm cluster of this machine."""
