"""Every instance type of the data file works everywhere: a new one is one entry there."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from tests.fakes.counters import Counters, counters
from tests.fakes.reports import report_for_counters, screen_of, text_of
from tests.fakes.wire import create_request
from tests.unit.sdk.conftest import BotoSession
from tests.unit.sdk.fake_service import FakeService
from tests.unit.service.samples import config, job, request
from windtunnel import AwsSession, ConfigurationError, FullScale, LocalSession, PyTorch, compare
from windtunnel.priceperf import CALIBRATIONS, CATALOG, NEURON_TYPES, UnknownInstance, Workload, instances
from windtunnel.priceperf.instances import GIB, InstanceType, instance_type
from windtunnel.reports.modelled.instances import shown_beside
from windtunnel.reports.plan.report import plan as plan_for
from windtunnel_local.api import codec
from windtunnel_local.runner.sources import containers_folder, image_files
from windtunnel_local.service.request import plan
from windtunnel_local.service.request.validation import validate

__all__ = ["counters"]

OFFERED = {
    "training": "TrainingInstanceType",
    "endpoint": "ProductionVariantInstanceType",
    "transform": "TransformInstanceType",
    "cluster": "ClusterInstanceType",
}
UNITS = {"memory": "GiB", "memory_bandwidth": "GB/s", "host_memory": "GiB", "network": "Gbps"}
every_type = pytest.mark.parametrize("name", CATALOG)
every_neuron_type = pytest.mark.parametrize("name", NEURON_TYPES)


@pytest.fixture(autouse=True)
def _own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WINDTUNNEL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WINDTUNNEL_LOCAL_CORES", raising=False)


@every_type
def test_every_number_has_its_unit_a_source_and_a_date(name: str) -> None:
    """No bare number, and none in a unit that is not the one computed with."""
    entry = CATALOG[name]
    chip = entry.accelerator
    figures = {
        "accelerators": entry.accelerators, "vcpus": entry.vcpus, "host_memory": entry.host_memory,
        "network": entry.network, "cores": chip.cores, "memory": chip.memory,
        "memory_bandwidth": chip.memory_bandwidth, **chip.peaks,
        **({"accelerator_link": entry.accelerator_link} if entry.accelerator_link else {}),
    }  # fmt: skip
    units = {**UNITS, **dict.fromkeys(chip.peaks, "TFLOPS"), "accelerator_link": "GB/s"}
    for what, figure in figures.items():
        assert figure.unit == units.get(what, what)
        assert figure.value > 0 and figure.source and date.fromisoformat(figure.date)
    assert entry.calibration in (None, *CALIBRATIONS)


@cache
def sagemaker() -> Any:
    """The service's model: reading it takes a tenth of a second."""
    return botocore.session.get_session().get_service_model("sagemaker")


@every_type
def test_what_sagemaker_offers_is_what_botocores_model_says(name: str) -> None:
    """A type may be rehearsed here that no training job on AWS gets; then that must be said."""
    offered = {use for use, shape in OFFERED.items() if name in sagemaker().shape_for(shape).enum}
    assert CATALOG[name].sagemaker == offered


# --- where it runs --------------------------------------------------------------


@every_neuron_type
def test_the_backend_takes_a_job_on_it(name: str) -> None:
    """On the wire, in the rules, and as a container with the instance's memory."""
    resources = {"InstanceType": name, "InstanceCount": 1, "VolumeSizeInGB": 30}
    operation = codec.operation("sagemaker", "CreateTrainingJob")
    assert operation is not None
    sent = create_request(ResourceConfig=resources)
    assert codec.decoded(operation.input_shape, json.dumps(sent).encode()) == sent
    accepted = request(ResourceConfig=resources)
    validate(accepted)
    home = Path("/home/me/.windtunnel")
    planned = job(home, accepted)
    (container,) = plan.plan_job(planned, config(home)).containers
    assert container.environment["WINDTUNNEL_INSTANCE_TYPE"] == name
    assert container.memory_bytes == CATALOG[name].host_memory.value * GIB
    said = " ".join(line.text for line in plan.log_preface(planned, "algo-1", config(home)))
    assert ("SageMaker takes no training job on it" in said) == ("training" not in CATALOG[name].sagemaker)


