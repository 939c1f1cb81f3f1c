"""Sends requests to an endpoint. Names, positions and meanings are SageMaker SDK v2's."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from windtunnel.hosting.deserializers import AnyDeserializer, BytesDeserializer
from windtunnel.hosting.endpoint import Endpoint, models_of
from windtunnel.hosting.serializers import AnySerializer, IdentitySerializer
from windtunnel.session.resolve import resolve_session


class Predictor:
    """Sends requests to an endpoint and returns its answers. The constructor makes no call; thread-safe.

    Args:
        endpoint_name: name of an existing endpoint, made by any client.
        sagemaker_session: where it runs; default: this machine.
        serializer: turns data into the request's body; default: bytes are sent unchanged.
        deserializer: turns the answer's body into an object; default: bytes.
        session: another name of ``sagemaker_session``.
    """

    def __init__(
        self,
        endpoint_name: str,
        sagemaker_session: Any = None,
        serializer: AnySerializer | None = None,
        deserializer: AnyDeserializer | None = None,
        *,
        session: Any = None,
    ) -> None:
        self.endpoint_name = endpoint_name
        self.session = self.sagemaker_session = resolve_session(session, sagemaker_session)
        self.serializer = serializer or IdentitySerializer()
        self.deserializer = deserializer or BytesDeserializer()
        self._model_names: list[str] | None = None

    def __repr__(self) -> str:
        """The endpoint's name, and where it runs. Makes no call."""
        return f"Predictor({self.endpoint_name!r}, {'local' if self.session.local else 'AWS'})"

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint itself: its status, log and cost."""
        return Endpoint(self.endpoint_name, self.session)

    def predict(
        self,
        data: Any,
        initial_args: Mapping[str, Any] | None = None,
        target_model: str | None = None,
        target_variant: str | None = None,
        inference_id: str | None = None,
        custom_attributes: str | None = None,
    ) -> Any:
        """Ask the model and return its answer. Blocks: a model may take 60 s.

        Args:
            data: input for the serializer.
            initial_args: members of InvokeEndpoint that replace those made here, e.g. ``{"Accept": "text/csv"}``.
            target_model: on a multi-model endpoint, the archive of the model to ask.
            target_variant: the variant to ask; default: chosen by weight.
            inference_id: an id that is stored with captured data.
            custom_attributes: up to 1,024 characters that the model receives unchanged.

        Raises:
            EndpointNotFound: there is no such endpoint.
            ServiceCallFailed: code ``ModelError``: the model failed, and the message names its log.
            WindtunnelError: the deserializer cannot read the answer.
        """
        accept = self.deserializer.ACCEPT
        request: dict[str, Any] = {
            "EndpointName": self.endpoint_name,
            "ContentType": self.serializer.CONTENT_TYPE,
            "Accept": accept if isinstance(accept, str) else ", ".join(accept),
            **(initial_args or {}),
        }
        given = {
            "TargetModel": target_model,
            "TargetVariant": target_variant,
            "InferenceId": inference_id,
            "CustomAttributes": custom_attributes,
        }
        request.update({member: value for member, value in given.items() if value})
        answer = self.session.endpoints.invoke({**request, "Body": self.serializer.serialize(data)})
        return self.deserializer.deserialize(io.BytesIO(answer.body), answer.content_type)

    def delete_endpoint(self, delete_endpoint_config: bool = True) -> None:
        """Delete the endpoint, which ends its bill, and its configuration. Does not wait for the end.

        Raises:
            EndpointNotFound: the endpoint does not exist (any more).
        """
        self._models()  # asked now, for delete_model: once the endpoint is deleted, nothing leads to them
        self.endpoint.delete(config=delete_endpoint_config)

    def delete_predictor(self, wait: bool = False) -> None:  # noqa: ARG002 - SDK v2's argument
        """`delete_endpoint`, under SDK v2's newer name."""
        self.delete_endpoint()

    def delete_model(self) -> None:
        """Delete the models' records; archives in S3 stay. Call before or after `delete_endpoint` of this object."""
        for name in self._models():
            self.session.endpoints.delete_model(name)

    def _models(self) -> list[str]:
        if self._model_names is None:
            self._model_names = models_of(self.endpoint.config())
        return self._model_names
