"""From a training job to an endpoint that answers, in real containers."""

from __future__ import annotations

import pytest

from tests.docker.conftest import SCRIPTS, estimator
from windtunnel import (
    EndpointFailed,
    JSONDeserializer,
    JSONSerializer,
    LocalSession,
    NumpyDeserializer,
    NumpySerializer,
    ServiceCallFailed,
)

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


def test_a_model_that_cannot_be_loaded_says_why(session: LocalSession) -> None:
    """With the traceback's last line, and nothing runs on."""
    job = estimator(session, "train.py", source_dir=SERVED).fit()
    with pytest.raises(EndpointFailed, match="no weights in /opt/ml/model"):
        job.deploy(1, "ml.c5.xlarge", entry_point="broken.py", source_dir=SERVED)
