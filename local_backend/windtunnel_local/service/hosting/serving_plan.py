"""Makes the plan of the container of an endpoint's or transform job's instance: pure functions."""

from __future__ import annotations

from windtunnel.priceperf.instances import NEURON_TYPES
from windtunnel_local.service.ground import job_paths
from windtunnel_local.service.ground.config import ServiceConfig
from windtunnel_local.service.ground.containers import ContainerPlan, JobPlan, Mount
from windtunnel_local.service.ground.hosting import Instance, Variant
from windtunnel_local.service.request.images import is_inference_image, is_neuron_image
from windtunnel_local.service.request.plan import shared_environment

HOST = "algo-1"
PORT = 8080
"""The port at which a container must listen, by SageMaker's contract."""
_MODEL = f"{job_paths.ML}/model"
_SHM_BYTES = 1 << 30


def local_image(image: str, config: ServiceConfig) -> str:
    """The image that runs: ours for one of AWS's PyTorch images, otherwise the image that the model names."""
    return config.image if is_inference_image(image) or is_neuron_image(image) else image


def plan(instance: Instance, variant: Variant, config: ServiceConfig) -> JobPlan:
    """The plan of an instance's container. Its folders must exist before it starts."""
    folders = config.paths(instance.slot)
    environment = {
        **shared_environment(config),
        "SAGEMAKER_REGION": config.region,
        **variant.container.get("Environment", {}),
        "SM_MODEL_DIR": _MODEL,
        "SAGEMAKER_BIND_TO_PORT": str(PORT),
        "WINDTUNNEL_COUNTERS_DIR": job_paths.COUNTERS,
    }
    if variant.instance_type in NEURON_TYPES:
        environment["WINDTUNNEL_INSTANCE_TYPE"] = variant.instance_type
    container = ContainerPlan(
        job=instance.slot,
        host=HOST,
        image=local_image(variant.container["Image"], config),
        command=("serve",),
        environment=environment,
        mounts=(
            Mount(str(folders.model(HOST)), _MODEL, read_only=True),
            Mount(str(folders.home(HOST)), job_paths.HOME),
            Mount(str(folders.counters(HOST)), job_paths.COUNTERS),
        ),
        user=config.user,
        network=None,
        memory_bytes=config.memory_cap_bytes,
        shm_bytes=_SHM_BYTES,
        port=PORT,
        forward=config.api if config.aws_in_jobs else None,
        labels={f"windtunnel.{instance.kind}": instance.owner, "windtunnel.variant": variant.name},
    )
    return JobPlan(instance.slot, (container,))
