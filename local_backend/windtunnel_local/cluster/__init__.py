"""A cluster on this machine, as AWS ParallelCluster makes one on AWS: a real Slurm in containers.

Nothing is created on AWS.
"""
