"""A script with model_fn in AWS's PyTorch inference image.

A notebook written for ``sagemaker.pytorch.PyTorchModel`` needs only its import changed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from windtunnel.errors import ConfigurationError
from windtunnel.hosting.cost import EndpointCost
from windtunnel.hosting.deserializers import NumpyDeserializer
from windtunnel.hosting.model import Model
from windtunnel.hosting.predictor import Predictor
from windtunnel.hosting.serializers import NumpySerializer
from windtunnel.request import checks, inference_images
from windtunnel.request.arguments import AnyPath
from windtunnel.request.endpoint_request import Hosting


class PyTorchModel(Model):
    """A PyTorch model, served by a script with model_fn. SDK v2's ``sagemaker.pytorch.PyTorchModel``.

        model = PyTorchModel(model_data=job.model_data, entry_point="inference.py", source_dir="code",
                             framework_version="2.6")
        predictor = model.deploy(1, "ml.c5.xlarge", JSONSerializer(), JSONDeserializer())

    Give ``framework_version`` or ``image_uri``. Without serializer and deserializer the predictor sends and reads
    .npy, as SDK v2's does. Further arguments: see `Model`.

    Args:
        model_data, role, entry_point, image_uri, predictor_cls: as `Model`'s.
        framework_version: version of PyTorch; with the instance type it chooses AWS's image.
        py_version: optional, since each version has one image.
        model_server_workers: number of serving processes; default: the image's choice.
        older_image: if AWS has no image of ``framework_version`` for the instance, use the newest older one, and
            print that. Not in SDK v2.
        kwargs: as `Model`'s.
    """

    _toolkit = True

    def __init__(
        self,
        model_data: str,
        role: str | None = None,
        entry_point: AnyPath | None = None,
        framework_version: str | None = None,
        py_version: str | None = None,
        image_uri: str | None = None,
        predictor_cls: Callable[..., Any] | None = None,
        model_server_workers: int | None = None,
        *,
        older_image: bool = False,
        **kwargs: Any,
    ) -> None:
        if framework_version is None and image_uri is None:
            raise ConfigurationError("framework_version= is missing, e.g. '2.6'. Or give image_uri=.")
        if model_server_workers is not None:
            checks.check_range("model_server_workers", model_server_workers, 1, None, "")
        super().__init__(image_uri, model_data, role, predictor_cls, entry_point=entry_point, **kwargs)
        self.framework_version = framework_version
        self.py_version = py_version
        self.model_server_workers = model_server_workers
        self._older_image = older_image

    def serving_image_uri(self, instance_type: str | None) -> str:
        """``image_uri``, or AWS's inference image of ``framework_version`` for the instance in the session's region."""
        if self.image_uri:
            return self.image_uri
        if instance_type is None:
            raise ConfigurationError("instance_type= is missing: it chooses the image. Or give image_uri=.")
        version, python = str(self.framework_version), self.py_version
        if self._older_image:
            version = inference_images.known_or_older(version, instance_type)
            python = python if version == self.framework_version else None
        return inference_images.pytorch_image(version, python, self.session.region, instance_type)

    def _announce(self, name: str, hosting: Hosting) -> EndpointCost:
        cost = super()._announce(name, hosting)
        asked, instance_type = str(self.framework_version), str(hosting.instance_type)
        if self.image_uri is None and self._older_image:
            version = inference_images.known_or_older(asked, instance_type)
            if version != asked:
                sys.stdout.write(
                    f"AWS has no inference image of PyTorch {asked} for {instance_type}: that of {version} serves it.\n"
                )
        return cost

    def _default_predictor(self, name: str, session: Any) -> Predictor:
        return Predictor(name, session, NumpySerializer(), NumpyDeserializer())

    def _environment(self) -> dict[str, str]:
        found = super()._environment()
        if self.model_server_workers is not None:
            found["SAGEMAKER_MODEL_SERVER_WORKERS"] = str(self.model_server_workers)
        return found
