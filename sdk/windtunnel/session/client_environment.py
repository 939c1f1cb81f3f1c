"""Environment variables with which AWS's own clients use the local backend, and how to restore the old ones. Pure.

Variables that lead to a real account are removed or replaced: keys, profiles, role and container credentials,
endpoints of single services. Their old values are kept as JSON in one variable, `SAVED`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from windtunnel.errors import ConfigurationError
from windtunnel.session.local_server import Credentials

SAVED = "WINDTUNNEL_ENV_BEFORE"
Changes = Mapping[str, str | None]
"""Variables to set, or to unset (None)."""

# With one of these, a client would sign with other keys, or ask another endpoint.
_REMOVED = (
    "AWS_ACCOUNT_ID",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CREDENTIAL_EXPIRATION",
    "AWS_DEFAULT_PROFILE",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_PROFILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_SECURITY_TOKEN",
    "AWS_SESSION_TOKEN",
    "AWS_USE_DUALSTACK_ENDPOINT",
    "AWS_USE_FIPS_ENDPOINT",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
)
_ENDPOINT_OF_A_SERVICE = re.compile(r"AWS_ENDPOINT_URL_\w+", re.ASCII)
_PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
_NO_PROXY = ("no_proxy", "NO_PROXY")
_LOOPBACK = "127.0.0.1"
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def files(credentials: Credentials, bucket: str, role: str) -> dict[str, str]:
    """Names and contents of the files that the variables point at."""
    note = "# Written by `windtunnel env`, and written again at its next call.\n"
    return {
        # Without s3v4, boto3 and the CLI sign S3's URLs with version 2 in us-east-1.
        # Without "default", the CLI v2 on EC2's large instances uses AWS's CRT, which speaks TLS to any endpoint.
        "aws-config": f"{note}[default]\nregion = {credentials.region}\ns3 =\n    signature_version = s3v4\n"
        "    preferred_transfer_client = default\n",
        "aws-credentials": f"{note}[default]\naws_access_key_id = {credentials.access_key_id}\n"
        f"aws_secret_access_key = {credentials.secret_access_key}\n",
        # Given a bucket and a role, SDK v2 and v3 need not ask the real STS for the account.
        "sagemaker.yaml": f"{note}SchemaVersion: '1.0'\n"
        "SageMaker:\n"
        "  PythonSDK:\n"
        "    Modules:\n"
        "      TelemetryOptOut: true\n"
        "      Session:\n"
        f"        DefaultS3Bucket: {bucket}\n"
        # @remote passes its function through S3, so the job needs access to S3.
        "      RemoteFunction:\n"
        f"        RoleArn: {role}\n"
        "        EnvironmentVariables:\n"
        "          WINDTUNNEL_AWS_IN_JOBS: '1'\n"
        "  TrainingJob:\n"
        f"    RoleArn: {role}\n",
    }


def entering(
    before: Mapping[str, str], home: Path, folder: Path, endpoint: str, credentials: Credentials
) -> dict[str, str | None]:
    """Variables to set (None: to unset) so that AWS's clients use the local backend. Idempotent.

    Args:
        before: the current variables.
        home: the backend's state directory.
        folder: the directory that holds `files`.
        endpoint: the backend's URL.
        credentials: the backend's key pair.
    """
    changes: dict[str, str | None] = {
        "AWS_ENDPOINT_URL": endpoint,
        "S3_ENDPOINT_URL": endpoint,  # s5cmd reads this one only
        "AWS_ALLOW_HTTP": "true",  # else Rust's object_store refuses an endpoint without TLS
        "AWS_ACCESS_KEY_ID": credentials.access_key_id,
        "AWS_SECRET_ACCESS_KEY": credentials.secret_access_key,
        "AWS_REGION": credentials.region,
        "AWS_DEFAULT_REGION": credentials.region,
        "AWS_CONFIG_FILE": str(folder / "aws-config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "aws-credentials"),
        "AWS_EC2_METADATA_DISABLED": "true",
        "SAGEMAKER_USER_CONFIG_OVERRIDE": str(folder / "sagemaker.yaml"),
        "SAGEMAKER_ADMIN_CONFIG_OVERRIDE": str(folder / "sagemaker.yaml"),
        "WINDTUNNEL_HOME": str(home),
    }
    if any(before.get(name) for name in _PROXIES):
        changes.update({name: _bypassing(before.get(name, "")) for name in _NO_PROXY})
    changes.update(dict.fromkeys(_REMOVED))
    changes.update({name: None for name in sorted(before) if _ENDPOINT_OF_A_SERVICE.fullmatch(name)})
    return {**changes, SAVED: _saved(before, changes)}


def leaving(now: Mapping[str, str]) -> dict[str, str | None]:
    """Variables to set (None: to unset) to undo `entering`; empty if there is nothing to undo.

    Raises:
        ConfigurationError: the saved values cannot be read.
    """
    if not now.get(SAVED):
        return {}
    try:
        saved = json.loads(now[SAVED])
        sound = all(
            _NAME.fullmatch(name) and isinstance(value, (str, type(None))) for name, value in saved.items()
        )
    except (ValueError, AttributeError):
        sound = False
    if not sound:
        raise ConfigurationError(
            f"{SAVED} does not hold what `windtunnel env` has put there, so nothing can be restored. "
            f"Start a new shell, or unset {SAVED} and the AWS_ variables by hand."
        )
    return {**saved, SAVED: None}


def _saved(before: Mapping[str, str], changes: Changes) -> str:
    """The old values as JSON: those before the first call, if `entering` is called several times."""
    try:
        earlier: dict[str, str | None] = leaving(before)
    except ConfigurationError:
        earlier = {}
    earlier.pop(SAVED, None)
    # A variable that is to be unset and is not there needs no entry.
    touched = {name: before.get(name) for name in changes if changes[name] is not None or name in before}
    return json.dumps({**touched, **earlier}, sort_keys=True)


def _bypassing(no_proxy: str) -> str:
    """The value of no_proxy, with the loopback address added."""
    hosts = [host.strip() for host in no_proxy.split(",") if host.strip()]
    return ",".join(hosts if _LOOPBACK in hosts or "*" in hosts else [*hosts, _LOOPBACK])
