"""The page of `windtunnel ui` in Chromium, and what it costs the server.

    python tests/benchmarks/ui.py [--jobs 10000] [--seconds 10] [--lines 10000]

The server is the real one, in a process of its own, with a container engine made of threads; its home holds finished
jobs. Prints one JSON object:

    jobs_page_ms, job_page_ms      the median of 30 requests, from the first byte sent to the last one read
    jobs_paint_ms, job_paint_ms    the first contentful paint in Chromium, the median of 9 visits
    log_lines_per_s                lines printed by a job until its page shows the last one
    lag_ms_p50, lag_ms_p99         from a line's printing to its being in the page, at a thousand lines a second
    server_cpu_percent_idle        of one processor, with the list open and nothing running
    describe_per_s, describe_per_s_with_page   DescribeTrainingJob without and with the list open, in turns
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "local_backend"), str(ROOT / "sdk"), str(Path(__file__).parent)]

import api  # noqa: E402
from botocore.credentials import Credentials  # noqa: E402
from playwright.sync_api import BrowserContext, Page, sync_playwright  # noqa: E402
from tests.fakes.runner import FakeContainer, FakeRunner, Image  # noqa: E402
from tests.fakes.server import serve_until_stdin_ends  # noqa: E402
from tests.fakes.wire import create_request  # noqa: E402

from windtunnel.session.page_token import page_token  # noqa: E402
from windtunnel_local import app  # noqa: E402
from windtunnel_local.credentials import load_or_create  # noqa: E402
from windtunnel_local.settings import Settings  # noqa: E402

IMAGE = "windtunnel-training"
REQUESTS, VISITS = 30, 9
SLOW_PER_S = 1000
PATIENCE_MS = 60_000
WATCH = """() => {
  window.lags = []; window.shown = 0;
  new MutationObserver((changes) => {
    const now = performance.timeOrigin + performance.now();
    for (const change of changes) for (const row of change.addedNodes) {
      const said = /^at ([0-9.]+) ([0-9]+)/.exec(row.textContent);
      if (said) { window.lags.push(now - Number(said[1])); window.shown = Math.max(window.shown, Number(said[2])); }
    }
  }).observe(document.getElementById("log-lines"), { childList: true });
}"""


def main() -> None:
    """Measure in a home of the benchmark's own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="of the log's flood, and of each other measurement"
    )
    parser.add_argument("--lines", type=int, default=10_000, help="that the flood prints a second")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        return serve(arguments.serve)
    with tempfile.TemporaryDirectory() as folder, server(Path(folder) / "home", arguments.jobs) as running:
        print(
            json.dumps(
                {"jobs": arguments.jobs, **measured(running, arguments.seconds, arguments.lines)}, indent=2
            )
        )
    return None


def measured(running: api.Server, seconds: float, lines_per_s: int) -> dict[str, Any]:
    """All figures."""
    with sync_playwright() as playwright:
        found = shutil.which("chromium-headless-shell")
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(PATIENCE_MS)
        page = enter(running, context)
        return {
            **paints(running, context, page),
            "server_cpu_percent_idle": idle_cpu(running, page, seconds),
            **beside(running, page, seconds),
            "log_lines_per_s": flood(running, page, lines_per_s, seconds),
            **lag(running, page, seconds),
        }


# --- what is measured ------------------------------------------------------------------


def paints(running: api.Server, context: BrowserContext, page: Page) -> dict[str, float]:
    """The list, and the page of a job that has a log, metrics and files."""
    start_job(running, "seen", lines=2000, per_s=0)
    cookie = "; ".join(f"{found['name']}={found['value']}" for found in context.cookies())
    paths = {"jobs": "/ui/jobs", "job": "/ui/jobs/seen"}
    return {
        **{f"{name}_page_ms": request_ms(running, path, cookie) for name, path in paths.items()},
        **{f"{name}_paint_ms": paint_ms(running, page, path) for name, path in paths.items()},
    }


def request_ms(running: api.Server, path: str, cookie: str) -> float:
    """The median, after some that fill caches."""
    taken = []
    with closing(http.client.HTTPConnection("127.0.0.1", running.port)) as connection:
        for _ in range(REQUESTS + 5):
            begun = time.perf_counter()
            connection.request("GET", path, headers={"Cookie": cookie})
            response = connection.getresponse()
            response.read()
            taken.append((time.perf_counter() - begun) * 1000)
            if response.status != 200:
                raise SystemExit(f"{path} answered {response.status}")
    return round(statistics.median(taken[5:]), 1)


def paint_ms(running: api.Server, page: Page, path: str) -> float:
    """The median of the first contentful paint."""
    taken = []
    for _ in range(VISITS):
        page.goto(f"http://127.0.0.1:{running.port}{path}", wait_until="load")
        until(page, "performance.getEntriesByName('first-contentful-paint').length")
        taken.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
    return round(statistics.median(taken), 1)


def idle_cpu(running: api.Server, page: Page, seconds: float) -> float:
    """Percent of one processor that the server takes while the list is looked at."""
    page.goto(f"http://127.0.0.1:{running.port}/ui/jobs")
    time.sleep(3)  # costs are worked out
    before = cpu_s(running.pid)
    time.sleep(2 * seconds)
    return round((cpu_s(running.pid) - before) / (2 * seconds) * 100, 2)


