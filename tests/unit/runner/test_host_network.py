"""What a host behind a proxy hands on to image builds and jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from windtunnel_local.runner.host_network import CA_VARIABLES, HostNetwork, default_pip_files, host_network


def test_a_plain_host_hands_on_nothing() -> None:
    """No variables, no CA bundle."""
    network = host_network({"PATH": "/bin"}, [])
    assert network == HostNetwork()
    assert network.job_environment("/ca") == {}
    assert network.build_arguments() == {}


@pytest.mark.parametrize("variable", CA_VARIABLES)
def test_any_of_the_usual_variables_names_the_ca_bundle(variable: str, tmp_path: Path) -> None:
    """And a job gets all of them, at the path where it sees the file."""
    bundle = tmp_path / "ca.crt"
    bundle.touch()
    network = host_network({variable: str(bundle)}, [])
    assert network.ca_bundle == bundle
    assert network.job_environment("/opt/ca.crt") == dict.fromkeys(CA_VARIABLES, "/opt/ca.crt")


def test_a_ca_bundle_that_is_not_there_is_passed_over(tmp_path: Path) -> None:
    """The next place that names a file counts, down to pip's configuration."""
    bundle, config = tmp_path / "ca.crt", tmp_path / "pip.conf"
    bundle.touch()
    config.write_text(f"[global]\ncert = {bundle}\n")
    environment = {"SSL_CERT_FILE": str(tmp_path / "gone"), "PIP_CERT": str(tmp_path)}
    assert host_network(environment, [config]).ca_bundle == bundle


def test_variables_win_over_pips_files_and_later_files_over_earlier(tmp_path: Path) -> None:
    """As in pip itself."""
    first, second = tmp_path / "first.conf", tmp_path / "second.conf"
    first.write_text("[global]\nindex-url = http://first.test/\ntrusted-host = first.test\n")
    second.write_text("[global]\nindex-url = http://second.test/\nextra_index_url = http://extra.test/\n")
    network = host_network(
        {"PIP_EXTRA_INDEX_URL": "http://variable.test/"}, [first, second, tmp_path / "none"]
    )
    assert network.pip == {
        "PIP_INDEX_URL": "http://second.test/",
        "PIP_EXTRA_INDEX_URL": "http://variable.test/",
        "PIP_TRUSTED_HOST": "first.test",
    }


def test_folders_of_this_host_are_no_index_for_a_container() -> None:
    """They mean nothing there and would fail the build; what they hold is handed over by who can read them."""
    environment = {
        "PIP_EXTRA_INDEX_URL": "file:///srv/a%20simple http://index.test/ /srv/wheels",
        "PIP_FIND_LINKS": "/srv/more http://links.test/",
    }
    network = host_network(environment, [])
    assert network.pip == {
        "PIP_EXTRA_INDEX_URL": "http://index.test/",
        "PIP_FIND_LINKS": "http://links.test/",
    }
    assert network.folders == (Path("/srv/a simple"), Path("/srv/wheels"), Path("/srv/more"))


def test_a_broken_pip_file_is_passed_over(tmp_path: Path) -> None:
    """Pip says so itself when it is run."""
    broken = tmp_path / "pip.conf"
    broken.write_text("no section\n")
    assert host_network({}, [broken]) == HostNetwork()


def test_a_proxy_on_loopback_serves_builds_but_not_jobs() -> None:
    """A build runs in the host's network, a job in its own."""
    environment = {
        "http_proxy": "http://127.0.0.1:3128",
        "https_proxy": "http://user:secret@proxy.test:3128",
        "HTTP_PROXY": "localhost:3128",
        "no_proxy": "localhost,.test",
    }
    network = host_network(environment, [])
    assert network.build_arguments() == environment
    assert set(network.job_environment("/ca")) == {"https_proxy", "no_proxy", "NO_PROXY"}


def test_pip_is_looked_for_where_pip_looks() -> None:
    """The file of PIP_CONFIG_FILE is the strongest."""
    files = default_pip_files({"HOME": "/home/u", "PIP_CONFIG_FILE": "/x/pip.conf"})
    assert Path("/etc/pip.conf") == files[0]
    assert Path("/home/u/.config/pip/pip.conf") in files
    assert files[-1] == Path("/x/pip.conf")
