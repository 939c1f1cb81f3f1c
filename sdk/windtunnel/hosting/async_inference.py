"""Asynchronous inference: requests and answers go through S3, for large inputs and slow models. Names as in SDK v2."""

from __future__ import annotations

import io
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windtunnel.errors import ConfigurationError, JobNotFinished, ServiceCallFailed, WaitTimeout
from windtunnel.hosting.predictor import Predictor
from windtunnel.request.inputs import split_s3
from windtunnel.session.session import Session


@dataclass
class AsyncInferenceConfig:
    """Argument of `deploy(async_inference_config=...)`, which makes the endpoint asynchronous.

    Args:
        output_path: ``s3://`` prefix of answers; default: in the session's bucket.
        max_concurrent_invocations_per_instance: requests that an instance gets at once; default: AWS's choice, here 4.
        kms_key_id: encrypts the answers.
        notification_config: SNS topics that are notified, as in SDK v2; on AWS only.
        failure_path: ``s3://`` prefix of errors, for requests without an answer; default: in the session's bucket.
    """

    output_path: str | None = None
    max_concurrent_invocations_per_instance: int | None = None
    kms_key_id: str | None = None
    notification_config: Mapping[str, Any] | None = None
    failure_path: str | None = None

    def request(self, session: Session, endpoint: str) -> dict[str, Any]:
        """AsyncInferenceConfig's members. Creates the answers' buckets, if `Session.ensure_buckets` may do so."""
        own = f"s3://{session.default_bucket()}/async-endpoint"
        output: dict[str, Any] = {
            "S3OutputPath": self.output_path or f"{own}-outputs/{endpoint}",
            "S3FailurePath": self.failure_path or f"{own}-failures/{endpoint}",
        }
        session.ensure_buckets(frozenset(split_s3(uri)[0] for uri in output.values()))
        if self.kms_key_id:
            output["KmsKeyId"] = self.kms_key_id
        if self.notification_config:
            output["NotificationConfig"] = dict(self.notification_config)
        found: dict[str, Any] = {"OutputConfig": output}
        if self.max_concurrent_invocations_per_instance:
            at_once = self.max_concurrent_invocations_per_instance
            found["ClientConfig"] = {"MaxConcurrentInvocationsPerInstance": at_once}
        return found


@dataclass(frozen=True)
class WaiterConfig:
    """How long to wait for an answer: ``max_attempts`` times ``delay`` seconds. A local session polls more often."""

    max_attempts: int = 60
    delay: float = 15


class AsyncInferenceResponse:
    """An answer that the endpoint will store in S3."""

    def __init__(self, predictor_async: AsyncPredictor, output_path: str, failure_path: str | None) -> None:
        self.predictor_async = predictor_async
        self.output_path = output_path
        self.failure_path = failure_path
        self._result: tuple[Any] | None = None

    def get_result(self, waiter_config: WaiterConfig | None = None) -> Any:
        """The answer as the predictor's deserializer gives it.

        Args:
            waiter_config: how long to wait for the answer; default: do not wait.

        Raises:
            JobNotFinished: there is no answer yet (without ``waiter_config``).
            WaitTimeout: there is still no answer; the endpoint goes on.
            ServiceCallFailed: code ``ModelError``: the request failed; the message says why.
        """
        if self._result is None:
            self._result = self._look() if waiter_config is None else self._waited(waiter_config)
        if self._result is None:
            raise JobNotFinished(
                f"There is no answer at {self.output_path} yet: get_result(WaiterConfig()) waits for it."
            )
        return self._result[0]

    def _waited(self, waiter: WaiterConfig) -> tuple[Any]:
        whole_s, session = waiter.max_attempts * waiter.delay, self.predictor_async.session
        pause_s = min(waiter.delay, session.describe_poll_s)
        until = time.monotonic() + whole_s
        while (found := self._look()) is None:
            if time.monotonic() > until:
                raise WaitTimeout(
                    f"There is no answer at {self.output_path} after {whole_s:g} s. The endpoint goes on: get_result()"
                    " looks again."
                )
            time.sleep(pause_s)
        return found

    def _look(self) -> tuple[Any] | None:
        predictor = self.predictor_async.predictor
        data = self._stored(self.output_path)
        if data is not None:
            accept = predictor.deserializer.ACCEPT
            kind = accept if isinstance(accept, str) else accept[0]
            return (predictor.deserializer.deserialize(io.BytesIO(data), kind),)
        why = None if self.failure_path is None else self._stored(self.failure_path)
        if why is not None:
            raise ServiceCallFailed("InvokeEndpointAsync", "ModelError", why.decode(errors="replace"))
        return None

    def _stored(self, uri: str) -> bytes | None:
        out = io.BytesIO()
        found = self.predictor_async.session.service.get_object(*split_s3(uri), out)
        return out.getvalue() if found else None


