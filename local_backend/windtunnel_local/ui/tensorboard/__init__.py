"""TensorBoard of a job: the folder that it reads, its process, and how long that lives."""
