"""The page of one training job, in a real browser, with the job running while one looks."""

from __future__ import annotations

import itertools
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import LOOKS, PHONE, Look, Watch
from tests.browser.faults import serious_faults
from tests.contract.conftest import LOCAL_IMAGE, Backend, wait_for
from tests.fakes.archive import archive
from tests.fakes.counters import Counters, counters  # noqa: F401  a fixture
from tests.fakes.runner import FakeContainer
from tests.fakes.wire import create_request

pytestmark = pytest.mark.browser

MOST_ROWS = 3000
METRICS = [{"Name": "train:loss", "Regex": "loss=([0-9.]+)"}]


def create(backend: Backend, name: str = "job", **members: Any) -> None:
    """A job with a metric, which begins to run."""
    algorithm = {"TrainingImage": LOCAL_IMAGE, "TrainingInputMode": "File", "MetricDefinitions": METRICS}
    request = create_request(name, **{"AlgorithmSpecification": algorithm, **members})
    backend.client("sagemaker").create_training_job(**request)


def until(backend: Backend, *states: str, name: str = "job") -> None:
    """Wait for a secondary status."""
    wait_for(lambda: backend.application.jobs.describe(name)["SecondaryStatus"] in states)


class Script:
    """What the job's hosts run: lines are printed when the test says so, until it says that they end."""

    def __init__(self, backend: Backend) -> None:
        """Of all jobs from now on."""
        self._backend = backend
        self.end = threading.Event()
        self.containers: dict[str, FakeContainer] = {}
        backend.runner.batch = 5000
        backend.runner.script = self.run

    def run(self, container: FakeContainer) -> int:
        """Until the end, or a stop."""
        self.containers[container.plan.host] = container
        while not self.end.is_set():
            if container.terminated.is_set():
                return 143
            container.sleep(0.01)
        container.write("/opt/ml/model/model.txt", "weights")
        return 0

    def train(self, *lines: str) -> None:
        """A job that has begun, and whose lines are stored."""
        create(self._backend)
        until(self._backend, "Training")
        self.print(*lines)
        wait_for(lambda: printed(self._backend) == len(lines))

    def print(self, *lines: str, host: str = "algo-1") -> None:
        """Lines of a host."""
        container = wait_for(lambda: self.containers.get(host))
        for line in lines:
            container.print(line)


@pytest.fixture
def script(backend: Backend) -> Script:
    """See `Script`."""
    return Script(backend)


def rows(page: Page) -> list[str]:
    """The lines of the log that are in the document."""
    return page.locator("#log-lines .l").all_inner_texts()


def test_a_job_from_pending_to_completed_while_one_looks(
    backend: Backend, look: Look, script: Script
) -> None:
    """Status, phases, log, metrics and files follow without a reload, and in the end the page says that it was all."""
    backend.runner.crowded = "no machine is free"
    create(backend)
    page = look("/ui/jobs/job")
    expect(page.locator("#head")).to_contain_text("no machine is free")
    expect(page.locator("#log-empty")).to_be_visible()
    expect(page.locator("#log-lines")).to_be_hidden()
    backend.runner.crowded = None
    expect(page.locator("#phases")).to_contain_text("Training")
    script.print("loss=2.5")
    expect(page.locator("#log-lines .l")).to_have_text(["loss=2.5"])
    expect(page.locator("#log-empty")).to_have_count(0)
    expect(page.locator("#metrics figcaption")).to_contain_text("2.5")
    time.sleep(1.1)  # a second value in the same second would be averaged with the first
    script.print("loss=1.5")
    expect(page.locator("#metrics figcaption")).to_contain_text("1.5")
    expect(page.locator("#metrics circle")).to_have_count(2)
    script.end.set()
    expect(page.locator("#head")).to_contain_text("Completed")
    expect(page.locator("#log-state")).to_contain_text("All of its log is here")
    expect(page.locator("#phases tbody tr").last).to_contain_text("Uploading")
    expect(page.locator("#files")).to_contain_text("output/model.tar.gz")
    expect(page.get_by_role("link", name="Delete…")).to_be_visible()


