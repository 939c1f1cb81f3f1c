"""The checks of `windtunnel doctor`: what jobs need on this machine. Each failed check says how to mend it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from windtunnel_local.runner import runner_kind
from windtunnel_local.runner.runner_kind import Check
from windtunnel_local.service.ground import machine_memory
from windtunnel_local.service.ground.errors import WindtunnelError
from windtunnel_local.settings import Settings
from windtunnel_local.store import sound_copy
from windtunnel_local.store.opening import FILE, RecordUnreadable, check_file

_MIN_FREE_GIB = 5
_MIN_MEMORY_GIB = 4


def examine(settings: Settings) -> Sequence[Check]:
    """Run all checks of this machine, and of the runner that the settings name. Blocks: seconds at most."""
    machine = [_home(settings), _record(settings), _disk(settings), _memory()]
    return [*machine, *runner_kind(settings.runner).checks(settings)]


def _home(settings: Settings) -> Check:
    """Try to create a folder in the home: mode bits alone mislead, as for root in /proc."""
    try:
        with TemporaryDirectory(prefix=".windtunnel-", dir=_existing(settings.home)):
            return Check("home", True, str(settings.home))
    except OSError as error:
        return Check(
            "home",
            False,
            f"{settings.home} cannot be written: {error.strerror or error}",
            "Set WINDTUNNEL_HOME to a directory of yours.",
        )


def _record(settings: Settings) -> Check:
    """Check the whole record (the SQLite file), however large it is."""
    path = settings.home / FILE
    try:
        check_file(path, whole=True)
    except WindtunnelError as error:
        return Check("record", False, str(error))
    return Check("record", True, f"{path} is sound" if path.exists() else "no job yet")


def restore_record(settings: Settings) -> str:
    """Replace a damaged record by its last sound copy. Returns a sentence that says what was done.

    Raises:
        WindtunnelError: the record is sound or cannot be read, or no copy of it was made.
    """
    path = settings.home / FILE
    try:
        check_file(path, whole=True)
    except RecordUnreadable:  # the record may be sound, and newer than its copy
        raise
    except WindtunnelError as error:
        copied = sound_copy.copied_at(path)
        if copied is None:
            raise WindtunnelError(f"no copy of {path} was made. {error}") from error
        aside = sound_copy.restore(path)
        return f"{path} is as it was at {copied:%Y-%m-%d %H:%M:%S}; the damaged file is {aside}"
    raise WindtunnelError(f"{path} is sound: nothing is restored")


def _disk(settings: Settings) -> Check:
    free = shutil.disk_usage(_existing(settings.home)).free / 2**30
    fix = f"Free at least {_MIN_FREE_GIB} GiB, or set WINDTUNNEL_HOME to a larger disk."
    return Check("disk", free >= _MIN_FREE_GIB, f"{free:.1f} GiB free", "" if free >= _MIN_FREE_GIB else fix)


def _memory() -> Check:
    total = machine_memory.total_bytes() / 2**30
    enough = total >= _MIN_MEMORY_GIB
    fix = "Rehearse with fewer cores: local_cores=1 or WINDTUNNEL_LOCAL_CORES=1."
    return Check("memory", enough, f"{total:.1f} GiB, {os.cpu_count()} CPUs", "" if enough else fix)


def _existing(path: Path) -> Path:
    # `exists` raises where a folder above cannot be entered.
    return next(folder for folder in (path, *path.parents) if os.access(folder, os.F_OK))
