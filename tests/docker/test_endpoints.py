"""From a training job to an endpoint that answers, and to answers of whole files, in real containers."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from tests.docker.conftest import SCRIPTS, estimator, own_session
from windtunnel import (
    EndpointFailed,
    JSONDeserializer,
    JSONSerializer,
    LocalSession,
    NumpyDeserializer,
    NumpySerializer,
    PyTorchModel,
    ServiceCallFailed,
    TrainingJob,
    TransformJobFailed,
)
from windtunnel.hosting.endpoint import Endpoint
from windtunnel.priceperf import Architecture
from windtunnel.reports.inference.load import Load
from windtunnel.reports.inference.measured import measured
from windtunnel.reports.inference.modelled import modelled

SERVED = str(SCRIPTS / "served")
TRACED = Architecture(2, 64, 4, 128, 64, 100, "encoder")
"""What served/trace.py traces."""
pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def job(session: LocalSession) -> TrainingJob:
    """One that has left weights, which the tests deploy."""
    return estimator(session, "train.py", source_dir=SERVED).fit(logs=False)


def test_what_was_trained_is_served(job: TrainingJob, capsys: pytest.CaptureFixture[str]) -> None:
    """Two endpoints at once, of two jobs' worth of clients; errors are the handlers' own; then nothing is left."""
    json_endpoint = job.deploy(
        1,
        "ml.c5.xlarge",
        entry_point="inference.py",
        source_dir=SERVED,
        serializer=JSONSerializer(),
        deserializer=JSONDeserializer(),
    )
    numpy_endpoint = job.deploy(
        1,
        "ml.c5.xlarge",
        entry_point="inference.py",
        source_dir=SERVED,
        serializer=NumpySerializer(),
        deserializer=NumpyDeserializer(),
    )
    assert json_endpoint.predict([[1, 2]]) == [[2.0, 4.0]]
    assert numpy_endpoint.predict([[1, 2], [3, 4]]).tolist() == [[2.0, 4.0], [6.0, 8.0]]
    with pytest.raises(ServiceCallFailed, match="at most three rows"):
        json_endpoint.predict([[1, 2]] * 4)
    assert json_endpoint.predict([[0, 1]]) == [[0.0, 2.0]]
    for predictor in (json_endpoint, numpy_endpoint):
        predictor.delete_model()
        predictor.delete_endpoint()
    assert "Endpoint" in capsys.readouterr().out


def test_a_model_that_needs_more_memory_than_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason names memory, how much there is, and what raises it."""
    monkeypatch.setattr("tests.docker.conftest.MEMORY_GIB", "1")
    with tarfile.open(tmp_path / "model.tar.gz", "w:gz"):
        pass
    with own_session(tmp_path / "home") as session:
        greedy = PyTorchModel(
            str(tmp_path / "model.tar.gz"),
            entry_point="greedy.py",
            source_dir=SERVED,
            framework_version="2.6",
            session=session,
        )
        with pytest.raises(EndpointFailed, match=r"killed for memory.* 1 GiB here; WINDTUNNEL_MEMORY_GIB"):
            greedy.deploy(1, "ml.c5.xlarge", endpoint_name="greedy")
        Endpoint("greedy", session).delete()


def test_a_model_that_cannot_be_loaded_says_why(job: TrainingJob) -> None:
    """With the traceback's last line, and nothing runs on."""
    with pytest.raises(EndpointFailed, match="no weights in /opt/ml/model"):
        job.deploy(1, "ml.c5.xlarge", entry_point="broken.py", source_dir=SERVED)


def test_a_traced_bert_answers_as_the_model_itself(session: LocalSession, tmp_path: Path) -> None:
    """On both kinds of NeuronCores; other shapes are refused in the device's words; under load none fails.

    Its report has what was measured here, and apart from it what is modelled for the instances.
    """
    job = estimator(session, "trace.py", source_dir=SERVED).fit()
    job.download_model(tmp_path)
    plain = json.loads((tmp_path / "plain.json").read_text())
    for instance_type in ("ml.trn1.2xlarge", "ml.inf2.xlarge"):
        endpoint = job.deploy(
            1,
            instance_type,
            entry_point="traced.py",
            source_dir=SERVED,
            serializer=JSONSerializer(),
            deserializer=JSONDeserializer(),
        )
        for answer, wanted in zip(endpoint.predict(plain["question"]), plain["logits"], strict=True):
            assert answer == pytest.approx(wanted, abs=1e-3)
        with pytest.raises(ServiceCallFailed, match=r"received \[1, 8\], expected \[2, 32\]"):
            endpoint.predict([[[1] * 8], [[1] * 8]])
        report = measured(
            endpoint.endpoint_name,
            lambda endpoint=endpoint: endpoint.predict(plain["question"]),  # type: ignore[misc]
            Load(duration_s=0.5, clients=4),
            local=True,
            modelled=modelled(TRACED, [instance_type], batch_sizes=[2], sequence_length=32),
        )
        assert report.answers.asked >= 4 and not report.answers.errors
        assert "Measured here" in str(report) and "modelled; 2 cores" in str(report)
        endpoint.delete_model()
        endpoint.delete_endpoint()


def test_what_was_trained_answers_whole_files(
    session: LocalSession, job: TrainingJob, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By AWS's handlers, on two instances; a record that they refuse fails its file, with their words in the log."""
    for number in range(4):
        (tmp_path / f"{number}.csv").write_text("".join(f"{number},{line}\n" for line in range(3)))
    transformer = job.transformer(
        2,
        "ml.c5.xlarge",
        strategy="MultiRecord",
        assemble_with="Line",
        accept="text/csv",
        entry_point="inference.py",
        source_dir=SERVED,
    )
    data = session.upload_data(str(tmp_path), key_prefix="batch")
    transformer.transform(data, content_type="text/csv", split_type="Line", join_source="Input")
    assert (
        "MaxConcurrentTransforms=1, MaxPayloadInMB=6, BatchStrategy=MULTI_RECORD" in capsys.readouterr().out
    )
    for number in range(4):
        expected = "".join(f"{number},{line},{2.0 * number},{2.0 * line}\n" for line in range(3))
        assert stored(session, f"{transformer.output_path}/{number}.csv.out") == expected
    (tmp_path / "3.csv").write_text("1,2\n" * 4)
    session.upload_data(str(tmp_path), key_prefix="batch")
    with pytest.raises(TransformJobFailed, match=r"batch/3.csv: 500 from the container") as failed:
        transformer.transform(
            data, content_type="text/csv", split_type="Line", model_client_config={"InvocationsMaxRetries": 0}
        )
    assert any("at most three rows" in line for line in failed.value.log_tail)
    assert stored(session, f"{transformer.output_path}/2.csv.out")
    transformer.delete_model()


def stored(session: LocalSession, uri: str) -> str:
    """The text of an object."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    out = io.BytesIO()
    assert session.service.get_object(bucket, key, out), uri
    return out.getvalue().decode()
