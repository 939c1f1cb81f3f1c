"""Software that no constant is fitted to: what its rows tell of its speed, and who is told apart."""

from __future__ import annotations

import json
import math
from statistics import mean

import pytest

from tests.unit.conftest import Invoke
from windtunnel.priceperf import CALIBRATIONS, FullScale, Workload, estimate, instance_type
from windtunnel.priceperf.calibration import software
from windtunnel.priceperf.calibration.accuracy import RowCheck, validate_built_in, validate_rows
from windtunnel.priceperf.calibration.left_out import fitted, kind_of
from windtunnel.priceperf.calibration.published_rows import elsewhere, is_fitted, rows_of
from windtunnel.priceperf.calibration.row_reader import PublishedRow, read_rows
from windtunnel.priceperf.errors import InvalidInput
from windtunnel.priceperf.model.precision import TF32
from windtunnel.priceperf.workload.cluster import Cluster, Run

from .test_row_reader import cells

FMS = next(row for row in elsewhere("h100") if row.stack == "fms-fsdp")


def checked(row: PublishedRow, **changed: str) -> RowCheck:
    """The row as one of a file that names no software."""
    (check,) = validate_rows(
        read_rows([{**cells(row), "config": "mine", "stack": "", "source": "", **changed}])
    ).rows
    return check


def test_other_models_of_a_software_tell_of_the_next() -> None:
    """Predicted without their own model, rows of other software are nearer than as strangers, on every GPU. On trn1 one
    kind of software has two models, which say nothing of the others.
    """
    for summary in validate_built_in().summaries:
        if summary.by_software is None or summary.by_software.stacks == 1:
            assert summary.kind == "trn1"
            continue
        rows = [
            row
            for row in validate_built_in().elsewhere
            if row.kind == summary.kind and row.by_software is not None
        ]
        strangers = mean(abs(row.source_left_out or 0.0) for row in rows)
        assert summary.by_software.errors.mean < strangers
        assert summary.by_software.coverage >= 0.75
    assert sum(row.by_software is not None for row in validate_built_in().elsewhere) > 200


def log_error(row: PublishedRow) -> float:
    """Of a row that sets no constant, as the file has it: modelled / published."""
    return math.log1p(fitted()["calibrations"][row.calibration]["elsewhere"][row.config][-1])


def test_a_stranger_has_the_speed_that_is_usual_of_others() -> None:
    """Recomputed: the mean of software that no constant is fitted to but the row's own, and three of no difference."""
    row = next(row for row in elsewhere("a100") if row.stack == "PaddleNLP (FlagPerf)")
    others: dict[str, list[float]] = {}
    for other in elsewhere("a100"):
        if (
            kind_of(other) == "a100"
            and other.stack not in ("", row.stack)
            and not is_fitted(other.stack, "a100")
        ):
            others.setdefault(other.stack, []).append(-log_error(other))
    speed = math.fsum(map(mean, others.values())) / (len(others) + 3)
    check = next(check for check in validate_built_in().elsewhere if check.config == row.config)
    assert speed < -0.05
    assert math.log1p(check.source_left_out or 0.0) == pytest.approx(log_error(row) + speed)
    unknown = checked(row, global_batch=str(2 * row.training.global_batch))
    fitted_one = checked(row, global_batch=str(2 * row.training.global_batch), stack="llm-foundry")
    assert unknown.predicted and fitted_one.predicted
    every = fitted()["strangers"]["a100"]
    assert math.log(unknown.predicted / fitted_one.predicted) == pytest.approx(every, abs=1e-4)
    assert any("% beside the model, as is usual there" in note for note in unknown.notes)


def test_an_unnamed_software_of_a_known_source_is_no_stranger() -> None:
    """NVIDIA's examples are of three kinds of software, two of which set constants: no other's speed is theirs."""
    row = next(row for row in rows_of("a100") if row.stack == "DeepLearningExamples TensorFlow")
    named, unnamed = checked(row, stack=row.stack), checked(row, source=row.source)
    assert software.software_of(row) and named.predicted == unnamed.predicted


