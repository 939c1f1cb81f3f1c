"""The report of a Slurm job on a cluster of this machine: its bill, and what it would take on real nodes."""
