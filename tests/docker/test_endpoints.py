"""From a training job to an endpoint that answers, in real containers."""

from __future__ import annotations

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
)
from windtunnel.hosting.endpoint import Endpoint

SERVED = str(SCRIPTS / "served")
pytestmark = pytest.mark.docker


def test_what_was_trained_is_served(session: LocalSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Two endpoints at once, of two jobs' worth of clients; errors are the handlers' own; then nothing is left."""
    job = estimator(session, "train.py", source_dir=SERVED).fit()
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


def test_a_model_that_cannot_be_loaded_says_why(session: LocalSession) -> None:
    """With the traceback's last line, and nothing runs on."""
    job = estimator(session, "train.py", source_dir=SERVED).fit()
    with pytest.raises(EndpointFailed, match="no weights in /opt/ml/model"):
        job.deploy(1, "ml.c5.xlarge", entry_point="broken.py", source_dir=SERVED)
