"""What the log says when the script has ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuron_sim.counters.records import Records
from neuron_sim.launcher import train


@pytest.mark.parametrize(
    ("rehearsed", "ended_early", "is_said"),
    [(None, [False], True), ("7", [True, False], True), ("7", [True, True], False), ("7", [], True)],
)
def test_a_model_is_missed_unless_the_rehearsal_ended_the_script(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    rehearsed: str | None,
    ended_early: list[bool],
    is_said: bool,
) -> None:
    """The script may save it after its loop. While it runs, each record says that it has not come to its end."""
    model, counters = tmp_path / "model", tmp_path / "counters"
    model.mkdir()
    monkeypatch.setattr(train, "_MODEL", model)
    monkeypatch.setenv("WINDTUNNEL_COUNTERS_DIR", str(counters))
    monkeypatch.setenv("SM_CURRENT_HOST", "algo-1")
    if rehearsed is not None:
        monkeypatch.setenv("WINDTUNNEL_REHEARSE_STEPS", rehearsed)
    records = Records(counters / "rank-0.jsonl")
    for is_early in ended_early:
        records.write({"kind": "loaders", "ended_early": is_early})
        records.write({"kind": "end"})
    assert train.with_last_word(lambda: "result")() == "result"
    said = capsys.readouterr().out
    assert ("so the job has no model" in said) == is_said
    assert "nothing ran on a NeuronCore" not in said