def test_no_line_is_lost_though_the_answer_is_late(backend: Backend, look: Look, script: Script) -> None:
    """Whoever asks for the last lines while more are printed sees them all, those of meanwhile too."""
    script.train(*(f"before {number}" for number in range(4_000)))
    page = look("/ui/jobs/job")
    rows_shown = page.locator("#log-lines .l")
    expect(rows_shown.last).to_have_text("before 3999")
    page.locator("#log-lines").evaluate("box => { box.scrollTop = 100; }")
    for number in range(5_000):
        script.containers["algo-1"].print(f"during {number}")
    numbers = iter(range(5_000, 8_000))

    def late(route: Route) -> None:
        answer = route.fetch()
        for number in numbers:  # printed after the answer was made, and on the page before it
            script.containers["algo-1"].print(f"during {number}")
        time.sleep(1)
        route.fulfill(response=answer)

    page.route("**/log?format=json*", late)
    page.get_by_role("button", name="To the last line").click()
    expect(rows_shown.last).to_have_text("during 7999")
    kept = [int(line.split()[1]) for line in rows(page)]
    assert kept == list(range(8_000 - len(kept), 8_000))


def test_ten_thousand_lines_a_second(backend: Backend, look: Look, script: Script) -> None:
    """For ten seconds: who scrolled up reads on undisturbed, no frame takes seconds, and no line is lost."""
    script.train(*(f"before {number}" for number in range(200)))
    page = look("/ui/jobs/job")
    expect(page.locator("#log-lines .l").last).to_have_text("before 199")
    page.evaluate(
        """() => { window.longest = 0; let last = performance.now();
        const frame = (now) => { window.longest = Math.max(window.longest, now - last); last = now;
        requestAnimationFrame(frame); }; requestAnimationFrame(frame); }"""
    )

    def flood() -> None:
        begun = time.monotonic()
        while (now := time.monotonic()) < begun + 10:  # on a busy machine it is fewer lines, not more seconds
            for _ in range(100):
                script.containers["algo-1"].print(f"line {next(numbers):06} {'x' * 60}")
            time.sleep(max(0.0, now + 0.01 - time.monotonic()))

    numbers = itertools.count()
    writer = threading.Thread(target=flood)
    writer.start()
    expect(page.locator("#log-lines .l").last).to_contain_text("line 0")  # it follows
    page.locator("#log-lines").evaluate("box => { box.scrollTop = 100; }")
    time.sleep(0.5)
    seen = page.locator("#log-lines").evaluate(
        "box => { const at = box.getBoundingClientRect().top; return [...box.children]"
        ".find((row) => row.getBoundingClientRect().top >= at).textContent; }"
    )
    time.sleep(3)
    still = page.locator("#log-lines").evaluate(
        "box => { const at = box.getBoundingClientRect().top; return [...box.children]"
        ".find((row) => row.getBoundingClientRect().top >= at).textContent; }"
    )
    assert seen == still, "the lines moved away under the reader"
    page.get_by_role("button", name="To the last line").click()
    writer.join()
    printed_lines = next(numbers)
    last = page.locator("#log-lines .l").last
    expect(last).to_contain_text(f"line {printed_lines - 1:06}")
    found = rows(page)
    assert len(found) <= MOST_ROWS
    kept = [int(line.split()[1]) for line in found]
    assert kept == list(range(printed_lines - len(found), printed_lines))
    longest = page.evaluate("window.longest")
    print(f"longest frame {longest:.0f} ms, {len(found)} rows, {printed_lines / 10:,.0f} lines/s")
    assert longest < 10_000  # of one that is never over; how long they are, `ui.py` measures
    page.locator("#log-lines").evaluate("box => { box.scrollTop = 0; }")
    expect(page.locator("#log-lines .l").first).not_to_have_text(found[0])  # older ones come
    older = [int(line.split()[1]) for line in rows(page)]
    assert older == list(range(older[0], older[0] + len(older)))
    script.end.set()


def test_reading_back_to_the_first_line_and_on_to_the_last(
    backend: Backend, look: Look, script: Script
) -> None:
    """Scrolling loads what is not there, both ways, with few lines in the document."""
    script.train(*(f"line {number}" for number in range(8000)))
    page = look("/ui/jobs/job")
    box = page.locator("#log-lines")

    def scroll(to: str, wanted: str) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if wanted in rows(page):
                return
            box.evaluate(f"box => {{ box.scrollTop = {to}; }}")
            time.sleep(0.05)
        raise AssertionError(f"{wanted!r} did not come; there are {rows(page)[:1]} to {rows(page)[-1:]}")

    scroll("0", "line 0")
    assert page.locator("#log-lines .l").count() <= MOST_ROWS
    script.print("the latest")
    scroll("box.scrollHeight", "the latest")
    found = rows(page)
    assert found == [f"line {number}" for number in range(8001 - len(found), 8000)] + ["the latest"]
    script.print("and one more")
    box.evaluate("box => { box.scrollTop = box.scrollHeight; }")
    expect(page.locator("#log-lines .l").last).to_have_text("and one more")