def models_of(stack: str, *, in_fp8: bool = False) -> list[float]:
    """The mean difference of each model that a software trained on H100s."""
    models: dict[object, list[float]] = {}
    for row in elsewhere("h100"):
        if row.stack == stack and (row.training.matmul_dtype == "fp8") == in_fp8:
            models.setdefault(row.training.architecture, []).append(-log_error(row))
    return [*map(mean, models.values())]


def test_errors_by_software_are_those_of_other_models() -> None:
    """What the file holds of them is computed."""
    checks = {check.config: check for check in validate_built_in().elsewhere}
    for key in CALIBRATIONS:
        for row in elsewhere(key):
            if row.config not in checks:
                continue
            speed = software.log_speed(
                row.stack,
                kind_of(row),
                row.training,
                but=lambda other, row=row: other.training.architecture == row.training.architecture,  # type: ignore[misc]
            )
            check = checks[row.config]
            assert (speed is None) == (check.by_software is None)
            if speed is not None:
                expected = math.expm1(log_error(row) + speed)
                assert check.by_software == pytest.approx(expected, abs=1e-4)


def test_the_speed_is_the_mean_of_models_drawn_to_none() -> None:
    """Recomputed from the errors of the rows: each model weighs the same, and one of no difference is added."""
    models = models_of("fms-fsdp")
    expected = math.fsum(models) / (len(models) + 1)
    assert software.log_speed("fms-fsdp", kind_of(FMS), FMS.training) == pytest.approx(expected)
    none = software.log_speed("fms-fsdp", kind_of(FMS), FMS.training, but=lambda _: True)
    assert none is software.log_speed(None, kind_of(FMS), FMS.training) is None


def test_software_of_one_core_tells_of_each_other() -> None:
    """The others' mean takes the place of no difference; the core's own name is as good as one of theirs."""
    cores: dict[str, list[float]] = {}
    for row in elsewhere("h100"):
        if software.core_of(row.stack) == "Megatron-core":
            in_bf16 = models_of(row.stack)
            cores[row.stack] = in_bf16 or models_of(row.stack, in_fp8=True)
    one, others = cores.pop("Megatron-core (FlagPerf)"), [*map(mean, cores.values())]
    assert len(others) > 2
    expected = (math.fsum(one) + math.fsum(others) / (len(others) + 1)) / (len(one) + 1)
    assert software.log_speed("Megatron-core (FlagPerf)", "h100", FMS.training) == pytest.approx(expected)
    of_core = software.log_speed("Megatron-core", "h100", FMS.training)
    assert of_core == pytest.approx(math.fsum([*others, mean(one)]) / (len(others) + 2))
    assert software.software_named("nemo") == software.software_named("NeMo 25.09") == "Megatron-core"
    assert checked(FMS, stack="NeMo 25.09").predicted > 1.1 * (checked(FMS).predicted or 0)  # type: ignore[operator]
    assert checked(FMS, config="Llama2-7B, NeMo 25.09").predicted == checked(FMS, stack="nemo").predicted


def test_nemo_on_neuroncores_is_aws_port_of_it() -> None:
    """Whoever names it for both chips means the one that trains there, to whose rows constants are fitted."""
    trn1, p5 = instance_type("ml.trn1.32xlarge"), instance_type("ml.p5.48xlarge")
    nemo, port = (
        Workload.transformer("Llama2-7B", global_batch=1024, software=name)
        for name in ("nemo", "NeMo Megatron for Neuron")
    )
    assert nemo.there(trn1) == port.there(trn1)
    assert nemo.there(p5).software == "Megatron-core"
    assert software.first_told(["Megatron-core"], trn1) == "NeMo Megatron for Neuron"


def test_one_precision_tells_of_the_other_where_nothing_else_does() -> None:
    """Its own rows count first."""
    fp8_only = next(row.stack for row in elsewhere("h100") if row.stack.startswith("NeMo 24"))
    assert not models_of(fp8_only)
    rows = [row.stack for row in elsewhere("h100") if row.stack == "torchtitan (torchao benchmark)"]
    both = software.log_speed(rows[0], "h100", FMS.training)
    assert both == pytest.approx(math.fsum(models_of(rows[0])) / 2)
    assert software.log_speed(fp8_only, "h100", FMS.training) is not None


