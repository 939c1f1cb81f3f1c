"""TensorBoard for a job: the folder of event files that it reads, its process, and when that ends."""
