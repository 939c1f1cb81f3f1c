"""The command `serve`: SageMaker's contract for a container of an endpoint."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
import pytest
import torch
from conftest import FORKED, SCRIPTS
from test_requirements import wheel

JSON = {"Content-Type": "application/json"}
ATTRIBUTES = "X-Amzn-SageMaker-Custom-Attributes"
HANDLERS = {"SAGEMAKER_PROGRAM": "served.py", "SAGEMAKER_SUBMIT_DIRECTORY": str(SCRIPTS)}


class Container:
    """One `serve`, as a process of this container."""

    def __init__(self, model: Path, **environment: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._log = model.with_suffix(".log")
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                ["serve"],
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    "SM_MODEL_DIR": str(model),
                    "SAGEMAKER_BIND_TO_PORT": str(self.port),
                    **environment,
                },
            )

    @property
    def log(self) -> str:
        """What it has printed."""
        return self._log.read_text()

    def request(self, method: str, path: str, body=None, headers=None):
        """Status, headers and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.headers, response.read()

    def invoke(self, **data):
        """Status of an invocation in JSON, and the answer as text or what its JSON says."""
        status, _, body = self.request("POST", "/invocations", json.dumps(data), JSON)
        return status, json.loads(body) if body.startswith(b"{") else body.decode()

    def ping(self) -> int:
        """The status of /ping; 0 when nobody listens."""
        try:
            return self.request("GET", "/ping")[0]
        except ConnectionError:
            return 0

    def ready(self) -> None:
        """Wait for /ping's 200."""
        while self.ping() != 200:
            assert self.process.poll() is None, self.log
            time.sleep(0.05)


@contextlib.contextmanager
def serving(model: Path, **environment: str) -> Iterator[Container]:
    """A container that is started, and not waited for."""
    model.mkdir(exist_ok=True)
    container = Container(model, **environment)
    try:
        yield container
    finally:
        container.process.terminate()
        container.process.wait()


def ends(model: Path, **environment: str) -> tuple[int, str]:
    """Exit code and log of a container that ends by itself."""
    with serving(model, **environment) as container:
        code = container.process.wait()
        return code, container.log


