"""Windtunnel's own SDK deploys to the backend: a model with its code, an answer, the log, the end."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import LOCAL_IMAGE, Backend, wait_for
from tests.fakes.archive import archive
from windtunnel import (
    AsyncInferenceConfig,
    AsyncPredictor,
    EndpointFailed,
    EndpointNotFound,
    JobNotFinished,
    Model,
    ServiceCallFailed,
    TransformJob,
    TransformJobFailed,
    WaiterConfig,
    WaitTimeout,
)
from windtunnel.hosting.endpoint import Endpoint
from windtunnel.session.boto3_endpoints import BotoEndpoints
from windtunnel.session.boto3_training import BotoService
from windtunnel.session.boto3_transforms import BotoTransforms
from windtunnel.session.local import LocalSession


@pytest.fixture
def session(backend: Backend, tmp_path: Path) -> LocalSession:
    """The SDK's session over the test's server."""

    class Ours:
        def client(self, service: str, **keywords: Any) -> Any:
            keywords.pop("config", None)
            return backend.client(service, **keywords)

    calls = BotoService(lambda: (Ours(), {}), local=True)
    endpoints, transforms = BotoEndpoints(calls), BotoTransforms(calls)
    return LocalSession(tmp_path / "other", service=calls, endpoints=endpoints, transforms=transforms)


def model(session: LocalSession, folder: Path, **more: Any) -> Model:
    """A model with a script, from an archive of this machine."""
    (folder / "inference.py").write_text("def model_fn(folder): ...\n")
    (folder / "model.tar.gz").write_bytes(archive(("weights.txt", b"1 2 3")))
    given: dict[str, Any] = {"entry_point": str(folder / "inference.py"), **more}
    return Model(LOCAL_IMAGE, str(folder / "model.tar.gz"), session=session, **given)


def test_deploy_ask_and_delete(
    session: LocalSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that the SDK asks is served as it expects it."""
    predictor = model(session, tmp_path, env={"TAG": "a:"}).deploy(1, "ml.c5.xlarge", endpoint_name="e")
    assert "InService after" in capsys.readouterr().out
    assert predictor.predict(b"hello").startswith(b"a:")
    fleet, _ = Endpoint("e", session).instances_and_cost()
    assert fleet == [("ml.c5.xlarge", 1)]
    assert [one["EndpointName"] for one in session.endpoints.list_all()] == ["e"]
    assert list(Endpoint("e", session).logs())
    with pytest.raises(ServiceCallFailed, match="already existing"):
        model(session, tmp_path).deploy(1, "ml.c5.xlarge", endpoint_name="e")
    predictor.delete_endpoint()
    predictor.delete_model()
    wait_for(lambda: not session.endpoints.list_all())
    with pytest.raises(EndpointNotFound):
        predictor.predict(b"hello")


def test_questions_through_s3(session: LocalSession, tmp_path: Path) -> None:
    """An asynchronous predictor stores the question and waits for the answer, or says why there is none."""
    predictor = model(session, tmp_path, env={"TAG": "a:"}).deploy(
        1, "ml.c5.xlarge", endpoint_name="e", async_inference_config=AsyncInferenceConfig()
    )
    assert isinstance(predictor, AsyncPredictor)
    assert predictor.predict(b"hello") == b"a:hello"
    later = predictor.predict_async(b"sleep 0.3")
    with pytest.raises(JobNotFinished, match="WaiterConfig"):
        later.get_result()
    assert later.get_result(WaiterConfig()) == later.get_result() == b"a:sleep 0.3"
    with pytest.raises(WaitTimeout):
        predictor.predict(b"sleep 3", waiter_config=WaiterConfig(1, 0.1))
    with pytest.raises(ServiceCallFailed, match=r"ModelError.*it went wrong"):
        predictor.predict(b"status 500")
    predictor.delete_endpoint()


def test_one_that_does_not_come_up(session: LocalSession, tmp_path: Path) -> None:
    """The SDK has the backend's reason and the container's words."""
    with pytest.raises(EndpointFailed) as failed:
        model(session, tmp_path, env={"FAIL": "3"}).deploy(1, "ml.c5.xlarge", endpoint_name="e")
    assert "model_fn: no such file" in failed.value.log_tail
    assert failed.value.reason and "rm --endpoint e" in failed.value.next_step


def test_transform(session: LocalSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A local folder goes to S3, each file comes back as another; one that fails says which and why."""
    (tmp_path / "data").mkdir()
    for name, text in (("a.csv", "1\n2\n"), ("b.csv", "3\n")):
        (tmp_path / "data" / name).write_text(text)
    data = session.upload_data(str(tmp_path / "data"), key_prefix="in")
    transformer = model(session, tmp_path, env={"TAG": "a:"}).transformer(
        1, "ml.c5.xlarge", strategy="SingleRecord", assemble_with="Line"
    )
    transformer.transform(data, content_type="text/csv", split_type="Line")
    printed = capsys.readouterr().out
    assert (
        "serving a:" in printed and "BatchStrategy=SINGLE_RECORD" in printed and "Completed after" in printed
    )
    bucket, _, prefix = str(transformer.output_path).removeprefix("s3://").partition("/")
    found = {}
    for name in ("a.csv.out", "b.csv.out"):
        out = io.BytesIO()
        assert session.service.get_object(bucket, f"{prefix}/{name}", out)
        found[name] = out.getvalue()
    assert found == {"a.csv.out": b"a:1\na:2\n", "b.csv.out": b"a:3\n"}
    (tmp_path / "data" / "b.csv").write_text("status 400\n")
    session.upload_data(str(tmp_path / "data"), key_prefix="in")
    with pytest.raises(TransformJobFailed, match=r"in/b.csv: 400 from the container: it went wrong"):
        transformer.transform(data, split_type="Line", logs=False)
    job = transformer.latest_transform_job
    assert job is not None
    assert TransformJob(job.name, session).describe()["ModelName"] == transformer.model_name
    with pytest.raises(ServiceCallFailed, match="in status Failed"):
        transformer.stop_transform_job()
    transformer.delete_model()
