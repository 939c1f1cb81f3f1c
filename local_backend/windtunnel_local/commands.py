"""What the server's commands do; `__main__` reads their arguments."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import sys
import threading

from windtunnel._version import __version__
from windtunnel_local import app
from windtunnel_local.api import codec
from windtunnel_local.api_socket import api_socket, listen_at
from windtunnel_local.credentials import load_or_create
from windtunnel_local.doctor import examine, restore_record
from windtunnel_local.home import AlreadyRunning, Home
from windtunnel_local.listening_port import listen_for
from windtunnel_local.runner import runner_kind
from windtunnel_local.runner.runner_kind import TrainingImage
from windtunnel_local.runner.sources import containers_folder, pinned
from windtunnel_local.server import Server
from windtunnel_local.service.ground.errors import RunnerError
from windtunnel_local.settings import Settings

log = logging.getLogger("windtunnel.server")

_OWNER_ONLY = 0o077
_MODELS = ("sagemaker", "logs", "s3", "sts", "iam", "monitoring")


def serve(settings: Settings) -> int:
    """Run the home's server until it is idle or gets a signal. If one runs already, say so and return 0. Blocks."""
    os.umask(_OWNER_ONLY)  # for all files that the server writes: keys, records, objects, jobs
    home = Home(settings.home)
    try:
        with home.locked():
            _serve(settings, home)
    except AlreadyRunning as running:
        print(running)  # noqa: T201  the command's answer
    return 0


def _serve(settings: Settings, home: Home) -> None:
    credentials = load_or_create(home.path / "credentials.json")
    socket = listen_for(home.path, settings.port)
    port = socket.getsockname()[1]
    for_jobs = listen_at(api_socket(home.path))
    application = app.build(settings, credentials, port)
    endpoint = f"http://127.0.0.1:{port}"

    def accepting() -> None:
        home.write_note(endpoint, __version__, settings.runner)
        log.info("serving %s at %s, runner %s", home.path, endpoint, settings.runner)
        threading.Thread(target=_settle_in, args=(application,), name="settle-in", daemon=True).start()

    def leaving() -> None:
        home.remove_note()
        application.page.end()

    def is_idle() -> bool:
        return application.api.idle_s > settings.idle_s and not (application.busy() or home.kept())

    try:
        application.resume()
        Server(
            application.api,
            is_idle=is_idle,
            accepting=accepting,
            leaving=leaving,
            ended=application.api.services.runtime.close,
            is_crowded=application.api.is_crowded,
        ).run([socket, for_jobs])
    finally:
        home.remove_note()
        application.close()
        application.runner.close()
        socket.close()
        for_jobs.close()


def _settle_in(application: app.Application) -> None:
    """Do the work of a start that need not delay the first request. Runs in a thread."""
    for service in _MODELS:
        codec.service_model(service)
    try:
        removed = application.objects.recover()
    except OSError:
        log.exception("remains of a crash in the object store are not removed")
    else:
        if removed:
            log.info("removed %d files that a crash had left in the object store", removed)


def image_build(settings: Settings, *, as_json: bool) -> int:
    """Build the training image. Blocks: minutes. JSON: progress on stderr, the status on stdout."""
    lines = sys.stderr if as_json else sys.stdout

    def progress(line: str) -> None:
        print(line, file=lines, flush=True)

    try:
        status = _training_image(settings).build(settings, progress)
    except RunnerError as error:
        return _failed(error, as_json=as_json)
    if as_json:
        _print_json(dataclasses.asdict(status))
    return 0


def image_status(settings: Settings, *, as_json: bool) -> int:
    """Print whether the training image exists and is current. The exit code is 0 also if it is missing."""
    try:
        status = _training_image(settings).status(settings)
    except RunnerError as error:
        return _failed(error, as_json=as_json)
    if as_json:
        _print_json(dataclasses.asdict(status))
    else:
        size = f", {status.size_bytes / 1e9:.1f} GB" if status.size_bytes else ""
        fix = "" if status.state == "current" else ". Build it with `windtunnel image build`"
        print(f"{status.image}: {status.state}{size}{fix}.")  # noqa: T201  the command's output
    return 0


def image_contents(settings: Settings, *, as_json: bool) -> int:
    """Print the package versions that the training image is built with. Needs no Docker engine."""
    try:
        _training_image(settings)
        versions = pinned(containers_folder())
    except RunnerError as error:
        return _failed(error, as_json=as_json)
    if as_json:
        _print_json(versions)
    else:
        print("\n".join(f"{name}=={version}" for name, version in versions.items()))  # noqa: T201
    return 0


def _training_image(settings: Settings) -> TrainingImage:
    image = runner_kind(settings.runner).image
    if image is None:
        raise RunnerError(
            f"The {settings.runner} runner has no training image, and needs none to run jobs. For the image of"
            " another runner, unset or change WINDTUNNEL_RUNNER."
        )
    return image


def doctor(settings: Settings, *, as_json: bool) -> int:
    """Check what a job needs on this machine; exit code 1 when something is missing. Blocks: seconds."""
    checks = examine(settings)
    healthy = all(check.ok for check in checks)
    if as_json:
        _print_json({"ok": healthy, "checks": [dataclasses.asdict(check) for check in checks]})
    else:
        for check in checks:
            fix = f"\n     {check.fix}" if check.fix else ""
            print(f"{'ok  ' if check.ok else 'FAIL'} {check.name}: {check.detail}{fix}")  # noqa: T201
    return 0 if healthy else 1


def restore(settings: Settings) -> int:
    """Replace a damaged record by its last sound copy; exit code 1 if the record is sound or has no copy."""
    print(restore_record(settings))  # noqa: T201  the command's output
    return 0


def _failed(error: RunnerError, *, as_json: bool) -> int:
    if as_json:
        _print_json({"error": str(error)})
    else:
        print(error, file=sys.stderr)  # noqa: T201  the command's message
    return 1


def _print_json(document: object) -> None:
    print(json.dumps(document))  # noqa: T201  the command's output
