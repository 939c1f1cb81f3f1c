"""Decides which hosts get which file of a channel (S3DataDistributionType)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

Thing = TypeVar("Thing")


def is_sharded(channel: Mapping[str, Any]) -> bool:
    """Whether each host gets only a part of the channel's files."""
    source = channel["DataSource"]["S3DataSource"]
    return bool(source.get("S3DataDistributionType") == "ShardedByS3Key")


def shared_out(
    files: Iterable[Thing], hosts: tuple[str, ...], channel: Mapping[str, Any]
) -> Iterator[tuple[Thing, tuple[str, ...]]]:
    """Pairs of each file and the hosts that get it.

    FullyReplicated: all hosts. ShardedByS3Key: one host; each of n hosts gets every n-th file, so that
    only the order of the keys decides. With a ShuffleConfig, its seed shuffles the order of the hosts
    for each n files, so that the files are assigned at random but each host gets equally many. The
    order within a host is not shuffled, because files in a folder have none.
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
