"""IAM: any role name is a role here, one that SageMaker may assume. Nothing else of IAM is simulated."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timezone
from urllib.parse import quote

from windtunnel_local.api.rpc import Input, Operations, Output

_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ],
}
_CREATED = datetime(2020, 1, 1, tzinfo=timezone.utc)  # not stored: the same at each call


def operations(account_id: str) -> Operations:
    """IAM of the one local account."""

    def get_role(request: Input) -> Output:
        name = request["RoleName"]
        role_id = "AROA" + hashlib.sha256(name.encode()).hexdigest()[:17].upper()
        role = {
            "Path": "/",
            "RoleName": name,
            "RoleId": role_id,
            "Arn": f"arn:aws:iam::{account_id}:role/{name}",
            "CreateDate": _CREATED,
            "AssumeRolePolicyDocument": quote(json.dumps(_TRUST), safe=""),
        }
        return {"Role": role}

    return {"GetRole": get_role}
