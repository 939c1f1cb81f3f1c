"""The instance metadata service of a node."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from tests.fakes.http import serving

from neuron_node import metadata_service
from neuron_node.metadata_service import Facts, Service, simulated_id

FACTS = Facts("i-0simulated00000001", "trn1.32xlarge", "us-west-2d", "10.0.0.7")
TTL = "X-aws-ec2-metadata-token-ttl-seconds"
TOKEN = "X-aws-ec2-metadata-token"


@pytest.fixture
def service() -> Iterator[Service]:
    """It, on a free port."""
    made = Service(("127.0.0.1", 0), FACTS)
    with serving(made):
        yield made


def ask(service: Service, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    """Status and body."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    address = f"http://127.0.0.1:{service.server_address[1]}{path}"
    request = urllib.request.Request(address, method=method, headers=named)
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_version_2_as_the_scripts_ask_it(service: Service) -> None:
    """A token by PUT, then the instance's id and type with it."""
    code, token = ask(service, "/latest/api/token", "PUT", **{TTL: "21600"})
    assert code == 200 and len(token) > 40
    for name, value in (("instance-id", FACTS.instance_id), ("instance-type", "trn1.32xlarge")):
        assert ask(service, f"/latest/meta-data/{name}", **{TOKEN: token}) == (200, value)
    assert ask(service, "/latest/meta-data/instance-id", **{TOKEN: "another"})[0] == 401


@pytest.mark.parametrize("seconds", ["", "0", "21601", "a day", "\xb2"])
def test_a_token_needs_a_time(service: Service, seconds: str) -> None:
    """1 to 21,600 seconds, as on EC2."""
    assert ask(service, "/latest/api/token", "PUT", **{TTL: seconds})[0] == 400


def test_a_token_ends(service: Service) -> None:
    """After its seconds it is a stranger's."""
    _, token = ask(service, "/latest/api/token", "PUT", **{TTL: "21600"})
    service.tokens[token] -= 21601
    assert ask(service, "/latest/meta-data/instance-id", **{TOKEN: token})[0] == 401


def test_version_1_and_folders(service: Service) -> None:
    """Without a token; a folder lists what it has, folders with a slash."""
    assert ask(service, "/latest/meta-data/placement/region") == (200, "us-west-2")
    assert ask(service, "/latest/meta-data/placement/") == (200, "availability-zone\nregion")
    listed = ask(service, "/latest/meta-data")[1].splitlines()
    assert "placement/" in listed and "local-ipv4" in listed
    document = json.loads(ask(service, "/latest/dynamic/instance-identity/document")[1])
    assert (document["instanceType"], document["privateIp"]) == ("trn1.32xlarge", "10.0.0.7")


@pytest.mark.parametrize(
    "path",
    [
        "/latest/meta-data/iam/security-credentials/",
        "/latest/user-data",
        "/latest/meta-data/placement/x",
        "/x",
    ],
)
def test_what_is_not_there_is_404(service: Service, path: str) -> None:
    """At once, so that no SDK waits for a role's credentials: there is no role."""
    assert ask(service, path)[0] == 404


def test_an_id_is_the_container_s_or_no_real_one() -> None:
    """What describe-cluster-instances lists; EC2's are hexadecimal."""
    assert simulated_id("a") == simulated_id("a") != simulated_id("b")
    assert simulated_id("a").startswith("i-0simulated")
    mounts = f"2 1 8:1 /var/lib/docker/containers/{'0123456789abcdef' * 4}/hostname /etc/hostname rw\n"
    assert simulated_id("a", mounts) == "i-0123456789abcdef0"


def test_an_address_of_another_host_is_refused_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """TEST-NET-1 is nobody's."""
    assert metadata_service.main(["--instance-type", "trn1.32xlarge", "--address", "192.0.2.1"]) == 1
    assert "192.0.2.1:80 cannot be served" in capsys.readouterr().err
