"""Rules that stand in several parts, because these parts must not import each other, are the same rules."""

from __future__ import annotations

import ast
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, get_args

import botocore.session
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from neuron_sim import names
from neuron_sim.counters.records import CollectiveKind
from neuron_sim.diagnostics import findings, for_library
from neuron_sim.names.torch_xla_names import ONE_PROCESS_A_CORE, PALLAS
from neuron_sim.settings import (
    DEFAULT_FRAMEWORK_VERSION,
    WITHOUT_FUNCTIONALIZATION,
    leaves_functionalization_out,
)
from windtunnel.cli.main import PASSED_ON
from windtunnel.job import log
from windtunnel.porting.names import GONE
from windtunnel.porting.program import read
from windtunnel.porting.script import Script
from windtunnel.porting.topics import cpu_fallbacks, shapes
from windtunnel.priceperf.model.collectives import KINDS
from windtunnel.priceperf.money import billing as modelled_billing
from windtunnel.priceperf.workload.counters import SEVERITIES, WRONG_RESULT, Diagnostic, worst_first
from windtunnel.reports.cluster import slurm_job
from windtunnel.reports.failure import OF_A_HOST
from windtunnel.request import checks, endpoint_request
from windtunnel.session import training_service
from windtunnel.session.local_server import DEFAULT_REGION
from windtunnel.session.training_service import LOCAL_ACCOUNT
from windtunnel_local import credentials
from windtunnel_local.__main__ import main as backend
from windtunnel_local.api import codec, sagemaker
from windtunnel_local.cluster import job_data, slurm_jobs
from windtunnel_local.service.ground import hosting, job
from windtunnel_local.service.ground.billed_time import billable_seconds
from windtunnel_local.service.ground.job import Lifecycle, Transition
from windtunnel_local.service.observed import live_usage
from windtunnel_local.service.request import validation
from windtunnel_local.ui.job import log_position, step

ROOT = Path(__file__).resolve().parents[2]
START = datetime(2026, 1, 1, tzinfo=timezone.utc)


def text(path: str) -> str:
    """Of a file of the repository."""
    return (ROOT / path).read_text()


@given(milliseconds=st.integers(1, 10**9))
def test_describe_and_the_model_bill_by_one_rule(milliseconds: int) -> None:
    """A begun second counts, at the milliseconds in which times are kept."""
    end = START + timedelta(milliseconds=milliseconds)
    ran = (Transition("Downloading", START, end, ""),)
    ended = Lifecycle("Completed", "Completed", ran, START, end, training_start=START, training_end=end)
    assert billable_seconds(ended) == modelled_billing.billable_seconds(milliseconds / 1000)


def test_the_sdk_knows_the_account_and_region_of_a_new_home() -> None:
    """Before its server has started for the first time; reports tell local jobs from AWS's by the account."""
    assert (LOCAL_ACCOUNT, DEFAULT_REGION) == (credentials.ACCOUNT_ID, credentials.REGION)


def test_the_sdk_tells_the_backend_an_endpoints_limit() -> None:
    """By a tag that both know."""
    assert endpoint_request.LIMIT_TAG == hosting.LIMIT_TAG


def test_the_simulator_ranks_its_findings_as_reports_do() -> None:
    """Worst first, in the log and on the page."""
    assert findings.SEVERITIES == SEVERITIES
    assert findings.WRONG_RESULT == WRONG_RESULT


FOUND = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(sorted({*WRONG_RESULT, "input_bound", "host_read"})),
        "severity": st.sampled_from(SEVERITIES),
        "line": st.sampled_from(["train.py:1", "train.py:2"]),
        "message": st.just(""),
        "advice": st.just(""),
        "seconds": st.floats(0, 9),
        "count": st.integers(1, 9),
    }
)


@given(st.lists(FOUND, max_size=6))
def test_the_log_and_reports_have_findings_in_one_order(found: list[dict[str, Any]]) -> None:
    """The first one is what to mend first, wherever it is read."""
    in_log = sorted((findings.Finding(**one) for one in found), key=findings.worst_first)
    in_reports = worst_first(Diagnostic(**one) for one in found)
    assert [Diagnostic(**{name: getattr(one, name) for name in found[0]}) for one in in_log] == [*in_reports]


def test_every_kind_of_collective_that_is_counted_has_a_price_and_words() -> None:
    """A new collective of the simulator is not priced as something else, and no bare name on the page."""
    assert set(get_args(CollectiveKind)) == set(KINDS) == set(step.OPERATIONS)


def test_the_sdk_and_the_backend_know_the_same_ends_of_a_job() -> None:
    """Whoever waits for one stops at each of them."""
    assert training_service.TERMINAL == job.TERMINAL


