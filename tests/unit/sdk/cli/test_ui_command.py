"""`windtunnel ui`: an address for one browser, once."""

from __future__ import annotations

import re
import webbrowser
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.unit.conftest import Invoke
from windtunnel.errors import JobNotFound
from windtunnel.session import resolve
from windtunnel.session.local_server import Credentials, RunningBackend
from windtunnel_local.ui.access import Access

KEYS = Credentials("AKIALOCAL", "local+secret/", "000000000000", "us-east-1")


@dataclass
class Local:
    """A session whose backend is started once it is asked for."""

    started: int = 0
    opened: list[str] = field(default_factory=list)
    browser: bool = True

    @property
    def backend(self) -> Local:
        return self

    @property
    def service(self) -> Local:
        return self

    def describe_job(self, name: str) -> dict[str, Any]:
        if name == "nope":
            raise JobNotFound(name, local=True)
        return {}

    def ensure(self) -> RunningBackend:
        self.started += 1
        return RunningBackend("http://127.0.0.1:20001", 1, "0", "docker")

    def credentials(self) -> Credentials:
        return KEYS

    def open(self, url: str) -> bool:
        self.opened.append(url)
        return self.browser


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> Local:
    local = Local()
    monkeypatch.setattr(resolve, "shared_local_session", lambda: local)
    monkeypatch.setattr(webbrowser, "open", local.open)
    return local


def test_it_starts_the_backend_and_opens_the_page(local: Local, invoke: Invoke) -> None:
    """What is printed is what is opened; the server takes its token, once."""
    printed = invoke("ui").out.strip()
    assert local.opened == [printed]
    assert local.started == 1
    found = re.fullmatch(r"http://127\.0\.0\.1:20001/ui/enter\?token=([\w.-]+)&to=/ui/jobs", printed)
    assert found
    made = int(found[1].partition(".")[0]) / 1_000_000
    access = Access(KEYS.secret_access_key, made - 1)
    assert access.spend(found[1], made + 59)
    assert not access.spend(found[1], made + 59)
    assert KEYS.secret_access_key not in printed


def test_a_job_is_where_it_leads(local: Local, invoke: Invoke) -> None:
    """Whatever its name would mean in an address."""
    assert invoke("ui", "a/b?c&d", "--no-browser").out.strip().endswith("&to=/ui/jobs/a%252Fb%253Fc%2526d")
    assert local.opened == []


def test_a_job_that_is_not_there_has_no_address(local: Local, invoke: Invoke) -> None:
    """As for every other command."""
    done = invoke("ui", "nope", "--no-browser", exits=1)
    assert (done.out, local.opened) == ("", [])
    assert done.err.startswith("windtunnel: No training job 'nope'")


def test_two_addresses_differ(local: Local, invoke: Invoke) -> None:
    """Each is for one browser."""
    assert invoke("ui", "--no-browser").out != invoke("ui", "--no-browser").out


def test_without_a_browser_the_address_is_there(local: Local, invoke: Invoke) -> None:
    """And what to do with it."""
    local.browser = False
    assert "open this address" in invoke("ui").out
