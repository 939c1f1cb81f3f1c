"""A job from its acceptance to its end: one thread a job, and who starts, adopts and stops them."""