def test_fitted_software_has_no_part_in_it() -> None:
    """Constants hold its speed."""
    for key in CALIBRATIONS:
        for row in rows_of(key):
            if not software.core_of(row.stack):
                assert software.log_speed(row.stack, kind_of(row), row.training) is None


@pytest.mark.parametrize(
    ("named", "known"),
    [
        ({"stack": "FMS-fsdp"}, True),
        ({"config": "Llama2-7B by fms-fsdp"}, True),
        ({"source": "foundation-model-stack/fms-fsdp@0123abcd README.md"}, True),
        ({"source": "https://github.com/foundation-model-stack/fms-fsdp/blob/main/README.md (H100)"}, True),
        ({"source": "a page about foundation-model-stack/fms-fsdp"}, False),
        ({"stack": "my own", "config": "as fms-fsdp"}, False),
        ({}, False),
    ],
)
def test_a_row_of_a_file_says_what_trained_it(named: dict[str, str], known: bool) -> None:
    """By its stack, its name, or the repository of its source; then it has that software's speed, and says so."""
    changed = {"global_batch": str(2 * FMS.training.global_batch), **named}
    check, stranger = checked(FMS, **changed), checked(FMS, global_batch=changed["global_batch"])
    assert check.predicted and stranger.predicted
    assert (check.predicted > 1.05 * stranger.predicted) == known
    assert any("trained by fms-fsdp: predicted +" in note for note in check.notes) == known


def test_a_step_of_a_row_takes_what_its_prediction_says() -> None:
    """With the speed of its software, also in its parts."""
    for row in (FMS, rows_of("trn1")[0]):
        check = checked(row, stack=row.stack)
        assert check.step and check.predicted
        assert row.training.global_batch / check.step.total_s == pytest.approx(check.predicted)
        assert check.step.total_s == pytest.approx(sum(check.step.parts.values()))


def test_a_repository_of_several_software_names_none() -> None:
    """FlagPerf has scripts of five: its name alone does not say which."""
    row = next(row for row in elsewhere("a100") if row.stack.startswith("FlagPerf HF BERT"))
    assert software.software_of(row) == row.stack
    (read,) = read_rows([{**cells(row), "config": "mine", "stack": ""}])
    assert read.row is not None
    assert software.software_of(read.row) is None


def test_a_row_does_not_predict_itself() -> None:
    """Its own figure in the built-in rows takes no part, whatever the file says was reached."""
    row = next(row for row in elsewhere("a100") if row.stack == "karpathy/llm.c")
    (once,) = validate_rows(read_rows([cells(row)])).rows
    speed = software.log_speed(
        row.stack, kind_of(row), row.training, but=lambda other: other.config == row.config
    )
    assert speed is not None and once.error is not None
    assert math.log1p(once.error) == pytest.approx(log_error(row) + speed, abs=1e-3)