def wait_until_gone(pid: int) -> None:
    """It was killed, and ends as soon as the machine lets it."""
    deadline = time.monotonic() + 60
    while not gone(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def gone(pid: int) -> bool:
    """Whether a process has ended, be it that nobody has asked how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Two workers with the handlers of scripts/served.py."""
    model = tmp_path_factory.mktemp("served") / "model"
    with serving(model, SAGEMAKER_MODEL_SERVER_WORKERS="2", **HANDLERS) as container:
        while container.ping() == 0:
            assert container.process.poll() is None, container.log
        # One worker has the model and answers; the other does not have it yet.
        assert container.invoke()[0] == 200, container.log
        assert container.ping() == 503
        (model / "gate").touch()
        container.ready()
        container.model = model
        yield container


def test_an_invocation_is_answered_by_the_handlers(server):
    """Body, content type, attributes of both directions; the script and the model are where the variables say."""
    sent = {**JSON, "Accept": "application/json; verbose", ATTRIBUTES: "trace=1"}
    status, headers, body = server.request("POST", "/invocations", '{"text": "é"}'.encode(), sent)
    answer = json.loads(body)
    assert (status, answer["text"], answer["attributes"]) == (200, "é", "trace=1")
    assert answer["model_dir"] == str(server.model)
    assert headers["Content-Type"] == "application/json; verbose"
    assert headers[ATTRIBUTES] == "from the handler"
    _, headers, body = server.request("POST", "/invocations", "{}", {**JSON, "Accept": "*/*"})
    assert (headers["Content-Type"], json.loads(body)["attributes"]) == ("application/json", None)


def test_a_body_of_20_mb_arrives_whole(server):
    """As large as SageMaker lets it be, and what is no text stays bytes."""
    body = b"\xff" * 20_000_000
    status, _, answer = server.request(
        "POST", "/invocations", body, {"Content-Type": "application/octet-stream"}
    )
    assert (status, json.loads(answer)["length"]) == (200, len(body))


@pytest.mark.parametrize(
    ("body", "content_type", "words"),
    [
        ('{"raise": "no such flight"}', "application/json", "RuntimeError: no such flight"),
        ("{not JSON", "application/json", "json.decoder.JSONDecodeError"),
        ("", "application/json", "json.decoder.JSONDecodeError"),
        (b"\xff\xfe", "application/json", "UnicodeDecodeError"),
        ("a,b", "text/csv", "ValueError: text/csv is not for me"),
        ("{}", None, "ValueError: None is not for me"),
    ],
)
def test_an_error_of_a_handler_is_the_answer_and_the_server_goes_on(server, body, content_type, words):
    """Status 500 with the toolkit's words: the message, then the traceback, which the log has too."""
    pids = server_pids(server)
    status, _, answer = server.request(
        "POST", "/invocations", body, {"Content-Type": content_type} if content_type else {}
    )
    assert (status, answer.decode().splitlines()[1]) == (500, "Traceback (most recent call last):")
    assert words in answer.decode()
    assert words in server.log.splitlines()[-1]
    assert server_pids(server) == pids


def server_pids(server) -> set[int]:
    """Which processes answer: with two at once, both."""
    with ThreadPoolExecutor(2) as pool:
        one, two = (server.model / name for name in ("one", "two"))
        asked = [
            pool.submit(server.invoke, touch=str(mine), until=str(other))
            for mine, other in ((one, two), (two, one))
        ]
        pids = {answer.result()[1]["pid"] for answer in asked}
    one.unlink()
    two.unlink()
    assert len(pids) == 2
    return pids


def test_ping_is_answered_while_all_workers_are_busy(server, tmp_path):
    """No handler keeps the server from saying that it lives; a third request waits for a worker."""
    gate = tmp_path / "gate"
    with ThreadPoolExecutor(3) as pool:
        begun = [tmp_path / name for name in ("one", "two")]
        asked = [pool.submit(server.invoke, touch=str(path), until=str(gate)) for path in begun]
        while not all(path.exists() for path in begun):
            time.sleep(0.01)
        asked.append(pool.submit(server.invoke))
        assert server.ping() == 200
        assert not any(answer.done() for answer in asked)
        gate.touch()
        assert [answer.result()[0] for answer in asked] == [200, 200, 200]


def test_what_is_no_answer_and_what_is_not_served(server):
    """An object that cannot be sent, a client that hangs up in its body, other paths and methods, no HTTP at all."""
    status, answer = server.invoke(object=True)
    assert (status, answer["message"]) == (503, "Unsupported model output data type.")
    for words in (
        b"POST /invocations HTTP/1.1\r\nContent-Length: 9\r\n\r\n{",
        b"\x16\x03\x01 no HTTP\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(words)
    assert server.request("GET", "/execution-parameters")[0] == 404
    assert server.request("GET", "/invocations")[0] == 405
    assert server.invoke()[0] == 200


def test_a_worker_that_takes_too_long_or_dies_is_replaced_and_sigterm_ends_all(tmp_path):
    """The request answers 500, another process with the model the next one; SIGTERM waits for no handler."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "gate").touch()
    with serving(model, SAGEMAKER_MODEL_SERVER_TIMEOUT="15", **HANDLERS) as container:
        container.ready()
        first = container.invoke()[1]["pid"]
        status, answer = container.invoke(hang=str(tmp_path / "started"))
        assert (status, answer["code"], answer["type"]) == (500, 500, "InternalServerException")
        assert "SAGEMAKER_MODEL_SERVER_TIMEOUT, 15 s" in answer["message"]
        second = container.invoke()[1]["pid"]
        assert second != first
        wait_until_gone(first)
        wait_until_gone(int((tmp_path / "started").read_text()))
        status, answer = container.invoke(exit=3)
        assert (status, answer["message"]) == (500, "Worker died: its process ended (exit code 3).")
        third = container.invoke()[1]["pid"]
        assert third not in (first, second)
        assert container.ping() == 200
        with ThreadPoolExecutor(1) as pool:
            begun = tmp_path / "begun"
            asked = pool.submit(container.invoke, touch=str(begun), until=str(tmp_path / "never"))
            while not begun.exists():
                time.sleep(0.01)
            container.process.send_signal(signal.SIGTERM)
            assert container.process.wait(timeout=300) == 0
            wait_until_gone(third)
            assert asked.exception() or asked.result()[0] == 500
            assert "Exception" not in container.log.partition("exit code 3")[2]


def test_a_model_that_cannot_be_loaded_ends_the_container_with_its_traceback(tmp_path):
    """The log's last words are the error's, whatever the number of workers."""
    code = tmp_path / "model" / "code"
    code.mkdir(parents=True)
    (code / "inference.py").write_text(
        "def model_fn(model_dir):\n    raise SystemExit('no weights in ' + model_dir)\n"
    )
    status, log = ends(tmp_path / "model", SAGEMAKER_MODEL_SERVER_WORKERS="2")
    assert status == 1
    assert log.strip().splitlines()[-1] == f"SystemExit: no weights in {tmp_path / 'model'}"
    assert "line 2, in model_fn" in log


@pytest.mark.parametrize(
    ("handlers", "words"),
    [
        (
            "import os\nos.kill(os.getpid(), 9)",
            "A worker has ended while it loaded the model: signal SIGKILL.",
        ),
        ("import neuronx_distributed", "ModuleNotFoundError: No module named 'neuronx_distributed'"),
    ],
)
def test_the_last_line_says_why_there_is_no_model(tmp_path, handlers, words):
    """Also of a process that just ends, and of a package that is not in the image."""
    code = tmp_path / "model" / "code"
    code.mkdir(parents=True)
    (code / "inference.py").write_text(handlers)
    status, log = ends(tmp_path / "model")
    assert (status, log.strip().splitlines()[-1].startswith(words)) == (1, True), log
    assert ("Windtunnel: neuronx_distributed is not in the image." in log) == ("neuronx" in handlers)


def test_requirements_are_installed_before_the_model_is_loaded(tmp_path, uninstall):
    """From the model's folder, which stays as it is; pip's words are in the log."""
    own = "windtunnel-served-requirement"
    uninstall(own)
    code = tmp_path / "model" / "code"
    code.mkdir(parents=True)
    wheel(code, own, "1")
    (code / "requirements.txt").write_text(f"./{own.replace('-', '_')}-1-py3-none-any.whl\n")
    (code / "inference.py").write_text(
        f"import {own.replace('-', '_')}\ndef model_fn(model_dir): pass\n"
        "def transform_fn(model, body, content_type, accept):\n    return 'here', 'text/plain'\n"
    )
    before = sorted(code.rglob("*"))
    with serving(tmp_path / "model", PYTHONDONTWRITEBYTECODE="1") as container:
        container.ready()
        status, headers, body = container.request("POST", "/invocations", "{}", JSON)
    assert (status, headers["Content-Type"], body) == (200, "text/plain", b"here")
    assert f"Successfully installed {own}-1" in container.log
    assert sorted(code.rglob("*")) == before


def test_requirements_that_cannot_be_installed_end_the_container(tmp_path):
    """The last line says so, and what pip says stands above."""
    code = tmp_path / "model" / "code"
    code.mkdir(parents=True)
    (code / "requirements.txt").write_text("windtunnel-no-such-package==1\n")
    status, log = ends(tmp_path / "model", PIP_NO_INDEX="1")
    assert status == 1
    assert "No matching distribution found for windtunnel-no-such-package==1" in log
    assert log.splitlines()[-1].startswith("[windtunnel] error: pip cannot install")


def test_a_model_without_handlers_is_served_by_aws_own(tmp_path):
    """A TorchScript file, JSON and NPY in, JSON, CSV and NPY out; the source's address in S3 is not asked for."""
    model = tmp_path / "model"
    model.mkdir()
    torch.jit.save(torch.jit.trace(torch.nn.ReLU(), torch.zeros(2)), model / "model.pt")
    saved = io.BytesIO()
    numpy.save(saved, numpy.array([[-1.0, 2.0]], dtype="float32"))
    environment = {
        "SAGEMAKER_SUBMIT_DIRECTORY": "s3://bucket/sourcedir.tar.gz",
        "SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT": "text/csv",
    }
    with serving(model, **environment) as container:
        container.ready()

        def answers(body, content_type, **accept):
            sent = {"Content-Type": content_type, **accept}
            status, headers, body = container.request("POST", "/invocations", body, sent)
            return status, headers["Content-Type"], body

        assert answers("[[-1, 2]]", "application/json") == (200, "text/csv", b"0.0,2.0\n")
        assert answers(saved.getvalue(), "application/x-npy", Accept="application/json") == (
            200,
            "application/json",
            b"[[0.0, 2.0]]",
        )
        status, kind, body = answers("-1,2", "text/csv", Accept="application/x-npy")
        assert (status, kind, numpy.load(io.BytesIO(body)).tolist()) == (200, "application/x-npy", [0.0, 2.0])
        status, _, body = answers("<x/>", "text/xml")
        assert (status, b"Content type text/xml is not supported by this framework." in body) == (500, True)


def test_a_model_traced_for_a_core_answers_as_the_model_itself(tmp_path):
    """Traced and saved by another process; the handlers load it as AWS's examples for Inferentia and Trainium do."""
    code = tmp_path / "model" / "code"
    code.mkdir(parents=True)
    (code / "inference.py").write_text(
        "import os, torch, torch_neuronx\n"
        "def model_fn(model_dir):\n    return torch.jit.load(os.path.join(model_dir, 'model.pt'))\n"
        "def predict_fn(data, model):\n"
        "    words = data.long()\n    return model(words, torch.ones_like(words))[0]\n"
    )
    environment = {
        **os.environ,
        "SAY_TO": str(tmp_path / "said"),
        "SM_MODEL_DIR": str(tmp_path / "model"),
        "WINDTUNNEL_INSTANCE_TYPE": "ml.trn1.2xlarge",
    }
    subprocess.run([*FORKED, str(SCRIPTS / "traced_bert.py")], env=environment, check=True)
    said = json.loads((tmp_path / "said.0").read_text().removeprefix("SAY "))
    with serving(tmp_path / "model", WINDTUNNEL_INSTANCE_TYPE="ml.trn1.2xlarge") as container:
        container.ready()
        status, _, body = container.request("POST", "/invocations", json.dumps(said["words"]), JSON)
    assert status == 200, body
    assert numpy.abs(numpy.array(json.loads(body)) - numpy.array(said["logits"])).max() < 1e-3
