"""`--gpu-script`: how a rehearsed script runs on GPUs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.conftest import Invoke
from windtunnel.priceperf.model.precision import GPU_SCRIPTS


@pytest.mark.parametrize("name", GPU_SCRIPTS)
def test_the_answer_is_of_the_script_as_it_runs_there(
    invoke: Invoke, counters_file: Callable[[Any], str], counters: Any, name: str
) -> None:
    """In the estimates and the scaling tables; the other settings stay beside it."""
    words = ("compare", counters_file(counters()), "--samples", "3.6M", "--gpu-script", name)
    data = json.loads(invoke(*words, "--scaling", "strong", "--json").out)
    called = GPU_SCRIPTS[name].name
    assert [item["precision"] for item in data["answer"]["instances"]] == ["auto-cast bf16", called]
    assert [table["precision"] for table in data["scaling"]] == ["auto-cast bf16", called]
    assert f"With the GPU script in {called}:" not in invoke(*words).out


def test_so_is_the_report_of_a_job(rehearsal: Callable[[Any], None], invoke: Invoke, counters: Any) -> None:
    """Its last line says that the whole report needs the option too."""
    rehearsal(counters())
    assert "with what else was given here" not in invoke("report", "j").out
    text = " ".join(invoke("report", "j", "--gpu-script", "fp32").out.split())
    assert "p4d.24xlarge, fp32 " in text and "with what else was given here" in text
    said = invoke("report", "j", "--gpu-script", "fp32", "--instances", "trn1", exits=2).err
    assert "no instance has GPUs" in said


def test_a_script_in_bf16_may_be_compiled(
    invoke: Invoke, counters_file: Callable[[Any], str], counters: Any
) -> None:
    """What its products already are in has no effect, and is refused as such."""
    counted = counters()
    counted["train"]["flops"] = {"bf16": counted["train"]["flops"]["fp32"]}
    words = ("compare", counters_file(counted), "--samples", "3.6M", "--gpu-script")
    assert "p4d.24xlarge, bf16, compiled" in invoke(*words, "compiled").out
    said = invoke(*words, "fp32", exits=2).err
    assert "--gpu-script fp32 has no effect: on GPUs the products of this job run in bf16" in said
    said = invoke(*words, "fp32", "--instances", "trn1", exits=2).err
    assert "no instance has GPUs (ml.trn1.32xlarge)" in said
    said = invoke(*words, "fp32", "--batch", "64", "--instances", "trn1", "p4d=16", "--json").out
    assert [*json.loads(said)["not_possible"]] == ["ml.p4d.24xlarge x 16"]


def test_a_description_says_by_gpu_what_runs_there(invoke: Invoke) -> None:
    """Also the report of AWS's own table has no script."""
    words = ("compare", "--architecture", "BERT-Large", "--samples", "9M", "--gpu-script", "compiled")
    assert "takes --gpu software=..." in invoke(*words, exits=2).err
    assert "(given: --gpu-script)" in invoke("report", "--published", *words[-2:], exits=2).err
    assert "--gpu-script does not go with --rehearsal" in (
        invoke("report", "job", "--rehearsal", "counters.json", *words[-2:], exits=2).err
    )
