"""STS: the caller's identity, and temporary credentials of a role.

Any role name is a role of the one local account, whichever account its ARN names, so that a rehearsal needs no
changes. Policies and tags of a session are not simulated: every caller may do everything.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from windtunnel_local.api.callers import CURRENT, Caller, SessionTokens
from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.rpc import Input, Operations, Output
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.ports import JobKeys

USER = "windtunnel"
_DEFAULT_S = 3600
_CHAINED_S = 3600  # the most for a role that a role assumes
_USER_DEFAULT_S = 43200
_ROLE_ARN = re.compile(
    r"arn:aws[\w-]*:iam::\d{12}:role/(?:[\x21-\x7e]*/)?(?P<name>[\w+=,.@-]{1,64})", re.ASCII
)
# Members that restrict a session, or prove who asks: to accept them without effect would mislead.
_NOT_SERVED = ("Policy", "PolicyArns", "SerialNumber", "TokenCode", "ProvidedContexts")


def operations(
    account_id: str, access_key_id: str, secret_access_key: str, now: Callable[[], datetime]
) -> Operations:
    """STS's operations for the one local account."""
    tokens = SessionTokens(secret_access_key)

    def credentials(caller: Caller, seconds: int) -> dict[str, Any]:
        made = tokens.issue(caller, now() + timedelta(seconds=seconds))
        return {
            "AccessKeyId": made.access_key_id,
            "SecretAccessKey": made.secret_access_key,
            "SessionToken": made.session_token,
            "Expiration": made.expires,
        }

    def get_caller_identity(_: Input) -> Output:
        caller = CURRENT.get()
        if caller.role is None:
            return {"UserId": access_key_id, "Account": account_id, "Arn": user_arn(account_id)}
        return {**_assumed(account_id, caller, "UserId"), "Account": account_id}

    def assume_role(request: Input) -> Output:
        _refuse_unserved(request)
        role = _role(request["RoleArn"], account_id)
        seconds = request.get("DurationSeconds", _DEFAULT_S)
        if CURRENT.get().role is not None and seconds > _CHAINED_S:
            raise ApiError(
                "ValidationError",
                "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role "
                "chaining",
            )
        caller = Caller(role, request["RoleSessionName"], CURRENT.get().job)
        return {
            "SourceIdentity": request.get("SourceIdentity"),
            "Credentials": credentials(caller, seconds),
            "AssumedRoleUser": _assumed(account_id, caller, "AssumedRoleId"),
        }

    def get_session_token(request: Input) -> Output:
        _refuse_unserved(request)
        if CURRENT.get() != Caller():
            raise ApiError("AccessDenied", "Cannot call GetSessionToken with session credentials", 403)
        seconds = request.get("DurationSeconds", _USER_DEFAULT_S)
        return {"Credentials": credentials(Caller(None, USER), seconds)}

    return {
        "AssumeRole": assume_role,
        "GetCallerIdentity": get_caller_identity,
        "GetSessionToken": get_session_token,
    }


def keys_of_jobs(secret_access_key: str) -> JobKeys:
    """A function that makes keys of a job's role for the job's code, with the session name that SageMaker uses.

    The keys are environment variables, as every client reads those. A container's credentials endpoint
    would have to give keys to callers that have none.
    """
    tokens = SessionTokens(secret_access_key)

    def keys(job: Job, until: datetime) -> Mapping[str, str]:
        # SageMaker's pattern allows a slash at the end; a session without a role would be the home's user.
        role = job.request["RoleArn"].rstrip("/").rpartition("/")[2]
        made = tokens.issue(Caller(role, "SageMaker", job.identity), until)
        return {
            "AWS_ACCESS_KEY_ID": made.access_key_id,
            "AWS_SECRET_ACCESS_KEY": made.secret_access_key,
            "AWS_SESSION_TOKEN": made.session_token,
        }

    return keys


def user_arn(account_id: str) -> str:
    """The ARN of the user who owns the home's key pair."""
    return f"arn:aws:iam::{account_id}:user/{USER}"


def role_id(name: str) -> str:
    """A role's unique id, derived from its name, so that it is the same at each call."""
    return "AROA" + hashlib.sha256(name.encode()).hexdigest()[:17].upper()


def _role(arn: str, account_id: str) -> str:
    """The name in a role's ARN; raises ``ApiError``."""
    match = _ROLE_ARN.fullmatch(arn)
    if match is None:
        raise ApiError(
            "ValidationError",
            f"{arn[:256]} is invalid: a role's ARN is arn:aws:iam::{account_id}:role/NAME.",
        )
    return match["name"]


def _assumed(account_id: str, caller: Caller, id_member: str) -> dict[str, str]:
    role = str(caller.role)
    return {
        id_member: f"{role_id(role)}:{caller.session}",
        "Arn": f"arn:aws:sts::{account_id}:assumed-role/{role}/{caller.session}",
    }


def _refuse_unserved(request: Input) -> None:
    given = [name for name in _NOT_SERVED if name in request]
    if given:
        raise ApiError(
            "ValidationError",
            f"Windtunnel does not simulate {', '.join(given)}: its sessions may do all that their account may. "
            "Leave them out.",
        )
