"""A cluster on this machine, like one that AWS ParallelCluster makes on AWS: a real Slurm in containers.

Nothing is created on AWS.
"""