class AsyncPredictor:
    """Sends requests to an asynchronous endpoint through S3. The constructor makes no call.

    Args:
        predictor: the endpoint's `Predictor`; its serializer and deserializer are used.
        name: a part of the key of each uploaded request; default: the endpoint's name.
    """

    def __init__(self, predictor: Predictor, name: str | None = None) -> None:
        self.predictor = predictor
        self.name = name
        self.endpoint_name = predictor.endpoint_name
        self.session = self.sagemaker_session = predictor.session

    def predict(
        self,
        data: Any = None,
        input_path: str | None = None,
        initial_args: Mapping[str, Any] | None = None,
        inference_id: str | None = None,
        waiter_config: WaiterConfig = WaiterConfig(),
    ) -> Any:
        """Call `predict_async` and wait for the answer. Blocks: see `AsyncInferenceResponse.get_result`."""
        return self.predict_async(data, input_path, initial_args, inference_id).get_result(waiter_config)

    def predict_async(
        self,
        data: Any = None,
        input_path: str | None = None,
        initial_args: Mapping[str, Any] | None = None,
        inference_id: str | None = None,
    ) -> AsyncInferenceResponse:
        """Send a request, and return where its answer will be. Does not wait for the answer.

        Args:
            data: input for the serializer; its result is stored at ``input_path``, or in the session's bucket.
            input_path: ``s3://`` URI where ``data`` is stored; without ``data``, of an input that is stored already.
            initial_args: members of InvokeEndpointAsync, e.g. ``{"InvocationTimeoutSeconds": 3600}``.
            inference_id: an id of the request; default: made by SageMaker.

        Raises:
            ConfigurationError: neither ``data`` nor ``input_path`` is given.
            ServiceCallFailed: S3 or SageMaker refused.
        """
        if data is None and input_path is None:
            raise ConfigurationError("Give data=, or input_path=: the s3:// URI of a question.")
        request: dict[str, Any] = {"EndpointName": self.endpoint_name}
        if data is not None:
            input_path = self._uploaded(data, input_path)
            request["ContentType"] = self.predictor.serializer.CONTENT_TYPE
        accept: str | Sequence[str] = self.predictor.deserializer.ACCEPT
        request["Accept"] = accept if isinstance(accept, str) else ", ".join(accept)
        if inference_id:
            request["InferenceId"] = inference_id
        request |= {**(initial_args or {}), "InputLocation": input_path}
        return AsyncInferenceResponse(self, *self.session.endpoints.invoke_async(request))

    def delete_endpoint(self, delete_endpoint_config: bool = True) -> None:
        """As `Predictor.delete_endpoint`. Requests in the queue get no answer any more."""
        self.predictor.delete_endpoint(delete_endpoint_config)

    def delete_model(self) -> None:
        """As `Predictor.delete_model`."""
        self.predictor.delete_model()

    def _uploaded(self, data: Any, uri: str | None) -> str:
        service = self.session.service
        if uri is None:
            bucket = self.session.default_bucket()
            service.ensure_bucket(bucket)
            uri = f"s3://{bucket}/async-endpoint-inputs/{self.name or self.endpoint_name}/{uuid.uuid4()}"
        body = self.predictor.serializer.serialize(data)
        body = body.encode() if isinstance(body, str) else body
        file = io.BytesIO(body) if isinstance(body, bytes) else body
        service.put_file(*split_s3(uri), file, None, encrypt=False)
        return uri