def beside(running: api.Server, page: Page, seconds: float) -> dict[str, float]:
    """Calls a second without and with an open page; the best of some turns each."""
    calls = [
        running.request("DescribeTrainingJob", {"TrainingJobName": f"job-{n:06}"}) for n in range(0, 1000, 10)
    ]
    rates: dict[str, list[float]] = {"about:blank": [], f"http://127.0.0.1:{running.port}/ui/jobs": []}
    for _ in range(4):
        for address, found in rates.items():
            page.goto(address)
            time.sleep(1.5)
            found.append(api.rate(running, calls, seconds / 4))
    alone, looked_at = rates.values()
    return {"describe_per_s": round(max(alone)), "describe_per_s_with_page": round(max(looked_at))}


def flood(running: api.Server, page: Page, per_s: int, seconds: float) -> float:
    """Lines a second, from the first one printed to the last one shown."""
    lines = int(per_s * seconds)
    page.goto(f"http://127.0.0.1:{running.port}{start_job(running, 'flood', lines, per_s, wait=False)}")
    page.wait_for_selector("#log-lines .l")
    page.evaluate(WATCH)
    until(page, f"window.shown >= {lines - 1}")
    shown_s = time.time()
    began_ms = page.evaluate(
        "fetch('/ui/jobs/flood/log.txt').then((answer) => answer.text())"
        ".then((text) => Number(/at ([0-9.]+) 0 loss/.exec(text)[1]))"
    )
    return round(lines / (shown_s - began_ms / 1000))


def lag(running: api.Server, page: Page, seconds: float) -> dict[str, float]:
    """Of each line that came in while the page was open."""
    lines = int(SLOW_PER_S * seconds)
    page.goto(f"http://127.0.0.1:{running.port}{start_job(running, 'lag', lines, SLOW_PER_S, wait=False)}")
    page.wait_for_selector("#log-lines .l")
    page.evaluate(WATCH)
    until(page, f"window.shown >= {lines - 1}")
    lags = sorted(page.evaluate("window.lags"))
    if len(lags) < lines / 2:
        raise SystemExit(f"only {len(lags)} of {lines} lines were seen")
    return {"lag_ms_p50": round(lags[len(lags) // 2]), "lag_ms_p99": round(lags[len(lags) * 99 // 100])}


# --- the server, and who asks it ---------------------------------------------------------


def enter(running: api.Server, context: BrowserContext) -> Page:
    """A page of a browser that was let in."""
    page = context.new_page()
    token = page_token(running.credentials.secret_key, time.time())
    page.goto(f"http://127.0.0.1:{running.port}/ui/enter?token={token}")
    page.wait_for_url("**/ui/jobs")
    return page


def start_job(running: api.Server, name: str, lines: int, per_s: int, wait: bool = True) -> str:
    """A job that prints lines, each with its time and number; 0 a second: all at once. Returns its page's path."""
    request = create_request(name, Environment={"LINES": str(lines), "PER_S": str(per_s)})
    with closing(api.Connection(running.port)) as connection:
        connection.ask(running.request("CreateTrainingJob", request))
        while wait:
            answer = connection.ask(running.request("DescribeTrainingJob", {"TrainingJobName": name}))
            if json.loads(answer)["TrainingJobStatus"] == "Completed":
                break
            time.sleep(0.1)
    return f"/ui/jobs/{name}"


def until(page: Page, expression: str) -> None:
    """Look every 20 ms; Playwright's own way of waiting is what the page's policy forbids."""
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not page.evaluate(expression):
        if time.monotonic() > deadline:
            raise SystemExit(f"not after {PATIENCE_MS / 1000:.0f} s: {expression}")
        time.sleep(0.02)


def cpu_s(pid: int) -> float:
    """Processor seconds of a process."""
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def server(home: Path, jobs: int) -> Iterator[api.Server]:
    """The server's process, upon a home with jobs."""
    api.seed(home, [f"job-{number:06}" for number in range(jobs)])
    command = [sys.executable, __file__, "--serve", str(home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        port = int(process.stdout.readline())
        pair = load_or_create(home / "credentials.json")
        try:
            yield api.Server(port, process.pid, Credentials(pair.access_key_id, pair.secret_access_key))
        finally:
            process.stdin.close()


def script(container: FakeContainer) -> int:
    """What jobs run."""
    values = container.plan.environment
    lines, per_s = int(values["LINES"]), int(values["PER_S"])
    begun = time.monotonic()
    for number in range(lines):
        container.print(f"at {time.time() * 1000:.1f} {number} loss={1 / (number + 1):.4f} {'x' * 50}")
        if per_s and number % 20 == 19:
            container.sleep(max(0.0, begun + number / per_s - time.monotonic()))
    return 0


def serve(home: Path) -> None:
    """Be the server: print the port, and leave when stdin ends."""
    settings = Settings(home=home, image=IMAGE)
    credentials = load_or_create(home / "credentials.json")
    runner = FakeRunner(app.SystemClock(), script, **{IMAGE: Image()})
    runner.batch = 5000

    def accepting(application: app.Application, port: int) -> None:
        application.objects.create_bucket("out")
        print(port, flush=True)

    serve_until_stdin_ends(settings, credentials, runner, accepting)


if __name__ == "__main__":
    main()