def test_a_described_job_may_name_its_software() -> None:
    """Its speed where it is no fitted one, and a narrower interval; GPUs may have another."""

    def step(name: str | None, **settings: object) -> tuple[float, float]:
        llama = Workload.transformer(
            "Llama2-7B", microbatch=2, sequence_length=4096, global_batch=256, zero="full", software=name, **settings,  # type: ignore[arg-type]
        )  # fmt: skip
        found = estimate(llama, Run(Cluster(instance_type("p5.48xlarge"), 1), 256, TF32), FullScale(10_000))
        return found.step.total_s, found.range_check.log_fast

    usual, known, other = step(None), step("TorchTitan"), step("fms-fsdp")
    of_all = software.usual_speed(None, instance_type("p5.48xlarge"), 1)
    assert of_all > 1.1
    assert known[0] == pytest.approx(usual[0] * of_all) and known[1] < usual[1]
    speed = software.log_speed("fms-fsdp", "h100", FMS.training)
    assert speed is not None
    assert other[0] == pytest.approx(known[0] * math.exp(-speed)) and other[1] < usual[1]
    assert step("neuronx-distributed", on_gpu={"software": "fms-fsdp"}) == other
    for wrong in ("nope", 3):
        with pytest.raises(InvalidInput, match=r"software .*(nope|3).* has no published row.*; torchtitan"):
            step(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("instance", ["ml.trn1.32xlarge", "ml.p4d.24xlarge", "ml.p5.48xlarge"])
@pytest.mark.parametrize(("length", "microbatch"), [(128, 64), (512, 2), (2048, 1), (8192, 1)])
@pytest.mark.parametrize("count", [1, 16])
def test_to_name_fitted_software_takes_no_answer_away(
    instance: str, length: int, microbatch: int, count: int
) -> None:
    """Its interval is at most as wide, and no job is outside of the range because of it."""
    place = Cluster(instance_type(instance), count)
    for name in ("BERT-Large", "Llama2-7B"):
        for stack in {row.stack for row in rows_of(place.instance)}:
            plain, named = (
                estimate(
                    job,
                    Run(place, float(64 * place.workers), job.precisions(place.instance, TF32)[0]),
                    FullScale(1_000_000),
                ).range_check
                for job in (
                    Workload.transformer(
                        name, microbatch=microbatch, sequence_length=length, software=software
                    )
                    for software in (None, stack)
                )
            )
            assert (
                named.log_fast <= plain.log_fast + 1e-12
            )  # the slow end also has what the host lets it wait
            assert named.inside or not plain.inside


@pytest.mark.parametrize("instance", ["ml.trn1.32xlarge", "ml.p4d.24xlarge", "ml.p5.48xlarge"])
@pytest.mark.parametrize("count", [1, 16])
@pytest.mark.parametrize("named", ["neuronx-distributed", "nemo", "torchtitan", "llm-foundry"])
def test_to_name_software_of_which_no_row_tells_changes_nothing(
    instance: str, count: int, named: str
) -> None:
    """As the report says, and as a plan has it: trn1's library names no software of a GPU's job."""
    place = Cluster(instance_type(instance), count)
    for model in ("GPT3-6.7B", "GPT-2"):
        unnamed, its = (
            estimate(job, Run(place, 1024.0, job.precisions(place.instance, TF32)[0]), FullScale(1_000_000))
            for job in (
                Workload.transformer(model, sequence_length=512, global_batch=1024, software=name)
                for name in (None, named)
            )
        )
        known = software.first_told([software.software_named(named)], place.instance)
        if known is None:
            assert (its.step, its.range_check) == (unnamed.step, unnamed.range_check)


def test_the_command_takes_it(invoke: Invoke) -> None:
    """And the first screen says of which rows its error is."""
    described = ["compare", "--architecture", "Llama2-7B", "--sequence-length", "4096", "--full-scale-samples", "9999",
                 "--instances", "ml.p5.48xlarge", "ml.p4d.24xlarge", "--zero", "full", "--microbatch", "1"]  # fmt: skip
    out = " ".join(invoke(*described, "--software", "torchtitan").out.split())
    assert (
        "software new to the model are off by 17 % on p4d (A100); of new models by its software by 8 %" in out
    )
    fast = json.loads(invoke(*described, "--json", "--software", "fms-fsdp").out)
    assert fast != json.loads(invoke(*described, "--json").out)
    assert "has no published row" in invoke(*described, "--software", "nope", exits=2).err


def test_the_report_says_what_the_software_changed(invoke: Invoke) -> None:
    """On each instance: its speed, a narrower interval, or that no published row is like the job."""
    described = ["compare", "--architecture", "Llama2-7B", "--sequence-length", "4096", "--full-scale-samples", "9999",
                 "--instances", "ml.trn1.32xlarge", "ml.p5.48xlarge", "--tensor-parallel", "8",
                 "--microbatch", "1", "--full"]  # fmt: skip
    for given, text in (
        (
            ["--software", "fms-fsdp"],
            "Trained by fms-fsdp on trn1.32xlarge: no published row of it is like this",
        ),
        (["--software", "fms-fsdp"], "times the modelled speed, as its published rows have it"),
        (["--software", "neuronx-distributed"], "on trn1.32xlarge: constants are fitted to its rows"),
    ):
        assert text in " ".join(invoke(*described, *given).out.split())
    assert "Trained by" not in invoke(*described).out
    first = " ".join(invoke(*described[:-1], "--software", "fms-fsdp").out.split())
    assert "times the modelled speed, as in rows of fms-fsdp." in first