def test_a_shell_and_a_job_find_the_local_s3_by_the_same_variables() -> None:
    """Each is of other clients: one that only a shell had would leave them outside of jobs."""
    shell = text("sdk/windtunnel/session/client_environment.py")
    job = text("local_backend/windtunnel_local/service/request/plan.py")
    for name in ("AWS_ENDPOINT_URL", "S3_ENDPOINT_URL", "AWS_ALLOW_HTTP"):
        assert f'"{name}"' in shell and f'"{name}"' in job, name


def test_a_slurm_job_is_told_in_one_form() -> None:
    """What the backend writes of it, the SDK's report reads, and both take the same states for running."""
    assert job_data.SCHEMA == slurm_job.SCHEMA
    assert slurm_jobs.RUNS == slurm_job.RUNS


def test_what_processes_publish_is_what_the_backend_reads() -> None:
    """Of what they do now: another form is left alone, without a word."""
    assert f'\nSCHEMA = "{live_usage.SCHEMA}"\n' in text("containers/neuron_sim/neuron_sim/runtime/usage.py")


@given(number=st.integers(1, 10**5))
def test_a_logs_lines_bear_the_host_of_their_stream(number: int) -> None:
    """As the page names it; and a report knows them for what the SDK put there."""
    stream = f"job/algo-{number}-1760000000"
    assert log.host_of(stream) == log_position.host_of(stream.partition("/")[2])
    assert re.fullmatch(OF_A_HOST, log.before_line(stream))


def test_findings_that_reports_ask_for_are_findings_of_the_simulator() -> None:
    """A kind that was renamed on one side would be waited for in silence."""
    asked = {
        kind
        for part in ("reports", "priceperf/workload")
        for path in (ROOT / "sdk/windtunnel" / part).rglob("*.py")
        for pattern in (r'\b(?:one|item|finding)\.kind == "(\w+)"', r'"(\w+)" in found\b')
        for kind in re.findall(pattern, path.read_text())
    }
    assert (
        {"input_bound", "cpu_fallback", "device_memory", "step_without_end", "growing_graphs"}
        <= asked
        <= kinds()
    )


def kinds() -> set[str]:
    """Of the simulator's findings."""
    simulator = (ROOT / "containers/neuron_sim/neuron_sim").rglob("*.py")
    return {kind for path in simulator for kind in re.findall(r'Finding\(\s*"(\w+)"', path.read_text())}


@pytest.mark.parametrize("version", ["1.13", "2.0", "2.1", "2.9"])
def test_check_and_the_log_know_where_functionalization_is_left_out(version: str) -> None:
    """By framework version, and by what the script asks for."""
    split = "class M(Module):\n    def forward(self, x):\n        return x.split([1, 2], 1)\n"
    for asked in (None, "0", "1"):
        given = {} if asked is None else {WITHOUT_FUNCTIONALIZATION: asked}
        lines = "".join(f"os.environ[{name!r}] = {value!r}\n" for name, value in given.items())
        script = Script(Path("train.py"), (lines + split).encode())
        told = [found.kind for found in read(script, version)]
        left_out = leaves_functionalization_out({"WINDTUNNEL_FRAMEWORK_VERSION": version, **given})
        assert told == ["wrong_split"] * left_out


def test_remarks_on_a_script_bear_the_kinds_of_findings() -> None:
    """What `windtunnel check` and a job's log say of one mistake belongs together; without a kind it is check's own."""
    nodes = [
        node
        for path in (ROOT / "sdk/windtunnel/porting").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
    ]
    given = {
        one.value.value
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding"
        for one in node.keywords
        if one.arg == "kind" and isinstance(one.value, ast.Constant)
    }
    assert given
    assert given <= kinds()
    assert {node.value for node in nodes if isinstance(node, ast.Constant)} & kinds() == {
        "device_unused",
        "optimizer_before_move",
        "step_without_end",
        "no_exchange",
        "same_data",
        "growing_graphs",
        "untied_weights",
        "unequal_weights",
        "wrong_split",
        "host_read",
        "cpu_fallback",
        "torch_compile",
        "ragged_batch",
    }


@pytest.mark.parametrize(
    ("optimizer", "file", "instead"),
    [
        ("ASGD", "asgd.py", "capturable=True"),
        ("Rprop", "rprop.py", "capturable=True"),
        (
            "Adafactor",
            "_adafactor.py",
            "(parameters, lr=..., scale_parameter=False, relative_step=False) reads none.",
        ),
        ("LBFGS", "lbfgs.py", "train with AdamW, or keep LBFGS and its model on the CPU."),
    ],
)
def test_an_optimizer_that_reads_is_advised_alike(optimizer: str, file: str, instead: str) -> None:
    """By `windtunnel check`, and in the log of a job that has not asked it."""
    text = f"import torch, torch_xla\noptimizer = torch.optim.{optimizer}(model.parameters())\n"
    (found,) = [one for one in read(Script(Path("train.py"), text.encode())) if one.kind == "host_read"]
    assert instead in found.text
    assert instead in for_library.advice(f"torch/optim/{file}:1")


