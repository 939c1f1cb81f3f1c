"""`neuron-monitor [-c FILE]`: prints a line with a JSON object each time a metric group is due.

As with the real tool, the first line has only values that need no interval; rates come with the next.
Schema and defaults: AWS Neuron documentation, "Neuron Monitor User Guide".
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from neuron_sim import processes, settings, topology
from neuron_sim.errors import NeuronSimError
from neuron_sim.runtime import claims, usage_reader
from neuron_sim.tools import monitor_config, monitor_report, system_stats
from neuron_sim.tools.monitor_config import ConfigError, MonitorConfig

_IMMEDIATE = frozenset({"memory_info", "neuron_hw_counters", "memory_used"})
"""Groups of present values; all other groups tell what has happened since the last look."""

_SEARCH = ("", "search")


def main(argv: list[str] | None = None) -> int:
    """Report until the reader leaves or Ctrl-C; 2 with a message when configuration or settings are wrong."""
    parser = argparse.ArgumentParser(
        prog="neuron-monitor", description="Stream the metrics of the simulated NeuronCores as JSON lines."
    )
    parser.add_argument(
        "-c", "--config-file", type=Path, help="what to report, and how often (default: all, 5s)"
    )
    parser.add_argument(
        "--verbose", type=int, default=0, choices=range(5), help="notes on stderr (default: 0)"
    )
    arguments = parser.parse_args(argv)
    try:
        config = monitor_config.DEFAULT if arguments.config_file is None else _read(arguments.config_file)
        current = settings.read()
        monitor = Monitor(current, config)
    except NeuronSimError as error:
        print(f"neuron-monitor: {error}", file=sys.stderr)
        return 2
    try:
        with claims.observing(current.cores_dir, "neuron-monitor"):
            _stream(monitor, arguments.verbose)
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:
        # The reader has closed the pipe. Writing what is still buffered must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _read(path: Path) -> MonitorConfig:
    try:
        return monitor_config.parse(json.loads(path.read_text()))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None


def _stream(monitor: Monitor, verbose: int) -> None:
    while True:
        report = monitor.report()
        print(json.dumps(report, separators=(",", ":")), flush=True)
        if verbose:
            print(f"neuron-monitor: {len(report['neuron_runtime_data'])} processes", file=sys.stderr)
        time.sleep(max(0.0, monitor.due() - time.monotonic()))


class _Clock:
    """A group's last look: its time, what was seen, and the report that was made of it."""

    def __init__(self) -> None:
        self.looked = 0.0
        self.seen: Any = None
        self.group: dict[str, Any] | None = None


class Monitor:
    """Makes reports. A metric group keeps its last values until it is due again."""

    def __init__(self, current: settings.Settings, config: MonitorConfig) -> None:
        """Nothing is read yet.

        Raises:
            NeuronSimError: the settings name no simulated instance.
        """
        self._current = current
        self._config = config
        self._devices = len(topology.devices(current.instance, current.local_cores))
        self._clocks: dict[tuple[str, str], _Clock] = {}
        self._periods: dict[tuple[str, str], float] = {}

    def due(self) -> float:
        """When the next group is due, on `time.monotonic`'s clock."""
        now = time.monotonic()
        times = (self._clocks[key].looked + period for key, period in self._periods.items())
        return min(times, default=now + monitor_config.DEFAULT_PERIOD_S)

    def report(self) -> dict[str, Any]:
        """A whole report, made now without waiting."""
        now = time.monotonic()
        self._periods = {}
        shortest = min((period for s in self._config.runtimes for period in s.periods.values()), default=None)
        if shortest is not None:
            # A process may start at any time, so processes are searched as often as their most frequent group is due.
            self._periods[_SEARCH] = shortest
            self._clocks.setdefault(_SEARCH, _Clock()).looked = now
        runtimes = [
            self._runtime(core, selection.periods, now)
            for core in usage_reader.running(self._current.cores_dir)
            for selection in self._config.runtimes
            if re.search(selection.tag_filter, core.tag)
        ]
        system = {}
        for name, period in self._config.system.items():
            if (group := self._group("", name, period, now, None)) is not None:
                system[name] = group
        self._clocks = {key: clock for key, clock in self._clocks.items() if key in self._periods}
        return {
            "neuron_runtime_data": runtimes,
            "system_data": system,
            "instance_info": monitor_report.instance_info(self._current.instance),
            "neuron_hardware_info": monitor_report.neuron_hardware_info(
                self._current.instance, self._devices
            ),
        }

    def _runtime(self, core: usage_reader.Core, periods: Any, now: float) -> dict[str, Any]:
        groups = {}
        for name, period in periods.items():
            if (group := self._group(str(core.pid), name, period, now, core)) is not None:
                groups[name] = group
        return {
            "pid": core.pid,
            "address": "",
            "neuron_runtime_tag": core.tag,
            "error": "" if core.published else "the process has not published anything yet",
            "report": groups,
        }

    def _group(
        self, owner: str, name: str, period_s: float, now: float, core: usage_reader.Core | None
    ) -> dict[str, Any] | None:
        """The latest report of a group, made anew if it is due; None before the first one."""
        key = (owner, name)
        self._periods[key] = period_s
        first = key not in self._clocks
        clock = self._clocks.setdefault(key, _Clock())
        elapsed = now - clock.looked
        if not first and elapsed < period_s - 0.001:
            return clock.group
        seen = self._look(name, core)
        if not first or name in _IMMEDIATE:
            made = self._make(name, core, clock.seen, seen, elapsed)
            clock.group = {"period": round(0.0 if first else elapsed, 6), **made}
        clock.looked, clock.seen = now, seen
        return clock.group

    def _look(self, name: str, core: usage_reader.Core | None) -> Any:
        if name == "vcpu_usage":
            return system_stats.processor_ticks()
        if core is None or name in _IMMEDIATE:
            return None
        return processes.use(core.pid) if name == "neuron_runtime_vcpu_usage" else core.published

    def _make(
        self, name: str, core: usage_reader.Core | None, before: Any, after: Any, elapsed_s: float
    ) -> dict[str, Any]:
        if core is not None:
            if name == "neuroncore_counters":
                return monitor_report.neuroncore_counters(core.cores, before, after)
            if name == "execution_stats":
                return monitor_report.execution_stats(before, after)
            if name == "memory_used":
                return monitor_report.memory_used(core.cores, core.published, processes.use(core.pid))
            return monitor_report.runtime_vcpu_usage(before, after, elapsed_s, os.cpu_count() or 1)
        if name == "vcpu_usage":
            return {**system_stats.processor_usage(before, after), "error": ""}
        if name == "memory_info":
            return {**system_stats.memory(), "error": ""}
        return monitor_report.neuron_hw_counters()


if __name__ == "__main__":
    raise SystemExit(main())