def printed(backend: Backend) -> int:
    """How many lines of the job have been stored."""
    return sum(stream.events for stream in backend.application.store.log_streams("job/"))


def test_pause_and_go_on(backend: Backend, look: Look, script: Script) -> None:
    """What comes meanwhile is counted, and there when one goes on."""
    script.train("one")
    page = look("/ui/jobs/job")
    expect(page.locator("#log-lines .l")).to_have_count(1)
    page.get_by_role("button", name="Pause").click()
    script.print("two", "three")
    expect(page.locator("#log-state")).to_contain_text("2 newer lines")
    assert rows(page) == ["one"]
    page.get_by_role("button", name="Go on").click()
    expect(page.locator("#log-lines .l")).to_have_text(["one", "two", "three"])
    script.print("four")
    expect(page.locator("#log-lines .l")).to_have_count(4)


def test_search_covers_lines_that_are_not_shown(backend: Backend, look: Look, script: Script) -> None:
    """A match far up is found, and a click leads there; so does the first error."""
    script.train(
        "a needle <b>",
        *(f"line {number}" for number in range(4000)),
        "Traceback (most recent call last):",
        *(f"more {number}" for number in range(4000)),
    )
    page = look("/ui/jobs/job")
    page.get_by_label("Lines that contain").fill("needle")
    page.keyboard.press("Enter")
    match = page.locator("#log-matches li button")
    expect(match).to_have_count(1)
    match.click()
    expect(page.locator("#log-lines .named")).to_have_text("a needle <b>")
    expect(page.locator("#log-lines .named")).to_be_in_viewport()
    page.get_by_role("button", name="First error").click()
    expect(page.locator("#log-lines .named")).to_have_text("Traceback (most recent call last):")
    page.get_by_role("button", name="To the last line").click()
    expect(page.locator("#log-lines .l").last).to_have_text("more 3999")


def test_a_search_takes_the_place_of_one_under_way(backend: Backend, look: Look, script: Script) -> None:
    """What the first one finds, in a long log perhaps seconds later, is not put among the lines of the second."""
    script.train("a needle", "some hay")
    page = look("/ui/jobs/job")
    held: list[Route] = []
    page.route("**/log?*&q=needle*", lambda route: held.append(route))
    page.get_by_label("Lines that contain").fill("needle")
    page.keyboard.press("Enter")
    while not held:
        page.wait_for_timeout(20)
    page.get_by_label("Lines that contain").fill("hay")
    page.keyboard.press("Enter")
    matches = page.locator("#log-matches li button")
    expect(matches).to_have_count(1)
    with page.expect_response("**/log?*&q=needle*"):
        held[0].continue_()
    page.wait_for_timeout(200)
    expect(matches).to_have_count(1)
    expect(matches).to_contain_text("some hay")


def test_lines_found_come_once(backend: Backend, look: Look, script: Script) -> None:
    """Also to whoever is impatient with the button for more of them."""
    script.train(*(f"hay {number}" for number in range(250)))
    page = look("/ui/jobs/job")
    page.get_by_label("Lines that contain").fill("hay")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Search on").dblclick()
    expect(page.get_by_text("250 lines have it.")).to_be_visible()
    page.wait_for_timeout(500)
    expect(page.locator("#log-matches li button")).to_have_count(250)


def test_a_click_outlives_a_dropped_request_and_one_under_way(
    backend: Backend, look: Look, script: Script, watch: Watch
) -> None:
    """Chromium drops requests when the machine's networks change; and older lines may be on their way."""
    script.train("a needle", *(f"line {number}" for number in range(4000)))
    page = look("/ui/jobs/job")
    page.get_by_label("Lines that contain").fill("needle")
    page.keyboard.press("Enter")
    match = page.locator("#log-matches li button")
    expect(match).to_have_count(1)
    dropped: list[Route] = []
    held: list[Route] = []

    def drop_the_first(route: Route) -> None:
        if dropped:
            route.continue_()
        else:
            dropped.append(route)
            route.abort()

    page.route("**/log?*&before=*", lambda route: held.append(route))
    page.route("**/log?*&at=*", drop_the_first)
    page.locator("#log-lines").evaluate("box => { box.scrollTop = 0; }")
    while not held:
        page.wait_for_timeout(20)
    match.click()
    held[0].continue_()
    expect(page.locator("#log-lines .named")).to_have_text("a needle")
    assert dropped
    watch.errors.clear()  # the browser's own words about the dropped request


