"""What the page of one training job says: pure where it can be, and asked of the services where it must be."""
