"""Requests of InvokeEndpointAsync that have no answer yet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from windtunnel_local.service.ground.hosting import Invocation
from windtunnel_local.store.database import Table


class InvocationTable(Table):
    """The invocations' part of `service.ground.ports.Store`."""

    def add_invocation(self, invocation: Invocation) -> None:
        with self.database.transaction() as db:
            db.execute(
                "INSERT INTO invocations (id, endpoint, question) VALUES (?, ?, ?)",
                (invocation.id, invocation.endpoint, json.dumps(asdict(invocation))),
            )

    def invocations(self, endpoint: str, after: int, limit: int) -> Sequence[tuple[int, Invocation]]:
        rows = self.database.read(
            "SELECT number, question FROM invocations WHERE endpoint = ? AND number > ? ORDER BY number LIMIT ?",
            (endpoint, after, limit),
        )
        return [(number, Invocation(**json.loads(question))) for number, question in rows]

    def remove_invocation(self, invocation_id: str) -> None:
        with self.database.transaction() as db:
            db.execute("DELETE FROM invocations WHERE id = ?", (invocation_id,))

    def remove_invocations(self, endpoint: str) -> None:
        with self.database.transaction() as db:
            db.execute("DELETE FROM invocations WHERE endpoint = ?", (endpoint,))
