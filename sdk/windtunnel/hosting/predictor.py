"""Asking an endpoint. Names, positions and meanings are SageMaker SDK v2's."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from windtunnel.hosting.deserializers import AnyDeserializer, BytesDeserializer
from windtunnel.hosting.endpoint import Endpoint, models_of
from windtunnel.hosting.serializers import AnySerializer, IdentitySerializer
from windtunnel.session.resolve import resolve_session


class Predictor:
    """Sends questions to an endpoint and gives its answers. Making one asks nothing; thread-safe.

    Args:
        endpoint_name: of an endpoint that exists, made by whatever client.
        sagemaker_session: where it runs; default: this machine.
        serializer: what becomes of a question; default: bytes are sent as they are.
        deserializer: what becomes of an answer; default: bytes.
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
        """The endpoint's name, and where it runs. Asks nothing."""
        return f"Predictor({self.endpoint_name!r}, {'local' if self.session.local else 'AWS'})"

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint itself: its state, log and cost."""
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
        """The model's answer. Blocks: a model may take 60 s.

        Args:
            data: what the serializer takes.
            initial_args: members of InvokeEndpoint that come before those made here, e.g. ``{"Accept": "text/csv"}``.
            target_model: on an endpoint of many models, the archive to ask.
            target_variant: the variant to ask; default: chosen by weight.
            inference_id: kept with captured data.
            custom_attributes: up to 1,024 characters that the model is given as they are.

        Raises:
            EndpointNotFound: there is none of that name.
            ServiceCallFailed: code ``ModelError``: the model failed, and the message names its log.
            WindtunnelError: the answer is not what the deserializer reads.
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
        """Delete the endpoint, and so end its bill; its configuration, too. Returns when that is accepted.

        Raises:
            EndpointNotFound: there is none (any more).
        """
        self._models()  # afterwards nothing tells them
        self.endpoint.delete(config=delete_endpoint_config)

    def delete_predictor(self, wait: bool = False) -> None:  # noqa: ARG002 - SDK v2's argument
        """`delete_endpoint`, under SDK v2's newer name."""
        self.delete_endpoint()

    def delete_model(self) -> None:
        """Delete the endpoint's models: their record; what is in S3 stays. Before or after `delete_endpoint`."""
        for name in self._models():
            self.session.endpoints.delete_model(name)

    def _models(self) -> list[str]:
        if self._model_names is None:
            self._model_names = models_of(self.endpoint.config())
        return self._model_names
