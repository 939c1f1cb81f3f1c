"""What `windtunnel doctor` looks at for the `docker` runner."""

from __future__ import annotations

from windtunnel_local.runner.docker import endpoint
from windtunnel_local.runner.docker.client import Engine, require_x86
from windtunnel_local.runner.docker.image import image_status
from windtunnel_local.runner.docker.instance_role import instance_role_checks
from windtunnel_local.runner.docker.settings import DockerSettings
from windtunnel_local.runner.docker.shared_files import check_shared
from windtunnel_local.runner.runner_kind import Check
from windtunnel_local.service.ground.errors import RunnerError


def docker_checks(settings: DockerSettings) -> list[Check]:
    """The engine and the image. Blocks for the engine's answers: seconds at most."""
    engine = Engine()
    try:
        return [_engine(settings, engine), _image(settings, engine), *instance_role_checks(_hops(engine))]
    finally:
        engine.close()


def _engine(settings: DockerSettings, engine: Engine) -> Check:
    try:
        version = engine.client().version()["Version"]
        require_x86(engine.client())
        home = next(path for path in (settings.home, *settings.home.parents) if path.exists())
        check_shared(engine, home)
        kind = engine.kind
    except RunnerError as error:
        return Check("docker", False, str(error))
    name = ("rootless " if kind.rootless else "") + ("Podman" if kind.podman else "engine")
    unlimited = (
        "" if kind.limits_memory else "; it limits no job's memory (rootless ones need cgroups of version 2)"
    )
    return Check("docker", True, f"{name} {version} at {endpoint.address()}{unlimited}")


def _hops(engine: Engine) -> int:
    """Network hops from a container to this machine: none with a rootless engine, which connects from here."""
    try:
        return 0 if engine.kind.rootless else 1
    except RunnerError:
        return 1


def _image(settings: DockerSettings, engine: Engine) -> Check:
    try:
        status = image_status(settings, engine=engine)
    except RunnerError as error:
        return Check("image", False, str(error), "See `docker` above.")
    fix = {
        "missing": "Run `windtunnel image build`; otherwise the first job builds it.",
        "stale": (
            "It was built from other sources than these. Jobs run in it as it is; to build it "
            "again: `windtunnel image build`."
        ),
    }.get(status.state, "")
    return Check("image", status.state == "current", f"{status.image} is {status.state}", fix)
