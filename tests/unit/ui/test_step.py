"""What a step is, in words, from counters."""

from __future__ import annotations

from tests.fakes.counters import Counters as Build
from windtunnel.priceperf.workload.counters import Counters
from windtunnel_local.ui.job.step import facts


def said(document: dict[str, object]) -> dict[str, str]:
    """The facts by what they are of."""
    return {fact.what: f"{fact.value} | {fact.note}" for fact in facts(Counters.read(document))}


def test_a_step_in_words(counters: Build) -> None:
    """What it computes, moves and exchanges, each a step and a core, with units."""
    found = said(counters(samples=8, steps=100))
    assert found["Steps counted"].startswith("100 |")
    assert found["Samples a step"] == "8 a core | 16 on 2 cores"
    assert "TFLOP a core" in found["Computes"] or "GFLOP a core" in found["Computes"]
    assert found["Moves in memory"].partition(" |")[0].endswith("B")
    assert found["Exchanges"].endswith("adds up over all cores (all_reduce), once a step")
    assert found["Takes here"].startswith("3.0 s |")
    assert found["Of that exchanging"].startswith("7 % |")
    assert found["Graphs"] == "4 | 20 s of compiling here"


def test_a_step_is_said_as_the_report_says_it(counters: Build) -> None:
    """Large counts without an exponent, a small share not as none, memory in the units of the core's own."""
    train = {**counters(samples=512, steps=1000)["train"], "seconds": 500.0, "input_wait_seconds": 1.5}
    train |= {
        "collectives": {"all_reduce": {"count": 1_234_000, "bytes": 4e9}},
        "median_step_seconds": 0.9997,
    }
    parts = dict.fromkeys(("gradients", "optimizer_state", "other", "temporaries"), 0)
    memory = {**parts, "parameters": 13_735_440, "total": 13_735_440, "limit": 2**34, "line": "train.py:48"}
    found = said(counters(train=train, world_size=32, cores_used=32, device_memory=memory))
    assert found["Samples a step"] == "512 a core | 16,384 on 32 cores"
    assert found["Exchanges"].endswith(", 1,230 times a step")
    assert found["Takes here"].startswith("1,000 ms |")
    assert found["Of that waiting for input"].startswith("under 1 % |")
    assert found["Memory of a core, at most"] == "13.1 MiB | of 16 GiB, at train.py:48"


def test_cores_that_exchange_nothing(counters: Build) -> None:
    """Two that learn nothing from each other is worth a word; one core has no other."""
    train = {**counters()["train"], "collectives": {}}
    assert said(counters(train=train))["Exchanges"] == "nothing | no core learns from another"
    alone = counters(train=train, world_size=1, cores_used=1)
    assert said(alone)["Exchanges"] == "nothing | one core has no other"


def test_a_job_that_ran_no_step(counters: Build) -> None:
    """It still says what was compiled."""
    assert set(said(counters(train=None, other=None))) == {"Graphs"}
    assert said(counters(train=None, other=None, graphs={"count": 0, "compile_seconds": 0.0})) == {}