def test_one_host_or_all(backend: Backend, look: Look, script: Script) -> None:
    """In the order of time, each line with its host; or those of one, live too."""
    create(
        backend, ResourceConfig={"InstanceType": "ml.trn1.2xlarge", "InstanceCount": 2, "VolumeSizeInGB": 1}
    )
    until(backend, "Training")
    for number in range(3):
        for host in ("algo-1", "algo-2"):
            script.print(f"{host} says {number}", host=host)
            time.sleep(0.01)
    wait_for(lambda: printed(backend) == 6)
    page = look("/ui/jobs/job")
    both = [f"{host} says {number}" for number in range(3) for host in ("algo-1", "algo-2")]
    expect(page.locator("#log-lines .l")).to_have_text(both)
    assert page.locator("#log-lines .l").first.get_attribute("data-h") == "algo-1"
    page.get_by_label("Host").select_option("algo-2")
    expect(page.locator("#log-lines .l")).to_have_text([f"algo-2 says {number}" for number in range(3)])
    script.print("not this", host="algo-1")
    script.print("but this", host="algo-2")
    expect(page.locator("#log-lines .l").last).to_have_text("but this")
    assert "not this" not in rows(page)


def test_hostile_lines_stay_lines(backend: Backend, look: Look, script: Script) -> None:
    """Markup, a terminal's orders, marks that turn text, 10 MB: shown, cut, and never anything else."""
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    create(
        backend,
        HyperParameters={evil: f'"{evil}\u202e"'},
        Environment={"EVIL": evil},
        Tags=[{"Key": "k", "Value": "a/b:c=d"}],
    )
    until(backend, "Training")
    script.print(evil, "\x1b[31mred\x1b[0m\x1b]0;title\x07", "\u202egnp.exe", "loss=<b>1</b>")
    page = look("/ui/jobs/job")
    page.on("dialog", lambda _: pytest.fail("a script ran"))
    script.print(evil, "x" * 10_000_000, f"{evil} live")
    expect(page.locator("#log-lines .l").last).to_have_text(f"{evil} live")
    found = rows(page)
    assert found[:5] == [evil, "red", "\\u202egnp.exe", "loss=<b>1</b>", evil]
    assert found[5].startswith("x" * 2000 + "… all 10,000,000 characters")
    assert len(found[5]) < 2100
    assert page.locator("main img, main b, main script").count() == 0
    assert "\u202e" not in page.content() and "\x1b" not in page.content()
    with page.expect_download() as download:
        page.locator("#log-lines a").click()
    assert Path(download.value.path()).stat().st_size == 10_000_000
    page.reload()
    assert len(page.content().encode()) < 200_000
    assert page.locator("main img, main b, main script").count() == 0


def test_stop_from_the_page(backend: Backend, look: Look, script: Script) -> None:
    """One click; the page that comes follows to the end."""
    create(backend)
    until(backend, "Training")
    page = look("/ui/jobs/job")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#head")).to_contain_text("Stopped")
    assert backend.runner.plans
    page.reload()
    assert page.locator("#metrics").inner_text().splitlines()[-1] == "No value."
    expect(page.get_by_role("button", name="Pause")).to_be_hidden()  # nothing more will come


@pytest.fixture
def rich(backend: Backend, script: Script, counters: Counters) -> Backend:  # noqa: F811
    """A job that has ended, with source, counters, diagnostics and files; and one that runs on two cores."""
    s3 = backend.client("s3")
    source = "".join(f"line_{number} = {number}\n" for number in range(1, 60)).encode()
    packed = archive(("train.py", source), ("a/b.py", b"x"))
    s3.put_object(Bucket="out", Key="src/sourcedir.tar.gz", Body=packed)
    values = {"epochs": "3", "sagemaker_submit_directory": '"s3://out/src/sourcedir.tar.gz"'}
    for name in ("job", "ended"):
        create(backend, name, HyperParameters=values, Tags=[{"Key": "team", "Value": "nlp"}])
        until(backend, "Training", name=name)
    script.print("loss=0.5")
    found = [
        {"kind": "b", "severity": "note", "line": "?", "message": "A small thing.", "advice": "Let it be."},
        {"kind": "a", "severity": "error", "line": "train.py:30", "message": "<i>Bad</i>.", "advice": "Do."},
    ]  # fmt: skip
    document = counters(job="ended", diagnostics=found)
    backend.client("sagemaker").stop_training_job(TrainingJobName="ended")
    until(backend, "Stopped", name="ended")
    s3.put_object(Bucket="out", Key="models/ended/windtunnel/counters.json", Body=json.dumps(document))
    s3.put_object(Bucket="out", Key="models/ended/output/a%2F b?.bin", Body=b"content")
    usage(backend, steps=(20, 17))
    return backend


