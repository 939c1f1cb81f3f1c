"""Tell whether a container ended because its engine did, from what the restarted engine reports.

An engine that is killed, and started again without ``--live-restore``, stops every container that
still runs before it answers anybody. One that is stopped in order does so before it goes. One that
finds no process where it had left a container running, because the machine went down or because it
was killed while the container ended, says exit code 255, which it makes up. None of that is the
script's doing, and nothing in a container's state says so; these facts do, all by the engine's clock:

- An engine's events are those since its start. Of a container that this engine has seen ending they
  have the end. If they have a signal to the container from before anybody could ask for one, it was
  the engine's own.
- Every start makes the default bridge network anew, unless containers have lived through it; nobody
  is answered before. So its age is the engine's.
- With ``--live-restore`` an engine takes no container along, whatever its own end.

What cannot be told: a script that answered SIGTERM with exit code 0 while the engine was stopped in
order looks like one that came to its end just then.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

import docker
from docker.errors import NotFound
from docker.utils import convert_filters

from windtunnel_local.runner.docker.engine_time import engine_time

_BRIDGE = "bridge"
_MADE_UP = 255
_SIGNALLED = (137, 143)  # SIGKILL, SIGTERM


def taken(api: docker.APIClient, container: Mapping[str, Any]) -> bool:
    """Whether the engine, or the machine, took an exited container along. Blocks: a call or three.

    Args:
        api: the engine.
        container: its answer to an inspection.
    """
    state = container["State"]
    code, begun, ended = int(state["ExitCode"]), *(engine_time(state[k]) for k in ("StartedAt", "FinishedAt"))
    if begun is None or ended is None or state.get("OOMKilled"):
        return False
    if code == _MADE_UP and not _has_event(api, container["Id"], "die", begun, datetime.now(timezone.utc)):
        return True
    since = _answers_since(api)
    if since is None or not (begun < since and ended < since):
        return False
    if _has_event(api, container["Id"], "kill", begun, since):
        return True
    return code in _SIGNALLED and not api.info().get("LiveRestoreEnabled")


def _answers_since(api: docker.APIClient) -> datetime | None:
    """When the engine started, or earlier if containers outlived an earlier engine; None: it does not tell."""
    with suppress(NotFound):
        return engine_time(api.inspect_network(_BRIDGE).get("Created"))
    return None


def _has_event(api: docker.APIClient, container: str, name: str, since: datetime, until: datetime) -> bool:
    """Whether the engine has seen this happen to the container; it remembers its last 256 events."""
    parameters = {
        "since": f"{since.timestamp():.6f}",
        "until": f"{until.timestamp():.6f}",
        "filters": convert_filters({"container": [container], "event": [name]}),
    }
    url = f"{api.base_url}/v{api.api_version}/events"
    answer = api.get(url, params=parameters, timeout=api.timeout)
    answer.raise_for_status()
    return bool(answer.content.strip())
