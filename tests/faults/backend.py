"""The real server as a process that may be killed, and a client that asks again until it answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tests.faults.engine import PrivateEngine

_PATIENCE_S = 300.0
TERMINAL = ("Completed", "Failed", "Stopped")
_SESSION = boto3.session.Session(
    aws_access_key_id="none", aws_secret_access_key="none", region_name="us-east-1"
)


class Backend:
    """``python -m windtunnel_local serve`` in a home of its own."""

    def __init__(self, home: Path, engine: PrivateEngine | None = None, **variables: str) -> None:
        """Nothing runs yet. ``engine``: None takes the machine's. ``variables``: more of its environment."""
        self.home = home
        self._engine = engine
        self._variables = variables
        self.process: subprocess.Popen[bytes] | None = None
        self._clients: dict[str, Any] = {}

    def launch(self) -> subprocess.Popen[bytes]:
        """Start a process that serves the home, or finds that one does. Does not wait."""
        home = self.home.parent
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("WINDTUNNEL_")},
            "WINDTUNNEL_HOME": str(self.home),
            "WINDTUNNEL_MEMORY_GIB": "0.25",
            "WINDTUNNEL_MAX_CORES": "64",
            "WINDTUNNEL_STOP_GRACE_SECONDS": "10",
            "WINDTUNNEL_IDLE_SECONDS": "120",
            **self._variables,
        }
        if self._engine is not None:
            environment["DOCKER_HOST"] = self._engine.host
        with (home / "backend.out").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "windtunnel_local", "serve"],
                env=environment,
                stdout=output,
                stderr=output,
            )

    def start(self) -> None:
        """Start the server; `call` waits for it."""
        self.process = self.launch()
        self._clients.clear()

    def kill(self) -> None:
        """SIGKILL."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it in order. Idempotent."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(_PATIENCE_S)
            self.process = None
        for client in self._clients.values():
            client.close()

    def call(self, service: str, operation: str, **arguments: Any) -> Any:
        """Call until a server answers; what it answers with an error is raised."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return getattr(self._client(service), operation)(**arguments)
            except (BotoCoreError, OSError, ValueError) as error:
                if time.monotonic() > deadline or self._failed():
                    raise AssertionError(f"no answer; {self.output()[-4000:]}") from error
                if client := self._clients.pop(service, None):
                    client.close()
                time.sleep(0.03)

    def output(self) -> str:
        """What all servers of this home wrote."""
        return (self.home.parent / "backend.out").read_text(errors="replace")

    def end_of(self, job: str) -> dict[str, Any]:
        """The job's description once it has ended."""
        deadline = time.monotonic() + _PATIENCE_S
        while (found := self.describe(job))["TrainingJobStatus"] not in TERMINAL:
            assert time.monotonic() < deadline, (found, self.output()[-6000:])
            time.sleep(0.1)
        return found

    def create(self, request: dict[str, Any]) -> None:
        """CreateTrainingJob; that it is there already means that an answer was lost."""
        try:
            self.call("sagemaker", "create_training_job", **request)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceInUse":
                raise

    def describe(self, job: str) -> dict[str, Any]:
        """DescribeTrainingJob."""
        answer: dict[str, Any] = self.call("sagemaker", "describe_training_job", TrainingJobName=job)
        return answer

    def log(self, job: str) -> list[str]:
        """All lines of a job's only host, the server's own left out."""
        group = "/aws/sagemaker/TrainingJobs"
        streams = self.call(
            "logs", "describe_log_streams", logGroupName=group, logStreamNamePrefix=f"{job}/"
        )["logStreams"]
        lines: list[str] = []
        for stream in streams:
            token: dict[str, str] = {}
            while True:
                names = {"logGroupName": group, "logStreamName": stream["logStreamName"]}
                page = self.call("logs", "get_log_events", startFromHead=True, **names, **token)
                lines += [event["message"] for event in page["events"]]
                if page["nextForwardToken"] == token.get("nextToken"):
                    break
                token = {"nextToken": page["nextForwardToken"]}
        return [line for line in lines if not line.startswith("Windtunnel: ")]

    def _failed(self) -> bool:
        """Whether the server has ended by itself, with an error."""
        code = None if self.process is None else self.process.poll()
        return code is not None and code > 0

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self.new_client(service)
        return self._clients[service]

    def new_client(self, service: str) -> Any:
        """Of the server that has left its note; asks once. Raises ``OSError`` while there is none."""
        note = json.loads((self.home / "backend.json").read_text())
        keys = json.loads((self.home / "credentials.json").read_text())
        return _SESSION.client(
            service,
            endpoint_url=note["endpoint"],
            aws_access_key_id=keys["access_key_id"],
            aws_secret_access_key=keys["secret_access_key"],
            config=Config(
                retries={"total_max_attempts": 1},
                connect_timeout=20,
                read_timeout=60,
                s3={"addressing_style": "path"},
            ),
        )