def usage(backend: Backend, steps: tuple[int, int]) -> None:
    """What the simulator would publish of two cores."""
    now = time.time()
    cores = []
    for rank, count in enumerate(steps):
        counts = {
            "executions": 30, "execution_seconds": 3.0 + rank, "compilations": 2, "compile_seconds": 0.5,
            "steps": count, "flops": 6e9, "user_seconds": 9.0, "system_seconds": 1.0, "host_bytes": 2**30,
        }  # fmt: skip
        before = {
            **counts,
            "time": now - 2,
            "executions": 10,
            "execution_seconds": 2.0,
            "steps": 5,
            "user_seconds": 7.0,
        }
        cores.append(
            {"time": now, "rank": rank, "cores": [rank], "pid": 3, "command": "p", "counts": counts, "before": before,
             "latency": {"p50": 0.02}, "device_memory": {"total": 2**31}}
        )  # fmt: skip
    document = {"schema": "windtunnel.usage/1", "job": "job", "time": now, "instance_type": "ml.trn1.2xlarge",
                "hosts": [{"host": "algo-1", "cores": cores}]}  # fmt: skip
    backend.client("s3").put_object(
        Bucket="out", Key="models/job/windtunnel/usage.json", Body=json.dumps(document)
    )


def test_what_came_of_it(rich: Backend, look: Look) -> None:
    """Findings worst first with the script's line in its place, the step in words, files to keep, the modelled cost."""
    page = look("/ui/jobs/ended")
    findings = page.locator(".finding")
    expect(findings).to_have_count(2)
    expect(findings.first).to_contain_text("<i>Bad</i>.")
    expect(findings.first.locator(".src.named")).to_have_text("line_30 = 30")
    assert findings.first.locator(".src").count() == 7
    expect(page.locator("#step")).to_contain_text("adds up over all cores (all_reduce), once a step")
    for name, content in (("output/a%2F b?.bin", b"content"), ("windtunnel/counters.json", None)):
        with page.expect_download() as download:
            page.get_by_role("link", name=name).click()
        stored = Path(download.value.path()).read_bytes()
        assert content in (None, stored) and stored
    figure = page.locator(".figures div", has_text="On AWS, modelled")
    expect(figure).to_contain_text(" to $")
    figure.get_by_role("link").click()
    page.wait_for_url("**/ui/jobs/ended/answer")
    # On a phone what a fact means stands below it, and the button that copies a program above it.
    page = look("/ui/jobs/ended", viewport=PHONE)
    bottoms = "(one) => one.previousElementSibling.getBoundingClientRect().bottom"
    top = "(one) => one.getBoundingClientRect().top"
    for below in (page.locator("#step td.quiet").first, page.locator(".program:visible pre").first):
        assert below.evaluate(top) >= below.evaluate(bottoms)


def test_why_it_failed(rich: Backend, look: Look, script: Script) -> None:
    """What was raised, the script's line that did, then all that the service says; while one looks, and in the list."""

    def fail(container: FakeContainer) -> int:
        script.run(container)
        for line in (
            "Traceback (most recent call last):",
            '  File "/opt/ml/code/train.py", line 30, in main',
            '  File "/usr/lib/python3/json/decoder.py", line 9, in decode',
            "KeyError: '<i>label</i>'",
            *["a launcher's line"] * 400,
        ):
            container.print(line)
        reason = "ExecuteUserScriptError:\nExitCode 1\nErrorMessage \"KeyError: '<i>label</i>'\""
        container.write("/opt/ml/output/failure", reason)
        return 1

    rich.runner.script = fail
    values = {"sagemaker_submit_directory": '"s3://out/src/sourcedir.tar.gz"'}
    create(rich, "fails", HyperParameters=values)
    until(rich, "Training", name="fails")
    page = look("/ui/jobs/fails")
    script.end.set()
    failure = page.get_by_role("group", name="Why it failed")
    expect(failure.locator(".raised")).to_have_text("KeyError: '<i>label</i>' at train.py:30")
    expect(failure.locator(".src.named")).to_have_text("line_30 = 30")
    expect(failure.get_by_label("The reason")).to_be_hidden()
    assert serious_faults(page) == serious_faults(look("/ui/jobs/fails", **LOOKS[1])) == []
    failure.get_by_text("FailureReason").click()
    expect(failure.get_by_label("The reason")).to_contain_text("ExecuteUserScriptError")
    page.goto(f"{rich.endpoint}/ui/jobs")
    expect(page.locator("tbody tr", has_text="fails").locator(".reason")).to_have_text(
        "KeyError: '<i>label</i>'"
    )


