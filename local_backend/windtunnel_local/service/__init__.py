"""The rules of a training job, free of HTTP, SQL and Docker."""
