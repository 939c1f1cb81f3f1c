"""A training job's steps, and what they share: records, container followers, queue, warm pools, limits."""