@every_neuron_type
@pytest.mark.parametrize("cores", [None, 1, 2])
def test_neuron_ls_lists_its_cores_and_memory(
    name: str, cores: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The toolkit starts as many workers as the cores that `neuron-ls -j` counts."""
    from neuron_sim import topology
    from neuron_sim.tools import neuron_ls

    entry, simulated = CATALOG[name], topology.instance(name)
    monkeypatch.setenv("WINDTUNNEL_INSTANCE_TYPE", name)
    if cores is not None:
        monkeypatch.setenv("WINDTUNNEL_LOCAL_CORES", str(cores))
    assert neuron_ls.main(["-j"]) == 0
    listed: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    assert sum(device["nc_count"] for device in listed) == (cores or entry.core_count)
    assert [core for device in listed for core in device["neuroncore_ids"]] == list(
        range(cores or entry.core_count)
    )
    assert {device["memory_size"] for device in listed} == {entry.accelerator.memory.value * GIB}
    assert len({device["bdf"] for device in listed}) == len(listed)
    assert simulated.memory_per_core_bytes == entry.core_memory_gib * GIB
    assert neuron_ls.main([]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"instance-type: {name.removeprefix('ml.')}\n")
    assert f"{entry.accelerator.memory.value:g} GB" in text


def test_the_simulator_has_what_the_backend_takes_and_no_more() -> None:
    """A type that is accepted but not simulated would fail inside the container."""
    from neuron_sim import topology

    assert {f"ml.{name}" for name in topology.instances()} == set(NEURON_TYPES)


def test_the_image_gets_the_same_file() -> None:
    """The simulator may import nothing of the SDK, so the file travels with it; in a checkout it is a link."""
    home = Path(instances.__file__).with_name("instances.json")
    sent = dict(image_files(containers_folder()))["neuron_sim/neuron_sim/instances.json"]
    assert sent.read_bytes() == home.read_bytes()


# --- what a user asks for -------------------------------------------------------


@every_neuron_type
def test_the_sdk_takes_it_with_as_many_cores_as_it_has(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says before anything is uploaded that AWS would not take it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print(1)\n")
    count = CATALOG[name].core_count
    session = LocalSession(tmp_path / "home", service=FakeService())
    assert estimator(name, session, local_cores=count).request().name
    with pytest.raises(ConfigurationError, match=f"from 1 to {count} "):
        estimator(name, session, local_cores=count + 1).request()
    aws = AwsSession(BotoSession(), default_bucket="b", service=FakeService())
    if "training" in CATALOG[name].sagemaker:
        assert estimator(name, aws).request().name
    else:
        with pytest.raises(ConfigurationError, match=r"not for training jobs\. It can be rehearsed here"):
            estimator(name, aws).request()


def estimator(name: str, session: Any, **more: Any) -> PyTorch:
    """A script on one instance of that type."""
    role = "arn:aws:iam::123456789012:role/x"
    return PyTorch(
        "train.py",
        framework_version="2.9",
        instance_type=name,
        instance_count=1,
        role=role,
        session=session,
        **more,
    )


@every_neuron_type
def test_a_report_names_its_memory_and_says_what_is_not_modelled(name: str, counters: Counters) -> None:
    """Times and costs where a calibration models them; else the reason, and those of the others."""
    entry = CATALOG[name]
    report = report_for_counters(counters(instance_type=name, instance_cores=entry.core_count))
    text = text_of(report)
    assert f"of {entry.core_memory_gib:g} GiB a core" in text
    assert f"of {entry.core_count:,} NeuronCores" in text
    assert ("NOT MODELLED" in text) == (entry.calibration is None)


@every_type
def test_a_comparison_models_it_or_says_why_not(name: str, counters: Counters) -> None:
    """Counted and described; with the constants of other chips where the entry says so."""
    size = FullScale(train_samples=1_000_000)
    described = Workload.transformer("bert-base", microbatch=8, sequence_length=128)
    for workload in (described, Workload.from_counters(counters())):
        report = compare(workload, [name, "ml.trn1.32xlarge"], size)
        modelled = {item.instance.name for item in report.comparison.estimates}
        not_modelled = {item.name for item in report.comparison.not_calibrated}
        assert (name in modelled, name in not_modelled) == (
            bool(CATALOG[name].calibration),
            name not in modelled,
        )
        assert all(f"{item} is not calibrated" in screen_of(report) for item in not_modelled)
        assert report.to_dict()["not_calibrated"] == sorted(not_modelled)


def test_a_type_without_a_calibration_gets_no_figures(
    counters: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone it is refused by name; a report keeps what was measured."""
    known = CATALOG["ml.trn1.32xlarge"]
    new = replace(known, name="ml.new.1xlarge", accelerator=replace(known.accelerator, calibration=None))
    assert isinstance(CATALOG, dict)
    monkeypatch.setitem(CATALOG, new.name, new)
    told = counters(instance_type=new.name)
    with pytest.raises(
        ValueError, match=r"ml\.new\.1xlarge is not calibrated.*Calibrated are ml\.trn1\.2xlarge"
    ):
        compare(Workload.from_counters(told), [new.name])
    alone = report_for_counters(told, instances=[new.name])
    assert alone.comparison is None and "is not calibrated" in str(alone.unavailable)
    beside = report_for_counters(told)
    assert beside.comparison is not None
    assert [item.instance.name for item in beside.comparison.estimates] == [
        "ml.trn1.32xlarge",
        "ml.p4d.24xlarge",
    ]
    assert "NOT MODELLED: ml.new.1xlarge" in screen_of(beside)


def test_instances_of_the_same_chips_are_told_from_others() -> None:
    """trn1n is trn1.32xlarge with faster links; a smaller one, or another chip, is not."""

    def alike(one: str, other: str) -> bool:
        entries: list[InstanceType] = [CATALOG[f"ml.{name}"] for name in (one, other)]
        return entries[0].same_chips_as(entries[1])

    assert alike("trn1n.32xlarge", "trn1.32xlarge")
    assert not alike("trn1.2xlarge", "trn1.32xlarge")
    assert not alike("p4d.24xlarge", "p4de.24xlarge")


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("h100", "It is the accelerator of ml.p5.48xlarge and ml.p5.4xlarge."),
        ("A100", "It is the accelerator of ml.p4d.24xlarge and ml.p4de.24xlarge."),
        ("l40s", "It is the accelerator of ml.g6e.12xlarge and ml.g6e.48xlarge."),
        ("trainium2", "It is the accelerator of ml.trn2.3xlarge and ml.trn2.48xlarge."),
        ("p4e", "Did you mean 'p4de' or 'p5e'?"),
        ("trn3", "Did you mean 'trn1' or 'trn2'?"),
        ("g6e.48xlrge", "Did you mean 'ml.g6e.48xlarge'?"),
        ("m5.large", "Known: ml.trn1.2xlarge"),
    ],
)
def test_an_unknown_type_is_answered_with_what_is_near(asked: str, near: str) -> None:
    """Whoever knows only the accelerator, or a newer family, finds the type to name."""
    with pytest.raises(UnknownInstance, match=re.escape(f"No figures for instance type {asked!r}. {near}")):
        instance_type(asked)


def test_all_unknown_types_are_named_at_once() -> None:
    """With what is near to each; the known ones are not."""
    asked = ["l40s", "trn1", "p3"]
    said = r"type 'l40s'\. It is .* type 'p3'\. .*Known: "
    with pytest.raises(UnknownInstance, match=said):
        compare(Workload.transformer("bert-base"), asked, FullScale(train_samples=9))
    with pytest.raises(UnknownInstance, match=said):
        plan_for("BERT-Base", asked)
    with pytest.raises(UnknownInstance, match=said):
        shown_beside("ml.trn1.2xlarge", asked)
