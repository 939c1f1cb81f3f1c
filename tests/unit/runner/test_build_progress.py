"""An image build's output, for a person."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from windtunnel_local import commands
from windtunnel_local.__main__ import main as backend
from windtunnel_local.runner.docker.image import build_advice
from windtunnel_local.runner.docker.progress import BuildReport, with_ticks


class Clock:
    """Seconds by hand."""

    now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def test_steps_come_with_time_and_what_is_being_downloaded() -> None:
    """Not 100 lines of uv, but what it is at and for how long; nothing of what the cache has."""
    clock, said = Clock(), list[str]()
    report = BuildReport(said.append, clock)
    report.feed("Step 1/4 : FROM debian\n")
    report.feed("Step 2/4 : RUN apt-get update\n ---> Using cache\n ---> 0123456789ab\n")
    report.feed("Step 3/4 : RUN sh install.sh -r /opt/requirements.txt\n")
    report.feed(" ---> Running in 0123456789ab\n")
    report.feed("Downloading torch (858.1MiB)\nDownloading torchvision (7.7MiB)\n")
    report.feed(" Downloaded torch")
    clock.now += 18
    report.feed("vision\n")
    clock.now += 60
    report.feed(" Downloaded torch\n\x1b[91mInstalled 113 packages in 586ms\x1b[0m\n + torch==2.9.0\n")
    report.feed("Left out: 16 packages\n")
    assert said == [
        "[0:00] step 3/4: installing torch, torch_xla, the SageMaker toolkit, transformers (the large one)",
        "[0:18] step 3/4 is at 18 s: downloading torch (858.1MiB), 8 MiB are here",
        "[1:18] Installed 113 packages in 586ms",
        "[1:18] Left out: 16 packages",
    ]


def test_podmans_steps_are_told() -> None:
    """It writes them in another way, with the stage in front; for minutes nothing was said of a build there."""
    clock, said = Clock(), list[str]()
    report = BuildReport(said.append, clock)
    report.feed(
        "[1/2] STEP 1/9: FROM debian AS training\n[1/2] STEP 2/9: ARG PIP_INDEX_URL\n--> 0123456789a\n"
    )
    report.feed("[1/2] STEP 3/9: RUN sh install.sh -r /opt/requirements.txt\nResolved 98 packages in 1s\n")
    clock.now += 20
    report.tick()
    report.feed("STEP 4/9: RUN apt-get update\n")
    assert said == [
        "[0:00] step 3/9: installing torch, torch_xla, the SageMaker toolkit, transformers (the large one)",
        "[0:20] step 3/9 is at 20 s: fetching packages",
        "[0:20] step 4/9: installing system packages",
    ]


def test_a_step_says_what_it_is_at_when_nothing_is_fetched() -> None:
    """From uv's own lines: to write byte code takes minutes and says nothing."""
    clock, said = Clock(), list[str]()
    report = BuildReport(said.append, clock)
    report.feed("Step 1/1 : RUN sh install.sh -r /opt/requirements.txt\n ---> Running in 0123456789ab\n")
    for line in (
        "Using Python 3.11.2",
        "Resolved 98 packages",
        "Prepared 96 packages",
        "Installed 96 packages",
    ):
        report.feed(f"{line}\n")
        clock.now += 15
        report.tick()
    assert [text.partition(": ")[2] for text in said if " is at " in text] == [
        "choosing versions",
        "fetching packages",
        "installing them",
        "writing byte code",
    ]


def test_a_silent_step_is_reported_as_going_on() -> None:
    """Compiling to byte code says nothing."""
    clock, said = Clock(), list[str]()
    report = BuildReport(said.append, clock)
    report.feed("Step 1/1 : RUN apt-get update\n ---> Running in 0123456789ab\n")
    clock.now = 14
    report.tick()
    clock.now = 16
    report.tick()
    assert said[1:] == ["[0:16] step 1/1 is at 16 s"]


def test_an_error_carries_the_last_lines() -> None:
    """Without colours and empty lines."""
    report = BuildReport(list[str]().append)
    for number in range(100):
        report.feed(f"line {number}\r\n\n")
    assert report.tail.splitlines() == [f"line {number}" for number in range(80, 100)]


def test_silence_is_noticed_and_errors_pass_through() -> None:
    """None for silence; what the source raises is raised here."""
    noticed = threading.Event()

    def slow() -> Iterator[dict[str, str]]:
        yield {"stream": "a"}
        noticed.wait()
        yield {"stream": "b"}
        raise OSError("gone")

    items = with_ticks(slow(), 0.05)
    assert next(items) == {"stream": "a"}
    assert next(items) is None
    noticed.set()
    assert next(item for item in items if item is not None) == {"stream": "b"}
    with pytest.raises(OSError, match="gone"):
        next(items)


@pytest.mark.parametrize(
    ("output", "advice"),
    [
        ("write /x: no space left on device", "disk of the Docker engine is full"),
        ("ssl.SSLCertVerificationError: CERTIFICATE_VERIFY_FAILED", "SSL_CERT_FILE"),
        ("Err:1 http://deb.debian.org Temporary failure resolving 'deb.debian.org'", "HTTPS_PROXY"),
        ("dns error: failed to lookup address information: Name or service not known", "HTTPS_PROXY"),
        ("connect (101: Network is unreachable)", "HTTPS_PROXY"),
        ("ERROR: No matching distribution found for torch==2.9.0", "PIP_INDEX_URL"),
    ],
)
def test_a_build_that_failed_says_what_to_do(output: str, advice: str) -> None:
    """One without a network was told to look at package indexes."""
    assert advice in build_advice(output, {"PIP_EXTRA_INDEX_URL": "https://download.pytorch.org/whl/cpu"})


def test_ctrl_c_of_a_build_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Minutes are long, and what was built stays."""

    def build(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "image_build", build)
    assert backend(["image", "build"]) == 130
    assert capsys.readouterr().err == (
        "\nwindtunnel: interrupted. Steps that succeeded are kept: `windtunnel image build` goes on from there.\n"
    )
    monkeypatch.setattr(commands, "doctor", build)
    assert backend(["doctor"]) == 130
    assert capsys.readouterr().err == "\nwindtunnel: interrupted\n"
