"""Rounds of the fault test of an endpoint: clients that ask all the time, one SIGKILL, and how it goes on."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from tests.faults.serving import MODEL, ServingStage

NAME = "e"
_CLIENTS = 4
_PATIENCE_S = 300.0
_BEFORE_S, _AFTER_S = 0.5, 1.0
_IN_AWS_SHAPE = ("ServiceUnavailable", "ModelError", "InternalFailure")


@dataclass
class Round:
    """What one round showed. ``recovery_s``: from the kill until the endpoint answered again."""

    kind: str
    answered: int
    failed: Counter[str]
    slowest_s: float
    recovery_s: float
    faults: list[str]


class Asking:
    """Clients that ask one question after the other, and note what they get. `stop` them."""

    def __init__(self, client: Any) -> None:
        self.answered = 0
        self.failed: Counter[str] = Counter()
        self.slowest_s = 0.0
        self.wrong: list[str] = []
        self._client = client
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._ask, args=(n,)) for n in range(_CLIENTS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """After the requests under way. One that hangs is a fault."""
        self._over.set()
        for thread in self._threads:
            thread.join(_PATIENCE_S)
            if thread.is_alive():
                self.wrong.append("a request hangs")

    def _ask(self, number: int) -> None:
        count = 0
        while not self._over.is_set():
            count += 1
            body, begun, failure = f"{number} {count}".encode(), time.monotonic(), None
            try:
                answer = self._client.invoke_endpoint(EndpointName=NAME, Body=body)["Body"].read()
                if answer != body:
                    self.wrong.append(f"asked {body!r}, answered {answer!r}")
            except ClientError as error:
                failure = error.response["Error"]["Code"]
                if failure not in _IN_AWS_SHAPE:
                    self.wrong.append(str(error))
            except Exception as error:  # noqa: BLE001 - the server is away: its caller says whether it may be
                failure = type(error).__name__
                self._over.wait(0.02)
            with self._lock:
                self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
                self.answered += failure is None
                self.failed.update([failure] if failure else [])


class EndpointStage(ServingStage):
    """An endpoint on it."""

    def play(self, kind: str) -> Round:
        """One round. Blocks: some seconds."""
        asking = Asking(self.backend.new_client("sagemaker-runtime"))
        try:
            time.sleep(self.rng.uniform(0.1, _BEFORE_S))
            begun = time.monotonic()
            self.kill(kind)
            self._await_answer()
            recovery_s = time.monotonic() - begun
            time.sleep(_AFTER_S)
        finally:
            asking.stop()
        faults = list(asking.wrong)
        status = self.backend.call("sagemaker", "describe_endpoint", EndpointName=NAME)["EndpointStatus"]
        if status != "InService":
            faults.append(f"it is {status}")
        if kind != "server" and (lost := asking.failed.keys() - set(_IN_AWS_SHAPE)):
            faults.append(f"the server answered with nothing: {', '.join(lost)}")
        return Round(kind, asking.answered, asking.failed, asking.slowest_s, recovery_s, faults)

    def left(self) -> list[str]:
        """What is there when the endpoint is deleted, and should not be."""
        self.backend.call("sagemaker", "delete_endpoint", EndpointName=NAME)
        deadline = time.monotonic() + _PATIENCE_S
        while self.backend.call("sagemaker", "list_endpoints")["Endpoints"] and time.monotonic() < deadline:
            time.sleep(0.1)
        return self.remains()

    def _prepare(self) -> None:
        super()._prepare()
        call = self.backend.call
        variant = {
            "VariantName": "AllTraffic",
            "ModelName": MODEL,
            "InstanceType": "ml.c5.large",
            "InitialInstanceCount": 1,
        }
        call("sagemaker", "create_endpoint_config", EndpointConfigName=NAME, ProductionVariants=[variant])
        call("sagemaker", "create_endpoint", EndpointName=NAME, EndpointConfigName=NAME)
        self._await_answer()

    def _await_answer(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                self.backend.call("sagemaker-runtime", "invoke_endpoint", EndpointName=NAME, Body=b"again")
            except ClientError as error:
                if time.monotonic() > deadline:
                    raise AssertionError(self.backend.output()[-4000:]) from error
                time.sleep(0.05)
            else:
                return
