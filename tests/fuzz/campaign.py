"""Runs many generated requests against a real server and counts what came of them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz import judging, tampering
from tests.fuzz.calls import SERVICES, Call, Caller, Keys
from tests.fuzz.values import BUCKETS
from tests.fuzz.wire import Answer, Connection, Message

ROOT = Path(__file__).resolve().parents[2]
_CONNECTIONS = 4
_WARM_UP = 300  # requests before memory and threads are compared: models, pools and caches fill in them
_SHOWN = 20


@dataclass
class Target:
    """A server process that is fuzzed."""

    process: subprocess.Popen[str]
    home: Path
    note: dict[str, Any]

    @property
    def port(self) -> int:
        """Where it listens on loopback."""
        return int(self.note["port"])

    @property
    def keys(self) -> Keys:
        """Its key pair."""
        return Keys(self.note["access_key_id"], self.note["secret_access_key"], self.port)

    def status(self, name: str) -> int:
        """A number of /proc/<pid>/status, such as VmRSS (KiB) or Threads."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.partition(f"{name}:")[2].split()[0])


@contextmanager
def target(home: Path) -> Iterator[Target]:
    """A server of its own in a home, ended afterwards."""
    home.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz.server", str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'sdk'}:{ROOT / 'local_backend'}", "PATH": "/usr/bin:/bin"},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the server did not start"
        yield Target(process, home, json.loads(line))
    finally:
        try:
            process.communicate(timeout=30)  # closes its stdin: it leaves
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


@dataclass
class Findings:
    """What a campaign found. Milliseconds by operation."""

    requests: int = 0
    server_errors: list[str] = field(default_factory=list)
    malformed: list[str] = field(default_factory=list)
    hangs: list[str] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    times_ms: dict[str, list[float]] = field(default_factory=dict)
    rss_growth_mib: float = 0.0
    threads: int = 0

    def summary(self) -> dict[str, Any]:
        """The figures, as plain values."""
        times = sorted(ms for values in self.times_ms.values() for ms in values)
        worst = sorted(((max(v), name, len(v)) for name, v in self.times_ms.items()), reverse=True)[:5]
        return {
            "requests": self.requests,
            "server_errors": len(self.server_errors),
            "malformed_errors": len(self.malformed),
            "hangs": len(self.hangs),
            "p50_ms": round(times[len(times) // 2], 2),
            "p99_ms": round(times[len(times) * 99 // 100], 2),
            "max_ms": round(times[-1], 2),
            "rss_growth_mib": round(self.rss_growth_mib, 1),
            "threads": self.threads,
            "operations": len({name.partition(" ")[0] for name in self.times_ms}),
            "accepted": sum(self.accepted.values()),
            "accepted_training_jobs": self.accepted["sagemaker:CreateTrainingJob"],
            "statuses": dict(sorted(self.statuses.items())),
            "worst": [{"operation": n, "max_ms": round(ms, 1), "requests": count} for ms, n, count in worst],
            "examples": [*self.server_errors, *self.malformed, *self.hangs][:_SHOWN],
        }


class Campaign:
    """A seeded series of requests. ``connections`` are kept alive and used in turn."""

    def __init__(self, target: Target, seed: int) -> None:
        """Prepare to ask ``target``."""
        self._random = Random(seed)  # noqa: S311  a seeded test
        self._target = target
        self._keys = target.keys
        self._caller = Caller(self._random, target.note["served"])
        self._connections = [Connection(target.port) for _ in range(_CONNECTIONS)]
        self.findings = Findings()
        for path in (f"/{BUCKETS[0]}", *(f"/{BUCKETS[0]}/{key}" for key in ("a", "a/b"))):
            signed = self._keys.signed(
                Message("PUT", path, [], b"" if path.count("/") < 2 else b"0123456789"), "s3"
            )
            self._connections[0].exchange(signed)

    def run(self, requests: int) -> Findings:
        """Send ``requests`` of them; blocks."""
        before = self._target.status("VmRSS")
        for number in range(requests):
            if number == min(_WARM_UP, requests // 2):
                before = self._target.status("VmRSS")
            self._one(*self.make())
        self.findings.rss_growth_mib = (self._target.status("VmRSS") - before) / 1024
        self.findings.threads = self._target.status("Threads")
        for connection in self._connections:
            connection.close()
        return self.findings

    def make(self) -> tuple[Call, bool]:
        """The next request, and whether it is one in its service's own protocol."""
        random = self._random
        choice = random.random()
        if choice < 0.001:
            call = self._caller.unsigned(valid=False)
            message = tampering.oversized(call.message, random)
            return self._signed(call, "oversized", message), True
        call = self._caller.unsigned(valid=choice < 0.35)
        if choice < 0.65:
            return self._signed(call, call.kind, call.message), True
        if choice < 0.9:
            change = random.choice(tampering.BEFORE)
            return self._signed(call, change.__name__, change(call.message, random)), change is tampering.body
        change = random.choice(tampering.AFTER)
        signed = self._signed(call, change.__name__, call.message)
        return Call(
            call.service, call.operation, call.protocol, signed.kind, change(signed.message, random)
        ), False

    def _signed(self, call: Call, kind: str, message: Any) -> Call:
        signed = self._keys.signed(message, SERVICES[call.service][0])
        return Call(call.service, call.operation, call.protocol, kind, signed)

    def _one(self, call: Call, at_home: bool) -> None:
        found = self.findings
        found.requests += 1
        name = f"{call.service}:{call.operation.name}"
        began = time.perf_counter()
        try:
            answer = self._random.choice(self._connections).exchange(call.message)
        except TimeoutError:
            found.hangs.append(f"{name} ({call.kind}): {_shown(call)}")
            return
        found.times_ms.setdefault(f"{name} ({call.kind})", []).append((time.perf_counter() - began) * 1000)
        self._judge(call, name, answer, at_home)

    def _judge(self, call: Call, name: str, answer: Answer, at_home: bool) -> None:
        found = self.findings
        found.statuses[f"{answer.status // 100}xx" if answer.status else "closed"] += 1
        found.codes[f"{call.protocol} {answer.status} {judging.code_of(call, answer)}"] += 1
        if answer.status in (200, 204, 206):
            found.accepted[name] += 1
        if judging.is_server_error(call, answer):
            found.server_errors.append(f"{name} ({call.kind}): {answer.status} for {_shown(call)}")
        elif reason := judging.objection(call, answer, at_home=at_home):
            found.malformed.append(
                f"{name} ({call.kind}): {answer.status} {reason}; {answer.body[:200]!r} for {_shown(call)}"
            )


def _shown(call: Call) -> str:
    return f"{call.message.method} {call.message.target[:80]!r} {call.message.body[:300]!r}"
