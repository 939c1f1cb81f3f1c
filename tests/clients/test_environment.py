"""The shell around the clients: what `windtunnel env` does to it, and undoes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.clients.places import Place

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1800)]
_OF_THE_SHELL = {"PWD", "OLDPWD", "_", "SHLVL"}


@pytest.fixture(scope="module")
def here(place: Callable[[str], Place]) -> Place:
    """One home for all tests: they start no job."""
    return place("boto3")


def test_the_shell_comes_back_as_it_was(here: Place) -> None:
    """With `--unset`, variables of a real account are there again, and nothing else is."""
    printed = here.run("sh", "-ec", ". ./leave.sh; env -0")
    after = dict(line.split("=", 1) for line in printed.split("\0") if line)
    assert {name: value for name, value in after.items() if name not in _OF_THE_SHELL} == here.environment


def test_no_network_is_there(prefix: list[str], here: Place) -> None:
    """What the other tests show, they show without one."""
    if not prefix:
        pytest.skip("this user may not take the network away")
    lines = here.run("python", "-c", "import socket; print([n for _, n in socket.if_nameindex()])")
    assert lines == "['lo']\n"


def test_a_real_profile_is_out_of_reach(here: Place) -> None:
    """Also when the script names it: nothing is signed with what lies in the user's home."""
    (here.home / ".aws").mkdir()
    (here.home / ".aws" / "credentials").write_text(
        "[production]\naws_access_key_id = AKIAREAL\naws_secret_access_key = real\n"
    )
    code, output = here.started(
        "python", "-c", "import boto3; boto3.Session(profile_name='production')"
    ).ended()
    assert code == 1
    assert "ProfileNotFound: The config profile (production) could not be found" in output


def test_boto3_is_the_local_user(here: Place) -> None:
    """Whatever profile, key or endpoint the shell had before."""
    program = (
        "import boto3; print(boto3.client('sts').get_caller_identity()['Arn'], boto3.Session().region_name)"
    )
    assert here.run("python", "-c", program).split() == [
        "arn:aws:iam::000000000000:user/windtunnel",
        "us-east-1",
    ]
