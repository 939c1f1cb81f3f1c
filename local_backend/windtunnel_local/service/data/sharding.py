"""Which hosts get which file of a channel."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

Thing = TypeVar("Thing")


def is_sharded(channel: Mapping[str, Any]) -> bool:
    """Whether each host gets a part of the channel only."""
    source = channel["DataSource"]["S3DataSource"]
    return bool(source.get("S3DataDistributionType") == "ShardedByS3Key")


def shared_out(
    files: Iterable[Thing], hosts: tuple[str, ...], channel: Mapping[str, Any]
) -> Iterator[tuple[Thing, tuple[str, ...]]]:
    """Each file with the hosts that get it.

    FullyReplicated: all hosts. ShardedByS3Key: one host; of n hosts each gets every n-th file, so
    the split follows from the order of the keys alone. With a ShuffleConfig the hosts change their
    order within each n files, as its seed says: which file goes where is shuffled, and the shares
    stay even. Within a host's folder there is no order that could be shuffled.
    """
    if not is_sharded(channel):
        for file in files:
            yield file, hosts
        return
    shuffle = channel.get("ShuffleConfig")
    order = random.Random(shuffle["Seed"]) if shuffle else None  # noqa: S311 - a split, no secret
    remaining = iter(files)
    while block := list(islice(remaining, len(hosts))):
        turn = order.sample(hosts, len(hosts)) if order else hosts
        for file, host in zip(block, turn, strict=False):
            yield file, (host,)
