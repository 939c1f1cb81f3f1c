"""The record of jobs, tags and logs in one SQLite file; the only SQL of the project."""

from windtunnel_local.store.sqlite import SqliteStore

__all__ = ["SqliteStore"]
