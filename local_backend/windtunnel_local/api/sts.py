"""STS: who am I."""

from __future__ import annotations

from windtunnel_local.api.rpc import Input, Operations, Output


def operations(account_id: str, access_key_id: str) -> Operations:
    """STS of the one local account."""

    def get_caller_identity(_: Input) -> Output:
        arn = f"arn:aws:iam::{account_id}:user/windtunnel"
        return {"UserId": access_key_id, "Account": account_id, "Arn": arn}

    return {"GetCallerIdentity": get_caller_identity}
