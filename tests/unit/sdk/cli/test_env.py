"""`windtunnel env`: a shell goes in and comes back out as it was, whatever its variables hold."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.sdk.session import fake_backend
from windtunnel.cli import env as env_command
from windtunnel.cli import main as cli
from windtunnel.errors import ConfigurationError
from windtunnel.session import client_environment, resolve
from windtunnel.session.local import LocalSession
from windtunnel.session.local_server import Backend, Credentials

KEYS = Credentials("AKIALOCAL", "local+secret/", "000000000000", "us-east-1")
ENDPOINT = "http://127.0.0.1:20001"
ODD = "/home/o'brien/a b$HOME`x`\"\\\n;é"
VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
NAMES = st.sampled_from(
    [
        "AWS_PROFILE",
        "AWS_ACCESS_KEY_ID",
        "AWS_ENDPOINT_URL_S3",
        "AWS_SESSION_TOKEN",
        "HTTP_PROXY",
        "no_proxy",
        "SAGEMAKER_USER_CONFIG_OVERRIDE",
        "UNRELATED",
    ]
)


def entering(before: Mapping[str, str], home: str = "/home/me/.windtunnel") -> dict[str, str | None]:
    return client_environment.entering(before, Path(home), Path(home, "clients"), ENDPOINT, KEYS)


def applied(before: Mapping[str, str], changes: client_environment.Changes) -> dict[str, str]:
    return {name: value for name, value in {**before, **changes}.items() if value is not None}


@given(st.dictionaries(NAMES, VALUES), st.integers(1, 3))
def test_leaving_restores_what_was_before(before: dict[str, str], times: int) -> None:
    """After any number of calls, also what is secret, empty or odd."""
    now = dict(before)
    for _ in range(times):
        now = applied(now, entering(now))
    assert applied(now, client_environment.leaving(now)) == before


def test_nothing_of_a_real_account_is_left() -> None:
    """Keys are replaced; profiles, tokens, roles and endpoints of single services are gone."""
    before = {
        "AWS_PROFILE": "work",
        "AWS_ACCESS_KEY_ID": "AKIAREAL",
        "AWS_SESSION_TOKEN": "real",
        "AWS_WEB_IDENTITY_TOKEN_FILE": "/token",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.2/x",
        "AWS_ENDPOINT_URL_STS": "https://sts.amazonaws.com",
        "AWS_CONFIG_FILE": "/home/me/.aws/config",
        "AWS_USE_FIPS_ENDPOINT": "true",
        "PATH": "/bin",
    }
    after = applied(before, entering(before))
    saved = after.pop(client_environment.SAVED)
    assert not {value for value in after.values() if value in before.values()} - {"/bin", "true"}
    assert {name for name in before if name not in after} == {
        "AWS_PROFILE",
        "AWS_SESSION_TOKEN",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_ENDPOINT_URL_STS",
        "AWS_USE_FIPS_ENDPOINT",
    }
    assert json.loads(saved)["AWS_PROFILE"] == "work"


@pytest.mark.parametrize(
    ("name", "there", "here"),
    [
        ("AWS_ALLOW_HTTP", "false", "true"),  # without it clients in Rust (deltalake, lancedb) refuse http://
        ("S3_ENDPOINT_URL", "https://minio.example", ENDPOINT),  # of s5cmd and MosaicML's streaming
    ],
)
def test_clients_with_a_variable_of_their_own_are_here_too(name: str, there: str, here: str) -> None:
    after = applied({name: there}, entering({name: there}))
    assert after[name] == here
    assert applied(after, client_environment.leaving(after)) == {name: there}


def test_the_cli_transfers_without_the_crt() -> None:
    """Which version 2 takes unasked on trn1, p4d and p5, with TLS. "default" is what all versions know."""
    config = ConfigParser()
    config.read_string(client_environment.files(KEYS, "bucket", "role")["aws-config"])
    assert "preferred_transfer_client = default" in config["default"]["s3"].splitlines()


def test_a_proxy_is_not_asked_for_loopback() -> None:
    """Where there is one, it is told so once; where there is none, nothing is said."""
    assert "NO_PROXY" not in entering({})
    before = {"http_proxy": "http://proxy:3128", "no_proxy": "a.example, b.example"}
    after = applied(before, entering(before))
    assert after["no_proxy"] == "a.example,b.example,127.0.0.1"
    assert applied(after, entering(after))["no_proxy"] == after["no_proxy"]
    assert entering({"HTTP_PROXY": "p", "NO_PROXY": "*"})["NO_PROXY"] == "*"


@pytest.mark.parametrize("saved", ["", "x", "[]", '{"A;B": "1"}', '{"A": 1}'])
def test_what_was_saved_by_others_is_not_trusted(saved: str) -> None:
    """It becomes lines that a shell runs."""
    now = {client_environment.SAVED: saved}
    if not saved:
        assert client_environment.leaving(now) == {}
        return
    with pytest.raises(ConfigurationError, match="Start a new shell"):
        client_environment.leaving(now)


def shell_sees(lines: list[str], shell: str = "sh") -> dict[str, str]:
    """A shell's exported variables after it has run the lines, as `eval "$(...)"` does."""
    program = "import json, os; print(json.dumps(dict(os.environ)))"
    script = 'eval "$LINES"; "$PYTHON" -c "$PROGRAM"' if shell == "sh" else "eval $LINES; $PYTHON -c $PROGRAM"
    done = subprocess.run(
        [shell, "-c", script],
        env={
            "LINES": "\n".join(lines),
            "PYTHON": sys.executable,
            "PROGRAM": program,
            "AWS_PROFILE": "work",
            "LC_ALL": "C.UTF-8",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    seen: dict[str, str] = json.loads(done.stdout)
    return seen


@pytest.mark.parametrize("shell", ["sh", "fish"])
def test_the_lines_mean_what_they_say(shell: str) -> None:
    """In the shell itself, for a home with quotes, blanks, dollars, backslashes and a line's end in it."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    changes = entering({"AWS_PROFILE": "work"}, ODD)
    seen = shell_sees(env_command.SHELLS[shell](changes), shell)
    for name, value in changes.items():
        assert seen.get(name) == value, name


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A home with an odd name whose backend is the fake one."""
    home = tmp_path / "o'brien $HOME"
    monkeypatch.setenv("WINDTUNNEL_HOME", str(home))
    monkeypatch.delenv(client_environment.SAVED, raising=False)
    backend = Backend(home, [sys.executable, fake_backend.__file__, "ok"])
    session = LocalSession(home, backend=backend)
    monkeypatch.setattr(resolve, "shared_local_session", lambda: session)
    yield home
    backend.stop()


def test_the_command_starts_a_backend_that_stays(
    home: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Its files are the owner's, whole, and what the lines point at; `down` lets it leave again."""
    assert cli.main(["env"]) == 0
    lines = os.fsdecode(capfdbinary.readouterr().out).splitlines()
    assert lines[-1].startswith("# ") and "get_execution_role" in lines[-1]
    seen = shell_sees(lines)
    assert seen["WINDTUNNEL_HOME"] == str(home)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "SAGEMAKER_USER_CONFIG_OVERRIDE"):
        path = Path(seen[name])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "aws_secret_access_key = SK\n" in Path(seen["AWS_SHARED_CREDENTIALS_FILE"]).read_text()
    assert sorted(path.name for path in (home / "clients").iterdir()) == [
        "aws-config",
        "aws-credentials",
        "sagemaker.yaml",
    ]
    assert (home / "keep").exists()
    assert cli.main(["down"]) == 0
    assert not (home / "keep").exists()


def test_who_names_an_idle_time_means_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the backend may leave."""
    monkeypatch.setenv("WINDTUNNEL_IDLE_SECONDS", "60")
    assert cli.main(["env", "--json"]) == 0
    assert not (home / "keep").exists()


def test_json_and_the_way_back(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """`--json` is for programs: a value to set, null to unset."""
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert cli.main(["env", "--json"]) == 0
    changes = json.loads(capfd.readouterr().out)
    assert changes["AWS_PROFILE"] is None
    monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.setenv(client_environment.SAVED, changes[client_environment.SAVED])
    assert cli.main(["env", "--unset", "--json"]) == 0
    back = json.loads(capfd.readouterr().out)
    assert (back["AWS_PROFILE"], back["AWS_ENDPOINT_URL"]) == ("work", None)
    monkeypatch.delenv(client_environment.SAVED)
    assert cli.main(["env", "--unset"]) == 0
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "not in the environment" in captured.err


def test_one_command_only(home: Path) -> None:
    """`env -- COMMAND` becomes the command, with its exit code; the caller's shell stays as it is."""
    cli.main(["env", "--json"])
    program = [sys.executable, "-m", "windtunnel.cli.main", "env", "--"]
    here = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    words = ["sh", "-c", 'echo "$AWS_ACCESS_KEY_ID"; exit 7']
    done = subprocess.run([*program, *words], env=here, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "AK\n"), done.stderr
    done = subprocess.run([*program, "/no/such"], env=here, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "windtunnel: /no/such cannot be started: No such file or directory.\n",
    )


def test_a_terminal_shows_no_secret(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither the backend's nor one of the account that was there before."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of a real account")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert cli.main(["env"]) == 0
    captured = capfd.readouterr()
    assert "AWS_SECRET_ACCESS_KEY='(not shown on a terminal)'" in captured.out
    assert "real account" not in captured.out
    assert "SK" not in captured.out
    assert 'eval "$(windtunnel env)"' in captured.err
    assert cli.main(["env", "--shell", "fish"]) == 0
    assert capfd.readouterr().err.endswith("To do so: windtunnel env --shell fish | source\n")
