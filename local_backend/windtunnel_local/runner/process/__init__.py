"""The `process` runner: jobs without containers."""
