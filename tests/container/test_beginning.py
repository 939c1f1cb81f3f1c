"""A worker that our torchrun forks begins as one that torch's own torchrun starts, and so do its imports' effects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from conftest import LAUNCHER, NEW_LAUNCHER, Launch

DIFFERENT = {
    "environment/NEURON_SIM_LAUNCH": "by this name the workers of a launch find their shared memory",
    "environment/XLA_FLAGS": "chosen for so many workers on so many processors",
    "environment/TORCHELASTIC_ERROR_FILE": "a file of each launch",
    "environment/NEURON_SIM_PLAIN_TORCHRUN": "the question",
    "environment/PT_XLA_DEBUG_FILE": "a file of each process",
    "environment/SHOW_TO": "of this test",
    "files": "the launcher's pipes and the workers' shared memory are held open, and not handed on to programs",
    "imported before": "the purpose",
    "interpreter/faulthandler": "torch's agent turns it on: a crash in native code says on which line",
    "interpreter/finders": "one of ours gives the script torch_xla, others change modules when it imports them",
    "interpreter/frozen": "what is imported before the fork is shared, and must stay untouched",
    "interpreter/replaced/putenv": "torch_xla's device is NEURON, its client the CPU's",
    "interpreter/replaced/signal": "who handles SIGTERM is no failed worker",
    "path": "torch.distributed makes a folder of modules when it is imported",
    "random": "never the same twice, which is looked at apart",
    "streams/stdout/buffering": "whole lines: the toolkit logs what it reads, be it half a line",
    "streams/stderr/buffering": "whole lines: the toolkit logs what it reads, be it half a line",
    "threads/kernel's": "torch's own, which a fork does not have",
    "warnings/filters": "imported modules' filters for their own warnings",
}
"""Where the two differ, and why. What it names holds for all below it."""
MOMENTS = ["first_line", "with_libraries", "with_torch_xla"]


def differences(forked: Any, plain: Any, place: str = "") -> Iterator[str]:
    """What `DIFFERENT` does not name, a line each; of loggers, and of torch, what both have."""
    if forked == plain or place in DIFFERENT:
        return
    if not (isinstance(forked, dict) and isinstance(plain, dict)):
        yield f"{place}: forked {forked}, plain {plain}"
        return
    names = {*forked} & {*plain} if place in ("logging/loggers", "torch") else {*forked, *plain}
    for name in sorted(names):
        yield from differences(
            forked.get(name, "none"), plain.get(name, "none"), f"{place}/{name}".lstrip("/")
        )


def show(torchrun: Callable[..., Launch], folder: Path, **how: Any) -> list[list[dict[str, Any]]]:
    """What each of two workers has shown, moment by moment."""
    folder.mkdir()
    torchrun("begins.py", "a", "-x", SHOW_TO=str(folder / "shown"), **how)
    ranks = [(folder / f"shown.{rank}").read_text().splitlines() for rank in range(2)]
    return [[json.loads(line) for line in lines] for lines in ranks]


def test_a_forked_worker_begins_as_a_spawned_one(torchrun, tmp_path):
    """At its first line and after each of its imports: logging, variables, signals, streams, random numbers and so on
    differ in nothing but what is listed, with its reason; of a new launcher, and of one that a server has forked.
    """
    plain = show(torchrun, tmp_path / "plain", launcher=NEW_LAUNCHER, NEURON_SIM_PLAIN_TORCHRUN="1")
    assert [moment["moment"] for moment in plain[0]] == MOMENTS
    look_random(plain)
    for name, launcher in (("new", NEW_LAUNCHER), ("of a fork server", LAUNCHER)):
        forked = show(torchrun, tmp_path / name, launcher=launcher)
        assert [moment["imported before"] for moment in forked[0]] == [True, True, True]
        found = [
            f"{name}, {was['moment']}, rank {rank}: {line}"
            for rank in range(2)
            for is_, was in zip(forked[rank], plain[rank], strict=True)
            for line in differences(is_, was)
        ]
        assert not found, "\n".join(found)
        # Not only alike, but as it must be for `logging.basicConfig` in a script to work until torch_xla is imported.
        assert [len(moment["logging"]["root"][1]) for moment in forked[0]] == [0, 0, 1]
        look_random(forked)


def look_random(ranks: list[list[dict[str, Any]]]) -> None:
    """No rank has the random numbers of the other."""
    for name, numbers in ranks[0][-1]["random"].items():
        assert numbers != ranks[1][-1]["random"][name], f"{name}'s random numbers are those of the other rank"
