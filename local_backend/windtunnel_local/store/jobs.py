"""Jobs and their tags."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from windtunnel_local.service.ground.errors import JobExists, JobNotFound
from windtunnel_local.service.ground.job import TERMINAL, Job, JobQuery, JobSummary, Status
from windtunnel_local.service.ground.search_query import SearchQuery
from windtunnel_local.service.ground.unix_time import microseconds
from windtunnel_local.store import listing, searching
from windtunnel_local.store.codec import decode_job, encode_record
from windtunnel_local.store.database import Table

_JOB = "SELECT name, arn, request, record FROM jobs JOIN job_documents USING (name)"

_UNFINISHED = sorted(set(get_args(Status)) - TERMINAL)


class JobTable(Table):
    """The jobs' part of `service.ground.ports.Store`."""

    def insert_job(self, job: Job, tags: Mapping[str, str] | None = None) -> None:
        with self.database.transaction() as db:
            insert(db, job, tags or {})

    def get_job(self, name: str) -> Job | None:
        rows = self.database.read(f"{_JOB} WHERE name = ?", (name,))
        return decode_job(*rows[0]) if rows else None

    def update_job(self, job: Job) -> None:
        with self.database.transaction() as db:
            done = db.execute(
                "UPDATE jobs SET status = ?, secondary = ?, modified_us = ?, ended_us = ?, warm_pool_status = ?"
                " WHERE name = ?",
                (*_columns(job), job.name),
            )
            if done.rowcount == 0:
                raise JobNotFound
            db.execute("UPDATE job_documents SET record = ? WHERE name = ?", (encode_record(job), job.name))

    def delete_job(self, name: str) -> None:
        """Remove the job with its tags, logs and metrics. Raises ``JobNotFound``.

        No reader finds the log's lines any more. There may be millions, so the upkeep thread deletes
        them in small steps.
        """
        with self.database.transaction() as db:
            db.execute(
                "UPDATE log_streams SET name = NULL, first_event_ms = NULL, last_event_ms = NULL WHERE job = ?",
                (name,),
            )
            if db.execute("DELETE FROM jobs WHERE name = ?", (name,)).rowcount == 0:
                raise JobNotFound
        self.database.wanted.set()

    def list_jobs(self, query: JobQuery) -> tuple[Sequence[JobSummary], str | None]:
        sql, values = listing.statement(query)
        return listing.page(self.database.read(sql, values), query)

    def search_jobs(self, query: SearchQuery) -> tuple[Sequence[tuple[Job, Mapping[str, str]]], str | None]:
        wanted = searching.statement(query)
        jobs, token = searching.page(self.database.search(wanted.text, wanted.values), query)
        return [(job, self.tags(job.arn)) for job in jobs], token

    def unfinished_jobs(self) -> Sequence[Job]:
        marks = ", ".join("?" for _ in _UNFINISHED)
        rows = self.database.read(
            f"{_JOB} WHERE status IN ({marks}) ORDER BY created_us, name", tuple(_UNFINISHED)
        )
        return [decode_job(*row) for row in rows]

    # --- tags ---

    def set_tags(self, arn: str, tags: Mapping[str, str]) -> None:
        with self.database.transaction() as db:
            if not db.execute("SELECT 1 FROM jobs WHERE arn = ?", (arn,)).fetchone():
                raise JobNotFound
            _add_tags(db, arn, tags)

    def remove_tags(self, arn: str, keys: Sequence[str]) -> None:
        with self.database.transaction() as db:
            db.executemany("DELETE FROM tags WHERE arn = ? AND key = ?", [(arn, key) for key in keys])

    def tags(self, arn: str) -> Mapping[str, str]:
        return dict(self.database.read("SELECT key, value FROM tags WHERE arn = ? ORDER BY key", (arn,)))


def insert(db: sqlite3.Connection, job: Job, tags: Mapping[str, str]) -> None:
    """Insert a new job with its tags, within the caller's transaction. Raises ``JobExists``."""
    if db.execute("SELECT 1 FROM jobs WHERE name = ?", (job.name,)).fetchone():
        raise JobExists(
            "Training job names must be unique within an AWS account and region, and a training job"
            f" with this name already exists ({job.arn})"
        )
    db.execute(
        "INSERT INTO jobs"
        " (status, secondary, modified_us, ended_us, warm_pool_status, name, arn, created_us)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (*_columns(job), job.name, job.arn, microseconds(job.lifecycle.created)),
    )
    db.execute(
        "INSERT INTO job_documents (name, request, record) VALUES (?, ?, ?)",
        (job.name, json.dumps(dict(job.request)), encode_record(job)),
    )
    _add_tags(db, job.arn, tags)


def _add_tags(db: sqlite3.Connection, arn: str, tags: Mapping[str, str]) -> None:
    db.executemany(
        "INSERT INTO tags (arn, key, value) VALUES (?, ?, ?)"
        " ON CONFLICT (arn, key) DO UPDATE SET value = excluded.value",
        [(arn, key, value) for key, value in tags.items()],
    )


def _columns(job: Job) -> tuple[Any, ...]:
    life = job.lifecycle
    return (
        life.status,
        life.secondary,
        microseconds(life.modified),
        life.training_end and microseconds(life.training_end),
        job.warm_pool and job.warm_pool.status,
    )
