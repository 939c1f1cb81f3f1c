"""A job's steps in the Trace Event Format, which Perfetto and chrome://tracing read.

A host is a process, a core a thread, a step a complete event. Of a step's parts only sums are known. So they are not
nested events, but values of a counter track and arguments of the step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from windtunnel_local.ui.job.phases import Phase
from windtunnel_local.ui.trace.steps import PARTS, Lane, Steps

_JOB = 1
"""The process id for the job's phases; those of hosts follow."""
_NOTE = (
    "Measured on this machine, with simulated NeuronCores: none of it is Trainium's. The simulator counts on the "
    "first core of each host. Counters are sums of each step, over its length; their order within it is not known."
)


def chrome_trace(job: str, steps: Steps, phases: Sequence[Phase]) -> Iterator[str]:
    """The file in pieces. Times are microseconds since its earliest event."""
    since = min([steps.begin, *(phase.start.timestamp() for phase in phases)])
    other = {"job": job, "note": _NOTE, "begin_unix_s": round(since, 6)}
    yield f'{{"displayTimeUnit":"ms","otherData":{json.dumps(other)},"traceEvents":[\n'
    for place, event in enumerate(_events(steps, phases, since)):
        yield f"{',' if place else ''}{json.dumps(event, separators=(',', ':'))}\n"
    yield "]}\n"


def _events(steps: Steps, phases: Sequence[Phase], since: float) -> Iterator[dict[str, Any]]:
    yield _named("process_name", _JOB, 0, "the job's phases")
    for phase in phases:
        begin = phase.start.timestamp() - since
        yield {
            "ph": "X", "name": phase.name, "cat": "phase", "pid": _JOB, "tid": 0,
            **_when(begin, begin + phase.seconds), "args": {"billed": phase.billed},
        }  # fmt: skip
    hosts = {
        host: _JOB + 1 + place for place, host in enumerate(dict.fromkeys(lane.host for lane in steps.lanes))
    }
    for host, pid in hosts.items():
        yield _named("process_name", pid, 0, host)
    for tid, lane in enumerate(steps.lanes, 1):
        yield _named("thread_name", hosts[lane.host], tid, f"rank {lane.rank}: {lane.script or 'steps'}")
        yield from _lane(lane, hosts[lane.host], tid, steps.begin - since)


def _lane(lane: Lane, pid: int, tid: int, later_s: float) -> Iterator[dict[str, Any]]:
    counter, nothing = f"rank {lane.rank} ({tid}), ms of a step", dict.fromkeys(PARTS, 0)
    end_us = None
    for step in lane.steps:
        when = _when(step.begin_s + later_s, step.end_s + later_s)
        of_parts = {name: round(part * 1e3, 3) for name, part in zip(PARTS, step.parts, strict=True)}
        common = {"pid": pid, "tid": tid}
        if end_us is not None and when["ts"] > end_us:
            yield {"ph": "C", "name": counter, **common, "ts": end_us, "args": nothing}
        yield {
            "ph": "X", "name": "training step" if step.training else "step without training", "cat": "step", **common,
            **when, "args": {"step": step.number, "samples": step.samples, "ms": of_parts},
        }  # fmt: skip
        yield {"ph": "C", "name": counter, **common, "ts": when["ts"], "args": of_parts}
        end_us = round(when["ts"] + when["dur"], 3)
    if end_us is not None:
        yield {"ph": "C", "name": counter, "pid": pid, "tid": tid, "ts": end_us, "args": nothing}


def _when(begin_s: float, end_s: float) -> dict[str, float]:
    begin = round(begin_s * 1e6, 3)
    return {"ts": begin, "dur": round(max(0.0, round(end_s * 1e6, 3) - begin), 3)}


def _named(kind: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}
