"""What a job needs of this machine, checked one by one; each failure names its fix."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from windtunnel_local.service.ground.errors import WindtunnelError
from windtunnel_local.settings import Settings

_MIN_FREE_GIB = 5
_MIN_MEMORY_GIB = 4


@dataclass(frozen=True)
class Check:
    """One finding. ``fix``: what to do, when it is not ok and ``detail`` does not say it."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


def examine(settings: Settings) -> Sequence[Check]:
    """All checks of the runner that the settings name. Blocks for the engine's answers: seconds at most."""
    checks: list[Callable[[Settings], Check]] = [_home, _disk, _memory]
    checks += [_engine, _image] if settings.runner == "docker" else [_interpreter]
    return [check(settings) for check in checks]


def _home(settings: Settings) -> Check:
    folder = _existing(settings.home)
    if os.access(folder, os.W_OK | os.X_OK):
        return Check("home", True, str(settings.home))
    return Check(
        "home", False, f"{settings.home} cannot be written", "Set WINDTUNNEL_HOME to a directory of yours."
    )


def _disk(settings: Settings) -> Check:
    free = shutil.disk_usage(_existing(settings.home)).free / 2**30
    fix = f"Free at least {_MIN_FREE_GIB} GiB, or set WINDTUNNEL_HOME to a larger disk."
    return Check("disk", free >= _MIN_FREE_GIB, f"{free:.1f} GiB free", "" if free >= _MIN_FREE_GIB else fix)


def _memory(_: Settings) -> Check:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    enough = total >= _MIN_MEMORY_GIB
    fix = "Rehearse with fewer cores: local_cores=1 or WINDTUNNEL_LOCAL_CORES=1."
    return Check("memory", enough, f"{total:.1f} GiB, {os.cpu_count()} CPUs", "" if enough else fix)


def _engine(_: Settings) -> Check:
    from windtunnel_local.runner.docker import Engine

    engine = Engine()
    try:
        version = engine.client().version()["Version"]
    except WindtunnelError as error:
        return Check("docker", False, str(error))
    finally:
        engine.close()
    return Check("docker", True, f"engine {version}")


def _image(settings: Settings) -> Check:
    from windtunnel_local.runner.docker import image_status

    try:
        status = image_status(settings)
    except WindtunnelError as error:
        return Check("image", False, str(error), "See `docker` above.")
    fix = "" if status.state == "current" else "Run `windtunnel image build`; the first job would do it, too."
    return Check("image", status.state == "current", f"{status.image} is {status.state}", fix)


def _interpreter(settings: Settings) -> Check:
    from windtunnel_local.runner.process.runner import ProcessRunner

    try:
        ProcessRunner(settings, settings.environment).ensure_image(settings.image, lambda _: None)
    except WindtunnelError as error:
        return Check("interpreter", False, str(error))
    return Check("interpreter", True, str(settings.sim_python or "the server's own"))


def _existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())
