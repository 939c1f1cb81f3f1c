"""Clusters with a real Slurm, in containers."""