def test_check_knows_the_functions_whose_fallbacks_the_simulator_finds() -> None:
    """By their names in torch. Of repeat_interleave only that with a tensor of counts, which a text does not tell."""
    parsed = ast.parse(text("containers/neuron_sim/neuron_sim/diagnostics/fallbacks.py"))
    (called,) = [
        node.value
        for node in parsed.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CALLED"
    ]
    operations = {node.value for node in ast.walk(called) if isinstance(node, ast.Constant)} - {"aten::"}
    functions = {re.sub(r"^_|\..*|_dim$|2$", "", str(one)) for one in operations}
    known = cpu_fallbacks.FUNCTIONS | shapes.BY_DATA
    assert functions - {"repeat_interleave"} == known - {"argwhere"}  # which is nonzero by another name


def test_lookups_are_operations() -> None:
    """A name of none would make that operation slower, and nothing else."""
    known = set(botocore.session.get_session().get_service_model("sagemaker").operation_names)
    assert known >= sagemaker.LOOKUPS


def test_all_name_the_versions_that_the_image_pins() -> None:
    """The extra for machines without Docker, the page of limits, and the simulator's own default."""
    pinned = dict(
        re.findall(r"^([\w-]+)==(\S+)$", text("containers/training/requirements.txt"), flags=re.MULTILINE)
    )
    extra = re.search(r"^sim = \[(.*?)^\]", text("pyproject.toml"), flags=re.MULTILINE | re.DOTALL)
    assert extra is not None
    for wanted in map(Requirement, re.findall(r'"([^"]+)"', extra[1])):
        assert pinned[wanted.name] in wanted.specifier, wanted
    for name in ("torch", "torch_xla", "transformers", "datasets"):  # scripts fail with others
        assert f'"{name}=={pinned[name]}"' in extra[1]
    (major, minor), latest = pinned["torch_xla"].split(".")[:2], names.LATEST
    assert latest == (int(major), int(minor))
    assert f"{major}.{minor}" == DEFAULT_FRAMEWORK_VERSION
    torch, transformers = pinned["torch"].rpartition(".")[0], pinned["transformers"].partition(".")[0]
    told = f"torch {torch}, torch_xla {major}.{minor} and transformers {transformers}."
    assert told in text("docs/reference/limits.md")


def test_the_sdk_knows_the_limits_of_awss_model() -> None:
    """What it lets pass, the backend's wire takes, and what it refuses, AWS refuses."""
    operation = codec.operation("sagemaker", "CreateTrainingJob")
    assert operation is not None
    members = operation.input_shape.members
    hyperparameters, environment = members["HyperParameters"], members["Environment"]
    for limit, shape in {
        "MAX_HYPERPARAMETERS": hyperparameters,
        "MAX_HYPERPARAMETER_KEY": hyperparameters.key,
        "MAX_HYPERPARAMETER_VALUE": hyperparameters.value,
        "MAX_ENVIRONMENT": environment,
        "MAX_ENVIRONMENT_TEXT": environment.value,
        "MAX_CHANNELS": members["InputDataConfig"],
        "MAX_METRICS": members["AlgorithmSpecification"].members["MetricDefinitions"],
        "MAX_TAGS": members["Tags"],
        "MAX_GROUPS": members["ResourceConfig"].members["InstanceGroups"],
        "MAX_KEEP_ALIVE_S": members["ResourceConfig"].members["KeepAlivePeriodInSeconds"],
    }.items():
        assert getattr(checks, limit) == shape.metadata["max"], limit
    assert environment.key.metadata["max"] == checks.MAX_ENVIRONMENT_TEXT
    assert members["TrainingJobName"].metadata["pattern"] == checks.JOB_NAME.pattern
    described = codec.operation("sagemaker", "DescribeTrainingJob")
    assert described is not None
    assert tuple(described.output_shape.members["TrainingJobStatus"].enum) == training_service.STATUSES


def test_the_sdk_knows_the_limits_of_an_endpoint_in_awss_model() -> None:
    """What `deploy` lets pass, the wire takes."""
    operation = codec.operation("sagemaker", "CreateEndpointConfig")
    assert operation is not None
    variant = operation.input_shape.members["ProductionVariants"].member.members
    assert variant["VolumeSizeInGB"].metadata["max"] == endpoint_request.MAX_VOLUME_GB
    for name in ("ModelDataDownloadTimeoutInSeconds", "ContainerStartupHealthCheckTimeoutInSeconds"):
        limits = variant[name].metadata
        assert (limits["min"], limits["max"]) == endpoint_request.STARTUP_S, name


