"""`neuron-top`: shows the simulated cores in a terminal, once a second; without a terminal it prints them once.

Keys, as documented: F utilization or teraflops, A/D and 1-9 the process shown, Q leaves.
"""

from __future__ import annotations

import argparse
import curses
import sys
import time
from typing import Any

from neuron_sim import settings
from neuron_sim.errors import NeuronSimError
from neuron_sim.runtime import claims
from neuron_sim.tools import monitor_config, top_screen
from neuron_sim.tools.neuron_monitor import Monitor

PERIOD_S = 1.0


def main(argv: list[str] | None = None) -> int:
    """Show until Q or Ctrl-C; 2 with a message when the settings are wrong."""
    argparse.ArgumentParser(
        prog="neuron-top", description="Show what the simulated NeuronCores do. Q leaves."
    ).parse_args(argv)
    try:
        current = settings.read()
        monitor = Monitor(current, monitor_config.everything(PERIOD_S))
    except NeuronSimError as error:
        print(f"neuron-top: {error}", file=sys.stderr)
        return 2
    with claims.observing(current.cores_dir, "neuron-top"):
        if sys.stdout.isatty():
            try:
                curses.wrapper(_Screen(monitor).run)
            except KeyboardInterrupt:
                return 0
        else:
            monitor.report()
            time.sleep(PERIOD_S)
            print("\n".join(top_screen.lines(monitor.report())))
    return 0


class _Screen:
    """The terminal: draws, and takes keys."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._tab = 0
        self._flops = False

    def run(self, window: Any) -> None:
        """Draw once a second, and at each key, until Q."""
        curses.curs_set(0)
        report = self._monitor.report()
        while True:
            names = top_screen.tabs(report)
            self._tab = min(self._tab, len(names) - 1)
            self._draw(window, top_screen.lines(report, names[self._tab], flops=self._flops))
            window.timeout(max(1, int(1000 * (self._monitor.due() - time.monotonic()))))
            key = window.getch()
            if key == -1:
                report = self._monitor.report()
            elif not self._take(chr(key).lower() if 0 <= key < 256 else "", len(names)):
                return

    def _take(self, key: str, tabs: int) -> bool:
        """Act on a key; False: leave."""
        if key == "f":
            self._flops = not self._flops
        elif key in ("a", "d"):
            self._tab = (self._tab + (1 if key == "d" else -1)) % tabs
        elif key.isdigit() and 1 <= int(key) <= tabs:
            self._tab = int(key) - 1
        return key != "q"

    def _draw(self, window: Any, lines: list[str]) -> None:
        height, width = window.getmaxyx()
        window.erase()
        for row, line in enumerate(lines[:height]):
            # Writing the last cell of a window would move the cursor out of it, which raises.
            window.addnstr(row, 0, line, width - 1)
        window.refresh()


if __name__ == "__main__":
    raise SystemExit(main())