def test_cores_while_it_runs(rich: Backend, look: Look) -> None:
    """Who is behind is named; new figures come by themselves."""
    page = look("/ui/jobs/job")
    expect(page.locator("#cores")).to_contain_text("Core 1 of algo-1 is behind, at step 17 of 20")
    expect(page.locator("#cores tbody tr")).to_have_count(2)
    usage(rich, steps=(40, 40))
    expect(page.locator("#cores tbody tr").first).to_contain_text("40")
    expect(page.locator("#cores")).to_contain_text("Core 1 of algo-1 executes for longest")


def test_the_request_is_copied(rich: Backend, look: Look) -> None:
    """The button copies the program; without leave to, it is selected."""
    page = look("/ui/jobs/job")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy: As an Estimator").click()
    expect(page.get_by_role("button", name="Copy: As an Estimator")).to_have_text("Copied")
    assert "job = estimator.fit(" in page.evaluate("navigator.clipboard.readText()")
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(); }")
    page.get_by_text("As boto3's call").click()
    page.get_by_role("button", name="Copy: As boto3's call").click()
    expect(page.get_by_role("button", name="Copy: As boto3's call")).to_have_text("Selected")
    assert page.evaluate("getSelection().toString()").startswith("import boto3")


def test_it_keeps_nobody_out(rich: Backend, look: Look) -> None:
    """axe-core finds no serious fault; nothing is wider than a phone; no page is large."""
    paths = ("/ui/jobs/job", "/ui/jobs/ended", "/ui/jobs/job/log", "/ui/jobs/job/log?q=loss")
    for page, path in ((page, path) for page in [look("/ui/jobs", **one) for one in LOOKS] for path in paths):
        page.goto(f"{rich.endpoint}{path}")
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert serious_faults(page) == [], path
        wide = page.evaluate(
            "[...document.querySelectorAll('main *')].filter((one) => one.getBoundingClientRect().right > innerWidth"
            " && !one.closest('.scroll, pre, .lines')).map((one) => one.outerHTML.slice(0, 80))"
        )
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (path, wide)
        assert len(page.content().encode()) < 200_000


def test_without_javascript_it_can_be_read(backend: Backend, look: Look, script: Script) -> None:
    """The last lines stand there, and links lead through the rest, to the first error and to what is searched."""
    script.train(*(f"line {number}" for number in range(1200)), "ValueError: it broke", *map(str, range(700)))
    page = look("/ui/jobs/job", java_script_enabled=False)
    assert rows(page)[-1] == "699"
    page.get_by_role("link", name="Older lines").click()
    lines = page.locator(".l")
    expect(lines.last).to_have_text("399")
    before = lines.all_inner_texts()
    page.get_by_role("link", name="Older").first.click()
    expect(lines.last).to_have_text("line 1100")
    page.get_by_role("link", name="Newer").first.click()
    expect(lines).to_have_text(before)
    page.get_by_role("link", name="First lines").first.click()
    expect(lines.first).to_have_text("line 0")
    page.get_by_role("button", name="First error").click()
    expect(page.locator("#at")).to_have_text("ValueError: it broke")
    page.get_by_label("Lines that contain").fill("line 11")
    page.get_by_role("button", name="Search").click()
    expect(lines.nth(1)).to_have_text("line 110")
    expect(lines.first).to_have_text("line 11")
    page.locator(".to").first.click()
    expect(page.locator("#at")).to_have_text("line 11")


def test_a_page_finds_its_way_back(backend: Backend, look: Look, script: Script, watch: Watch) -> None:
    """A connection that breaks is made again, where it was: no line twice, none missing."""
    script.train("one")
    page = look("/ui/jobs/job")
    expect(page.locator("#log-lines .l")).to_have_text(["one"])
    page.context.set_offline(True)
    script.print("two")
    time.sleep(1)
    page.context.set_offline(False)
    script.print("three")
    expect(page.locator("#log-lines .l")).to_have_text(["one", "two", "three"])
    watch.errors.clear()  # the browser's own words about the connection
