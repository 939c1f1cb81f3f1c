"""Inputs of AWS's operations drawn from botocore's shapes: valid ones, and ones that are broken in one place."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import deepcopy
from datetime import datetime, timezone
from random import Random
from typing import Any

from tests.fakes.wire import create_request
from tests.fuzz import patterns
from windtunnel_local.api.patterns import compiled

_DEEPEST = 5
_LONGEST = 3000
NAMES = [f"fuzz-{number}" for number in range(8)]
BUCKETS = ["fuzz-bucket", "windtunnel-us-east-1-000000000000", "fuzz.absent"]
KEYS = [
    "a",
    "a/b",
    "a/b/c.tar.gz",
    "ünï/ ö+&=?#",
    "../../etc/passwd",
    "%2e%2e/%00",
    "x" * 1024,
    "//",
    "a//b",
    ".",
]
# What stands for something that exists, by the member's name in lower case.
_POOLS: dict[str, list[str]] = {
    "trainingjobname": NAMES,
    "resourcearn": [f"arn:aws:sagemaker:us-east-1:000000000000:training-job/{name}" for name in NAMES],
    "bucket": [BUCKETS[0]] * 4 + BUCKETS,
    "key": KEYS,
    "copysource": [f"{bucket}/{key}" for bucket in BUCKETS for key in ("a", "a/b", "%C3%BC")],
    "loggroupname": ["/aws/sagemaker/TrainingJobs", "/aws/sagemaker/Other"],
    "logstreamname": [f"{name}/algo-1-1700000000" for name in NAMES],
    "logstreamnameprefix": [*NAMES, "fuzz"],
    "namespace": ["/aws/sagemaker/TrainingJobs", "AWS/SageMaker"],
    "expectedbucketowner": ["000000000000"] * 3 + ["111111111111"],
    "expectedsourcebucketowner": ["000000000000"],
    "rolearn": ["arn:aws:iam::000000000000:role/fuzz"],
    "s3outputpath": ["s3://fuzz-bucket/out"],
    "s3uri": ["s3://fuzz-bucket/a", "file:///tmp"],
    "nexttoken": ["x", "e30=", "AAAA", "f/0/s"],
    "range": ["bytes=0-1", "bytes=-5", "bytes=5-", "bytes=9-1", "bytes=" + "9" * 30 + "-", "lines=1-2"],
}
JUNK: list[Any] = [
    None, True, False, 0, -1, 7, 1.5, -0.0, 2**31, -(2**31) - 1, 2**63, 2**64, 10**400, 1e308, 1e-320,
    math.nan, math.inf, -math.inf, "", " ", "x", "\0", "a\r\nX-Injected: 1", "\ud800", "\U0001f600" * 40,
    "../../../../etc/passwd", "%2e%2e%2f", "${jndi:ldap://x}", "'; DROP TABLE jobs; --", "\x1b[31m", "x" * 5000,
    "--5", "1e5", "٣", "NaN", [], [[]], [None], {}, {"": ""}, {"a": {"b": [1]}}, [1, "a", {}], ["x"] * 2000,
    {f"k{number}": "v" for number in range(300)},
]  # fmt: skip


class Values:
    """Draws values; equal seeds draw equal values."""

    def __init__(self, random: Random) -> None:
        """Draw from ``random``."""
        self._random = random

    def valid(self, shape: Any, name: str = "", depth: int = 0) -> Any:
        """A value that the shape accepts, as far as the model says."""
        kind = shape.type_name
        if kind == "structure":
            return self._structure(shape, depth)
        if kind == "list":
            count = self._count(shape, depth)
            return [self.valid(shape.member, name, depth + 1) for _ in range(count)]
        if kind == "map":
            count = self._count(shape, depth)
            return {
                str(self.valid(shape.key)): self.valid(shape.value, depth=depth + 1) for _ in range(count)
            }
        if kind == "string":
            return self._string(shape, name)
        if kind in ("integer", "long"):
            return self._integer(shape)
        if kind in ("float", "double"):
            return self._random.uniform(shape.metadata.get("min", 0), shape.metadata.get("max", 100))
        if kind == "boolean":
            return self._random.random() < 0.5
        if kind == "timestamp":
            return datetime.fromtimestamp(self._random.randint(0, 4_000_000_000), timezone.utc)
        return self._random.randbytes(self._random.randint(0, 40))

    def create_training_job(self, shape: Any) -> dict[str, Any]:
        """A request that is accepted as it stands, or with one or two members drawn from the model."""
        name = self._random.choice([*NAMES[:2], f"fuzz-{self._random.randint(0, 1 << 30)}"])
        request = create_request(name, OutputDataConfig={"S3OutputPath": "s3://fuzz-bucket/out"})
        for _ in range(self._random.choice([0, 0, 1, 2])):
            member = self._random.choice(sorted(shape.members))
            request[member] = self.valid(shape.members[member], member, 1)
        return request

    def broken(self, value: Any) -> Any:
        """The document with one to three places replaced, removed, added to or nested."""
        for _ in range(self._random.choice([1, 1, 1, 2, 3])):
            value = self._broken_once(value)
        return value

    def _broken_once(self, value: Any) -> Any:
        places = list(_places(value))
        if not places or self._random.random() < 0.05:
            return self._junk()
        holder, where = self._random.choice(places)
        change = self._random.random()
        if change < 0.2 and isinstance(holder, dict):
            del holder[where]
        elif change < 0.35 and isinstance(holder, dict):
            holder[self._random.choice(["Unknown", "__proto__", "", "a" * 3000, "é\n"])] = self._junk()
        elif change < 0.45:
            nested: Any = self._junk()
            for level in range(self._random.choice([3, 60, 200])):
                nested = [nested] if level % 2 else {"a": nested}
            holder[where] = nested
        else:
            holder[where] = self._junk()
        return value

    def _junk(self) -> Any:
        return deepcopy(self._random.choice(JUNK))

    def _structure(self, shape: Any, depth: int) -> dict[str, Any]:
        result = {}
        required = set(shape.required_members)
        for name, member in shape.members.items():
            wanted = name in required or (depth < _DEEPEST and self._random.random() < 0.4 / (depth + 1))
            if wanted and depth < 2 * _DEEPEST:
                result[name] = self.valid(member, name, depth + 1)
        return result

    def _count(self, shape: Any, depth: int) -> int:
        low, high = shape.metadata.get("min", 0), shape.metadata.get("max", 5)
        if depth > _DEEPEST:
            return int(low)
        return self._random.randint(min(low, 50), max(min(low, 50), min(high, low + 2)))

    def _integer(self, shape: Any) -> int:
        low, high = int(shape.metadata.get("min", 0)), int(shape.metadata.get("max", 1000))
        return self._random.choice([low, high, self._random.randint(min(low, high), max(low, high))])

    def _string(self, shape: Any, name: str) -> str:
        pool = _POOLS.get(name.lower())
        if pool and self._random.random() < 0.8:
            return self._random.choice(pool)
        if shape.enum:
            return str(self._random.choice(shape.enum))
        low, high = int(shape.metadata.get("min", 0)), int(shape.metadata.get("max", 200))
        pattern = shape.metadata.get("pattern")
        regex = compiled(pattern) if pattern else None
        drawn = patterns.text(regex, self._random, low, min(high, _LONGEST)) if regex else None
        if drawn is not None:
            return drawn
        length = self._random.choice([low, min(high, 12), min(high, 200)])
        return "".join(self._random.choice("abcXYZ019-_. é") for _ in range(max(low, length)))[:_LONGEST]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a document: its holder, and the name or index there."""
    pending = [value]
    while pending:
        holder = pending.pop()
        entries: Any = ()
        if isinstance(holder, dict):
            entries = holder.items()
        elif isinstance(holder, list):
            entries = enumerate(holder)
        for where, inner in list(entries):
            yield holder, where
            pending.append(inner)
