"""What a host behind a TLS-inspecting proxy must hand on, so that pip works in builds and in jobs.

Pure: reads the environment it is given and pip's configuration files, nothing else.
"""

from __future__ import annotations

import configparser
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

CA_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")
"""Variables in which a host names its CA bundle. If it names one, all of them are set for jobs."""

_PROXY_VARIABLES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_PIP_OPTIONS = {
    "PIP_INDEX_URL": "index-url",
    "PIP_EXTRA_INDEX_URL": "extra-index-url",
    "PIP_FIND_LINKS": "find-links",
    "PIP_TRUSTED_HOST": "trusted-host",
}
_LOCAL = ("file:", "/", "./")


@dataclass(frozen=True)
class HostNetwork:
    """How this host reaches package indexes."""

    ca_bundle: Path | None = None
    """The host's CA certificates, when its environment or pip's configuration names a file."""
    pip: Mapping[str, str] = field(default_factory=dict)
    """PIP_* variables that mean the same inside a container."""
    proxies: Mapping[str, str] = field(default_factory=dict)
    """Proxy variables, spelled as on the host (upper or lower case)."""
    folders: tuple[Path, ...] = ()
    """Folders of this host in which pip finds packages; containers do not see them."""

    def job_environment(self, ca_bundle_target: str) -> dict[str, str]:
        """Variables for a job's container, its CA bundle being mounted at ``ca_bundle_target``.

        A proxy on the host's own loopback is left out: inside a container it is another machine.
        """
        ca = dict.fromkeys(CA_VARIABLES, ca_bundle_target) if self.ca_bundle else {}
        proxies = {name: url for name, url in self.proxies.items() if not _is_loopback(url)}
        return {**past_proxies(proxies), **self.pip, **ca}

    def build_arguments(self) -> dict[str, str]:
        """Build arguments of an image build, which runs in the host's own network."""
        return {**self.proxies, **self.pip}


def host_network(environment: Mapping[str, str], pip_files: Iterable[Path] | None = None) -> HostNetwork:
    """Collect CA bundle, pip settings and proxies; variables win over pip's files, as in pip.

    Args:
        environment: the process environment.
        pip_files: pip's configuration files, weakest first; None: where pip looks for them.
    """
    files = default_pip_files(environment) if pip_files is None else pip_files
    config = _read_pip_config(files)
    pip = {}
    folders: list[Path] = []
    for variable, option in _PIP_OPTIONS.items():
        words = (environment.get(variable) or config.get(option, "")).split()
        local = [word for word in words if word.startswith(_LOCAL)]
        folders += [Path(url2pathname(urlsplit(word).path)) for word in local]
        if urls := " ".join(word for word in words if word not in local):
            pip[variable] = urls
    candidates = [environment.get(name, "") for name in CA_VARIABLES] + [config.get("cert", "")]
    ca_bundle = next((Path(c) for c in candidates if c and Path(c).is_file()), None)
    proxies = {name: environment[name] for name in _PROXY_VARIABLES if environment.get(name)}
    return HostNetwork(ca_bundle=ca_bundle, pip=pip, proxies=proxies, folders=tuple(folders))


def past_proxies(variables: Mapping[str, str]) -> dict[str, str]:
    """These variables; if they name a proxy, ``no_proxy`` gets the loopback addresses."""
    if not any(name.lower() in ("http_proxy", "https_proxy") for name in variables):
        return dict(variables)
    hosts = {name: variables.get(name, "") for name in ("no_proxy", "NO_PROXY")}
    return {**variables, **{name: f"{said},127.0.0.1".lstrip(",") for name, said in hosts.items()}}


def default_pip_files(environment: Mapping[str, str]) -> list[Path]:
    """Where pip looks for its configuration on Linux, weakest first (pip's user guide, "Configuration")."""
    home = Path(environment.get("HOME") or "/")
    user = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    files = [
        Path("/etc/pip.conf"),
        home / ".pip" / "pip.conf",
        user / "pip" / "pip.conf",
        Path(sys.prefix) / "pip.conf",
    ]
    if environment.get("PIP_CONFIG_FILE"):
        files.append(Path(environment["PIP_CONFIG_FILE"]))
    return files


def _read_pip_config(files: Iterable[Path]) -> dict[str, str]:
    options: dict[str, str] = {}
    for file in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue  # pip itself will complain about this file in its own words
        for section in ("global", "install"):
            if parser.has_section(section):
                options.update({name.replace("_", "-"): value for name, value in parser.items(section)})
    return options


def _is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url if "//" in url else f"//{url}").hostname
    except ValueError:
        return False
    return host is not None and (host == "localhost" or host == "::1" or host.startswith("127."))
