"""A job's host without a container around it: what the runners share that give it none."""