def test_the_oldest_python_is_one() -> None:
    """Of the packages, their checks, the set-up and what a user reads."""
    oldest = re.search(r'^requires-python = ">=(3)\.(\d+)"$', text("pyproject.toml"), re.MULTILINE)
    assert oldest is not None
    major, minor = oldest.groups()
    for path, told in (
        ("pyproject.toml", f'python_version = "{major}.{minor}"'),
        ("pyproject.toml", f'target-version = "py{major}{minor}"'),
        ("containers/neuron_sim/pyproject.toml", oldest[0]),
        ("containers/cluster/software/pyproject.toml", oldest[0]),
        ("scripts/setup.sh", f"sys.version_info < ({major}, {minor})"),
        ("scripts/setup.sh", f"install Python {major}.{minor} or newer"),
        ("scripts/setup.sh", f"name a Python {major}.{minor} or newer"),
        ("README.md", f"Python {major}.{minor} or newer"),
        ("docs/tutorials/first_job.md", f"Python {major}.{minor} or newer"),
    ):
        assert told in text(path), (path, told)


def test_the_sdk_and_the_backend_know_the_same_limits() -> None:
    """Where AWS's model has none, or where it is checked again after a merge."""
    assert (checks.MAX_RUN_S, checks.MAX_TAGS) == (validation.MAX_RUNTIME_S, validation.MAX_TAGS)


@pytest.mark.parametrize("command", ["cluster", "image", "doctor"])
def test_a_shell_completes_what_the_backend_takes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The SDK lists the words of commands that it hands on: it completed none of them but `cluster report`."""
    with pytest.raises(SystemExit):
        backend([command, "--help"])
    shown = capsys.readouterr().out
    listed = re.findall(r"^    ([a-z]+)  |^  (--[a-z]+)", shown, re.MULTILINE)
    choices = [name for one in re.findall(r"{([a-z,]+)}", shown) for name in one.split(",")]
    assert {*map("".join, listed), *choices} - {"report"} == set(PASSED_ON[command].words)


@pytest.mark.parametrize("joined", ["xla", "cpu:gloo,xla:xla"])
def test_check_tells_of_each_name_that_the_simulator_refuses(joined: str) -> None:
    """Except those of torch.distributed where another process group has them."""
    for one in names.every():
        called = f"import {one.module}\ntorch.distributed.init_process_group({joined!r})\n{one.module}.{one.name}()\n"
        found = [said for said in read(Script(Path("train.py"), called.encode())) if "job ends" in said.text]
        elsewhere = one.module == "torch.distributed" and joined != "xla"
        assert [said.line for said in found] == [3] * (bool(one.refused) and not elsewhere), one
        assert one.refused in (PALLAS, ONE_PROCESS_A_CORE) or all(one.refused in said.text for said in found)


def test_check_says_of_spmd_and_pallas_what_the_simulator_refuses() -> None:
    """Each name that it tells of is one that a rehearsal stops at."""
    refused = {f"{one.module}.{one.name}" for one in names.every() if one.refused}
    kernels = {f"{one.module}.{one.name}" for one in names.every() if one.refused == PALLAS}
    spmd = {"torch_xla.runtime.use_spmd", "torch_xla.distributed.spmd.mark_sharding"}
    assert spmd < refused and len(kernels) > 3
    for one in spmd | kernels:
        module, _, name = one.rpartition(".")
        script = Script(Path("train.py"), f"import torch\nfrom {module} import {name}\n{name}()\n".encode())
        assert [found.line for found in read(script) if "the job ends there" in found.text] == [3], one


@pytest.mark.parametrize(
    ("version", "is_refused"), [("2.1", False), ("2.5", False), ("2.6", True), ("2.9", True)]
)
def test_check_and_the_simulator_refuse_a_number_of_processes_from_one_version_on(
    version: str, is_refused: bool
) -> None:
    """Until then xmp.spawn passes over it."""
    spawning = text("containers/neuron_sim/neuron_sim/runtime/spawning.py")
    since, until = ast.literal_eval(re.findall(r"^_PASSED_OVER = (.*)$", spawning, re.MULTILINE)[0])
    passes_over = since <= tuple(map(int, version.split("."))) < until
    call = b"import torch_xla.distributed.xla_multiprocessing as xmp\nxmp.spawn(main, nprocs=8)\n"
    found = read(Script(Path("train.py"), call), version=version)
    assert any("xmp.spawn raises" in one.text for one in found) is is_refused is not passes_over


def test_check_and_the_simulator_know_the_same_names_that_are_gone() -> None:
    """Since which version, too."""
    simulated = {(one.module, one.name): one.until for one in names.every() if one.until is not None}
    assert {name: last for name, (last, _) in GONE.items()} == {
        name: last for name, last in simulated.items() if name[0].startswith("torch_xla")
    }
