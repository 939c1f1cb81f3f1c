"""Rounds of the fault test: four jobs at once, one SIGKILL at a random moment, and a look at what is left."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from docker.errors import APIError, NotFound

from tests.faults.engine import HeldLogs
from tests.faults.jobs import BUCKET, IMAGE, KILLED, TRAIN, Script, Verdict, judge
from tests.faults.stage import Stage

JOBS = 4
_PATIENCE_S = 300.0
_CLEAN_UP_S = 300.0
_LAST_MOMENT_S = 3.0
_UNFINISHED = "-init/merged"
_TAKEN = "InternalServerError: the container engine, or this machine, went down"


@dataclass
class Round:
    """What one round showed. Seconds."""

    kind: str
    moment_s: float
    """Of the kill: after the first request; of a container: after the first one ran."""
    verdicts: list[Verdict]
    leftovers: list[str]
    recovery_s: float
    """From the restart (a killed container: from the kill) until the server answers and the engine does."""
    seconds: float

    @property
    def faults(self) -> list[str]:
        """All that was wrong, in words."""
        jobs = [f"{number}: {word}" for number, v in enumerate(self.verdicts) for word in v.faults]
        return [*jobs, *(f"left over: {word}" for word in self.leftovers)]


class JobStage(Stage):
    """Jobs of a small image."""

    def _prepare(self) -> None:
        self.engine.make_image(IMAGE, {"/usr/local/bin/train": TRAIN})
        self.backend.start()
        self.backend.call("s3", "create_bucket", Bucket=BUCKET)
        self._numbers = 0
        self._seen: set[str] = set()

    def play(self, kind: str) -> Round:
        """One round. Blocks: 3 to 6 s."""
        begun = time.monotonic()
        self._numbers += 1
        self._held: HeldLogs | None = None
        scripts = [
            Script(f"r{self._numbers}-{i}", self.rng.randint(8, 25), self.rng.uniform(0.03, 0.08))
            for i in range(JOBS)
        ]
        moment_s = self.rng.uniform(0, _LAST_MOMENT_S if kind != "container" else 1.0)
        with ThreadPoolExecutor() as pool:
            creating = pool.submit(self._create, scripts)
            if kind == "container":
                self._await_container()
            time.sleep(moment_s)
            failures, recovery_s = self._kill(kind, scripts)
            creating.result(_PATIENCE_S)
        self._await_end(scripts)
        leftovers = self._leftovers()
        with closing(self._held or HeldLogs(())) as held:
            logs = {s.name: held.lines(s.name) if self._held else None for s in scripts}
        verdicts = [judge(s, self.backend, failures.get(s.name, ()), logs[s.name]) for s in scripts]
        return Round(kind, moment_s, verdicts, leftovers, recovery_s, time.monotonic() - begun)

    def forgotten(self) -> dict[str, int]:
        """What the killed engines have left behind and know nothing of any more, in all rounds so far."""
        layers = sum(1 for point in self.engine.layer_mounts() if point.endswith(_UNFINISHED))
        processes = [line.split() for line in self.engine.inside("ps", "-eo", "pid,ppid,args").splitlines()]
        shims = {
            pid for pid, _, program, *rest in processes if "containerd-shim" in program and "-id" in rest
        }
        parents = {ppid for _, ppid, *_ in processes}
        return {"layers": layers, "shims": len(shims), "shims_with_processes": len(shims & parents)}

    def _create(self, scripts: list[Script]) -> None:
        for script in scripts:
            self.backend.create(script.request())

    def _await_container(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not self.engine.client().api.containers():
            assert time.monotonic() < deadline, f"no container ever ran; {self.backend.output()[-4000:]}"
            time.sleep(0.02)

    def _kill(self, kind: str, scripts: list[Script]) -> tuple[dict[str, tuple[str, ...]], float]:
        """Kill, start again; the failures that are right then, by job, and how long it took to be back."""
        if kind == "container":
            victim, begun = self._kill_container(), time.monotonic()
            self.backend.describe(scripts[0].name)
            return ({victim: (KILLED,)} if victim else {}), time.monotonic() - begun
        if kind == "server":
            self.backend.kill()
            time.sleep(self.rng.uniform(0, 0.5))
            begun = time.monotonic()
            self.backend.start()
            self.backend.call("s3", "head_bucket", Bucket=BUCKET)
            return {}, time.monotonic() - begun
        self.engine.kill()
        self._held = self.engine.hold_logs()
        time.sleep(self.rng.uniform(0, 1.0))
        begun = time.monotonic()
        live_restore = kind == "engine with live-restore"
        self.engine.start(live_restore=live_restore)
        recovery_s = time.monotonic() - begun
        return ({} if live_restore else {script.name: (_TAKEN,) for script in scripts}), recovery_s

    def _kill_container(self) -> str | None:
        """SIGKILL to a container that runs; the job's name, or None: they have all ended by themselves."""
        api = self.engine.client().api
        running = api.containers()
        if not running:
            return None
        victim = self.rng.choice(sorted(running, key=lambda container: str(container["Names"])))
        try:
            api.kill(victim["Id"], "SIGKILL")
        except (NotFound, APIError):
            return None  # it has ended by itself
        return str(victim["Labels"]["windtunnel.job"])

    def _await_end(self, scripts: Iterable[Script]) -> None:
        for script in scripts:
            self.backend.end_of(script.name)

    def _leftovers(self) -> list[str]:
        """What is there and should not be, once the server had time to clean up. Told, and waited for, once."""
        deadline = time.monotonic() + _CLEAN_UP_S
        while (found := set(self._remains()) - self._seen) and time.monotonic() < deadline:
            time.sleep(0.1)
        self._seen |= found
        return sorted(found)

    def _remains(self) -> list[str]:
        client, home = self.engine.client(), self.backend.home
        containers = [f"container {c['Names']}" for c in client.api.containers(all=True)]
        # The home's own network stays as long as its server does; `test_faults.py` looks for it then.
        usual = ("bridge", "host", "none")
        networks = [n["Name"] for n in client.api.networks() if not n["Name"].endswith(("_jobs", *usual))]
        volumes = client.api.volumes()["Volumes"] or []
        files = [*home.glob("jobs/*"), *home.glob("objects/*/tmp/*"), *home.glob("*.tmp")]
        # An engine that is killed while it makes a container leaves the mount of its first layer, of which it
        # knows nothing afterwards, and which nobody can ask it to remove: `forgotten` counts those.
        mounts = [point for point in self.engine.layer_mounts() if not point.endswith(_UNFINISHED)]
        return [
            *containers,
            *(f"network {name}" for name in networks),
            *(f"volume {volume['Name']}" for volume in volumes),
            *(str(path.relative_to(home)) for path in files),
            *self._unused_blobs(),
            *(f"mount {point}" for point in mounts),
        ]

    def _unused_blobs(self) -> list[str]:
        """Objects' bytes that no key names: so many more are there than keys."""
        blobs = sum(1 for _ in self.backend.home.glob(f"objects/{BUCKET}/blobs/*"))
        keys = 0
        token: dict[str, Any] = {}
        while True:
            page = self.backend.call("s3", "list_objects_v2", Bucket=BUCKET, **token)
            keys += page["KeyCount"]
            if not page["IsTruncated"]:
                return [f"{blobs - keys} blobs without a key"] if blobs != keys else []
            token = {"ContinuationToken": page["NextContinuationToken"]}
