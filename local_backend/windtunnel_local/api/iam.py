"""IAM: every role name exists, as a role that SageMaker may assume; every principal may do everything.

Nothing else of IAM is simulated: no policy, no boundary, no path.
"""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote

from windtunnel_local.api import sts
from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.rpc import Input, Operations, Output

_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ],
}
_CREATED = datetime(2020, 1, 1, tzinfo=timezone.utc)  # not stored: the same at each call
_MAX_SESSION_S = 43200
_PAGE = 1000
_PRINCIPAL = re.compile(r"arn:aws[\w-]*:iam::\d{12}:(?:role|user|group)/[\x21-\x7e]+", re.ASCII)
_ACTION = re.compile(r"[A-Za-z0-9-]{1,64}:[A-Za-z0-9*]{1,64}", re.ASCII)
# Members with policies of the caller's own: an answer that ignores them would be wrong.
_NOT_SERVED = (
    "PolicyInputList",
    "PermissionsBoundaryPolicyInputList",
    "PolicyExclusionList",
    "ResourcePolicy",
)


def operations(account_id: str) -> Operations:
    """IAM's operations for the one local account."""

    def get_role(request: Input) -> Output:
        name = request["RoleName"]
        role = {
            "Path": "/",
            "RoleName": name,
            "RoleId": sts.role_id(name),
            "Arn": f"arn:aws:iam::{account_id}:role/{name}",
            "CreateDate": _CREATED,
            "AssumeRolePolicyDocument": quote(json.dumps(_TRUST), safe=""),
            "MaxSessionDuration": _MAX_SESSION_S,
        }
        return {"Role": role}

    return {"GetRole": get_role, "SimulatePrincipalPolicy": _simulate_principal_policy}


def _simulate_principal_policy(request: Input) -> Output:
    """SimulatePrincipalPolicy: all actions are allowed, as the backend allows them."""
    given = [name for name in _NOT_SERVED if name in request]
    if given:
        raise ApiError("InvalidInput", f"Windtunnel evaluates no policies: leave {', '.join(given)} out.")
    source = request["PolicySourceArn"]
    if not _PRINCIPAL.fullmatch(source):
        raise ApiError("InvalidInput", f"Invalid Entity Arn: {source[:256]} is no user, group or role.")
    wrong = [name for name in request["ActionNames"] if not _ACTION.fullmatch(name)]
    if wrong:
        raise ApiError(
            "InvalidInput", f"Invalid action name: {wrong[0][:128]}. It has the form service:Action."
        )
    results = [
        _allowed(action, resource)
        for action in request["ActionNames"]
        for resource in request.get("ResourceArns") or ["*"]
    ]
    start, size = _offset(request.get("Marker")), request.get("MaxItems", _PAGE)
    page = results[start : start + size]
    more = start + size < len(results)
    marker = {"Marker": str(start + size)} if more else {}
    return {"EvaluationResults": page, "IsTruncated": more, **marker}


def _allowed(action: str, resource: str) -> dict[str, Any]:
    return {
        "EvalActionName": action,
        "EvalResourceName": resource,
        "EvalDecision": "allowed",
        "MatchedStatements": [],
        "MissingContextValues": [],
    }


def _offset(marker: str | None) -> int:
    if marker is None:
        return 0
    if not (marker.isascii() and marker.isdigit() and len(marker) < 9):
        raise ApiError("InvalidInput", "The Marker is not one that a previous page ended with.")
    return int(marker)
