"""`job.diagnostics()`: what to change, worst first, as objects, text, HTML and JSON, and in the report."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from tests.fakes.reports import report_for_counters, screen_of
from tests.unit.reports.test_job_report import FakeJob
from windtunnel.priceperf.model import compile_time
from windtunnel.reports.diagnostics import diagnostics_of
from windtunnel.reports.for_job import report_for_job

GIB = 2**30


def entry(line: str, severity: str, seconds: float) -> dict[str, Any]:
    return {
        "kind": "host_read",
        "severity": severity,
        "line": line,
        "message": f".item() <{line}>.",
        "advice": "Use a closure.",
        "count": 3,
        "seconds": seconds,
    }


@pytest.fixture
def diagnosed(counters: Any) -> dict[str, Any]:
    """Counters with three findings in the wrong order, two graphs and memory."""
    found: dict[str, Any] = counters()
    reason = {"kind": "shape", "detail": "input 0 was f32[8] and is f32[3]"}
    common = {"compile_seconds": 2.0, "runs": 7, "source": "train.py:5", "reason": reason}
    found["graphs"] = {
        **found["graphs"],
        "ledger": [
            {**common, "graph": "a", "flops": {"bf16": 4e12}, "cached": False},
            {**common, "graph": "b", "flops": {"bf16": 4e12}, "cached": True},
        ],
        "ledger_left_out": 3,
    }
    found["diagnostics"] = [
        entry("a.py:1", "note", 9.0),
        entry("b.py:1", "warning", 1.0),
        entry("c.py:1", "error", 0.0),
    ]
    sizes = {"parameters": GIB, "temporaries": 2 * GIB, "total": 3 * GIB, "limit": 16 * GIB}
    found["device_memory"] = {**sizes, "line": "t.py:1"}
    return found


def test_findings_are_a_sequence_worst_first(diagnosed: dict[str, Any]) -> None:
    """Structured: severity, line, message, advice, seconds; whatever order the counters have."""
    found = diagnostics_of(diagnosed)
    assert [(one.severity, one.line, one.seconds) for one in found] == [
        ("error", "c.py:1", 0.0),
        ("warning", "b.py:1", 1.0),
        ("note", "a.py:1", 9.0),
    ]
    assert (len(found), found[0].advice, found[0].kind, found[0].count) == (
        3,
        "Use a closure.",
        "host_read",
        3,
    )
    assert str(found[1]) == "warning: b.py:1: .item() <b.py:1>. Use a closure."
    assert str(replace(found[1], line="?")) == "warning: .item() <b.py:1>. Use a closure."


def test_a_wrong_result_stands_before_lost_seconds(diagnosed: dict[str, Any]) -> None:
    """So it is among the first lines of an answer, too, which has room for two."""
    wrong = {**diagnosed["diagnostics"][1], "kind": "no_exchange", "seconds": 0.0}
    diagnosed["diagnostics"].append(wrong)
    assert [one.kind for one in diagnostics_of(diagnosed)][:3] == ["host_read", "no_exchange", "host_read"]


def test_the_ledger_models_neuronx_cc_only_for_what_is_not_cached(diagnosed: dict[str, Any]) -> None:
    """A cached graph takes no compile time on trn1."""
    new, cached = diagnostics_of(diagnosed).graphs
    assert new.neuronx_cc == compile_time.of_graph(compile_time.CompiledGraph(4e12))
    assert cached.neuronx_cc.seconds == 0
    assert (new.reason, new.source, new.runs) == ("shape", "train.py:5", 7)


def test_all_forms_say_the_same(diagnosed: dict[str, Any]) -> None:
    """Text, HTML (escaped) and JSON; measured and modelled stand apart."""
    found = diagnostics_of(diagnosed)
    text = found.to_text()
    words = " ".join(text.split())
    for needed in ("WHAT TO CHANGE", "error: c.py:1", "GRAPHS", "shape: input 0", "and 3 more", "in the Neuron cache",
                   "COMPILING WITH NEURONX-CC", "3 of 4", "DEVICE MEMORY OF A CORE", "3.00 GiB"):  # fmt: skip
        assert needed in words, text
    assert max(map(len, text.splitlines())) <= 100
    assert "&lt;c.py:1&gt;" in found._repr_html_()
    data = json.loads(found.to_json())
    assert data["diagnostics"][0]["line"] == "c.py:1"
    assert (
        data["graphs"][0]["neuronx_cc"]["seconds"]
        == compile_time.of_graph(compile_time.CompiledGraph(4e12)).seconds
    )
    assert data["device_memory"]["limit"] == 16 * GIB


def test_the_report_shows_the_worst(diagnosed: dict[str, Any]) -> None:
    """In the measured part, and in its JSON."""
    report = report_for_counters(diagnosed)
    text = report.to_text(full=True)
    assert text.index("WHAT TO CHANGE") < text.index("MODELLED")
    assert "c.py:1" in text
    assert report.to_dict()["diagnostics"][0]["severity"] == "error"


def test_severities_have_colours_on_a_terminal_only(
    diagnosed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not there either with NO_COLOR."""

    def shown(*, terminal: bool) -> str:
        out = io.StringIO()
        Console(file=out, force_terminal=terminal).print(diagnostics_of(diagnosed))
        return out.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    text = shown(terminal=True)
    assert "\x1b[1;31merror\x1b[0m: c.py:1" in text
    assert "\x1b[1;33mwarning\x1b[0m: b.py:1" in text
    assert "note: a.py:1" in text
    assert "\x1b" not in shown(terminal=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "31m" not in shown(terminal=True)


def test_counters_of_an_older_simulator_still_work(counters: Any) -> None:
    """No keys of diagnostics: nothing found, and it says why; the report is as it was."""
    old = counters()
    assert "diagnostics" not in old
    found = diagnostics_of(old)
    assert (list(found), found.graphs, found.device_memory, found.available) == ([], (), None, False)
    assert "run the job again" in screen_of(found)
    assert "WHAT TO CHANGE" not in report_for_counters(old).to_text(full=True)


def test_a_job_that_failed_is_said_to_have_failed(counters: Any) -> None:
    """With its reason in a line: that nothing was found is no advice then."""
    reason = (
        "AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage \"KeyError: 'img'\n Traceback\""
    )
    found: dict[str, Any] = {**counters(), "diagnostics": []}
    before = {**found, "graphs": {**found["graphs"], "count": 0, "ledger": []}}
    for one in (found, before):
        text = diagnostics_of(one, reason).to_text()
        assert "The job failed: KeyError: 'img'" in text
        assert "Nothing to change was found" not in text and "see that the script uses it" not in text
    assert "Nothing had run on a NeuronCore." in diagnostics_of(before, reason).to_text()


OUT_OF_MEMORY = (
    'AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage "neuron_sim: ChildProcessError: rank 0 exited '
    "with signal SIGKILL (9); a process was ended because memory was full: 3 GiB\n Traceback (most\n"
    "OutOfMemory: The memory limit of host algo-1 is 3 GiB. Rehearse fewer cores."
)


def test_a_job_that_was_ended_for_memory_says_which_process_how_much_and_what_to_do(counters: Any) -> None:
    """In diagnostics and in the report's first screen, once each, and as data."""
    found = diagnostics_of(counters(), OUT_OF_MEMORY)
    job = FakeJob(counters(), TrainingJobStatus="Failed", FailureReason=OUT_OF_MEMORY)
    for text in (found.to_text(), str(report_for_job(job))):
        plain = " ".join(re.sub("[│·]", "", text).split())
        failed = "failed: rank 0 exited with signal SIGKILL (9); a process was ended because memory was full: 3 GiB"
        assert f"{failed} The memory limit of host algo-1 is 3 GiB. Rehearse fewer cores." in plain
        assert plain.count("The memory limit") == 1
    assert (
        found.to_dict()["memory_advice"] == "The memory limit of host algo-1 is 3 GiB. Rehearse fewer cores."
    )
    assert found.to_dict()["failure"].startswith("rank 0 exited")


def test_a_job_that_ran_nothing_on_the_device_is_not_told_that_all_is_well(counters: Any) -> None:
    """No graph was compiled: that is what was found, also for who counts what was found and fails a build."""
    found: dict[str, Any] = counters()
    found["graphs"] = {**found["graphs"], "count": 0, "ledger": []}
    found["diagnostics"] = []
    (one,) = diagnostics_of(found)
    assert (one.kind, one.severity) == ("device_unused", "warning")
    assert "Nothing ran on a NeuronCore" in diagnostics_of(found).to_text()
    assert not diagnostics_of(found, "AlgorithmError: it failed before")
