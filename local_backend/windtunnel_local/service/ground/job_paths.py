"""The paths of a job's files, on this machine and inside its containers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ML = "/opt/ml"
CHANNELS = f"{ML}/input/data"
CHECKPOINTS = f"{ML}/checkpoints"
TENSORBOARD = f"{ML}/output/tensorboard"
SOURCE = "/opt/windtunnel/source/sourcedir.tar.gz"
COUNTERS = "/opt/windtunnel/counters"
HOME = "/opt/windtunnel/home"
NEURON_CACHE = "/opt/windtunnel/neuron-cache"
KEEPER = "/opt/windtunnel/keeper"
VIEWS = "/opt/windtunnel/channels"
WARM_POOL_CACHE = f"{ML}/sagemaker/warmpoolcache"


@dataclass(frozen=True)
class JobPaths:
    """The folder of one job; removed when the job has ended."""

    root: Path

    @property
    def source(self) -> Path:
        """The source tarball, shared by all hosts."""
        return self.root / "source" / "sourcedir.tar.gz"

    @property
    def scratch(self) -> Path:
        """Archives that are being made, before they go to the object store."""
        return self.root / "scratch"

    @property
    def checkpoint_manifest(self) -> Path:
        """The list of the files that were fetched from CheckpointConfig.S3Uri, or stored there since."""
        return self.root / "checkpoints.json"

    @property
    def earlier(self) -> Path:
        """Files kept from earlier attempts (the simulator's counters)."""
        return self.root / "earlier"

    def earlier_counters(self, attempt: int, host: str) -> Path:
        """The counters of one host from an earlier attempt. ``attempt``: counted from 0."""
        return self.earlier / str(attempt) / host

    def host(self, host: str) -> Path:
        """The folder of one host."""
        return self.root / "hosts" / host

    def ml(self, host: str) -> Path:
        """``/opt/ml`` of one host."""
        return self.host(host) / "ml"

    def config(self, host: str) -> Path:
        """``/opt/ml/input/config``."""
        return self.ml(host) / "input" / "config"

    def channel(self, host: str, channel: str) -> Path:
        """``/opt/ml/input/data/<channel>``."""
        return self.ml(host) / "input" / "data" / channel

    def view(self, host: str, channel: str) -> Path:
        """A channel that is mounted read-only: a folder of links to its files. Never below `ml`."""
        return self.views(host) / channel

    def views(self, host: str) -> Path:
        """The folder of all read-only channels of one host; a container that is kept mounts it as a whole."""
        return self.host(host) / "channels"

    def keeper(self, host: str) -> Path:
        """The folder from which the keeper of a container that is kept reads its orders."""
        return self.host(host) / "keeper"

    def keeper_private(self, host: str) -> Path:
        """The runner's own notes on these orders; never mounted."""
        return self.host(host) / "keeper-private"

    def warm_pool_cache(self, host: str) -> Path:
        """The warm pool's cache, which stays from job to job."""
        return self.ml(host) / "sagemaker" / "warmpoolcache"

    def model(self, host: str) -> Path:
        """``/opt/ml/model``."""
        return self.ml(host) / "model"

    def output_data(self, host: str) -> Path:
        """``/opt/ml/output/data``."""
        return self.ml(host) / "output" / "data"

    def failure(self, host: str) -> Path:
        """``/opt/ml/output/failure``."""
        return self.ml(host) / "output" / "failure"

    def success(self, host: str) -> Path:
        """``/opt/ml/output/success``, which AWS's toolkit creates when the script has succeeded."""
        return self.ml(host) / "output" / "success"

    def checkpoints(self, host: str) -> Path:
        """``/opt/ml/checkpoints``."""
        return self.ml(host) / "checkpoints"

    def tensorboard(self, host: str) -> Path:
        """``/opt/ml/output/tensorboard``."""
        return self.ml(host) / "output" / "tensorboard"

    def counters(self, host: str) -> Path:
        """The folder into which the simulator of one host writes its counters."""
        return self.host(host) / "counters"

    def home(self, host: str) -> Path:
        """HOME of the user in the container."""
        return self.host(host) / "home"

    def neuron_cache(self, host: str) -> Path:
        """One host's copy of the Neuron compile cache in S3, a folder for each bucket."""
        return self.host(host) / "neuron-cache"

    def holds(self, path: Path) -> bool:
        """Whether a path, with all links resolved, is in this folder: a script may replace its files by links."""
        try:
            return path.resolve().is_relative_to(self.root.resolve())
        except (OSError, RuntimeError):
            return False  # a loop of links; since Python 3.13 it fails only when it is opened

    def folders(self, host: str) -> tuple[Path, ...]:
        """The folders to create before the container starts; otherwise the engine creates them as root."""
        ml = self.ml(host)
        return (
            self.config(host),
            ml / "input" / "data",
            ml / "code",
            self.model(host),
            self.output_data(host),
            self.checkpoints(host),
            self.counters(host),
            self.home(host),
        )
