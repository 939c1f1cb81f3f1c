"""The record in one SQLite file: jobs, endpoints, transform jobs, tags, logs, metrics. The only SQL of the project."""

from windtunnel_local.store.sqlite import SqliteStore

__all__ = ["SqliteStore"]
