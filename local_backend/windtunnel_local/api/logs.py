"""CloudWatch Logs' operations that read: pass the request's members to the service."""

from __future__ import annotations

from windtunnel_local.api.rpc import Input, Operations, Output
from windtunnel_local.service.ground.errors import InvalidParameter
from windtunnel_local.service.observed.logs import MAX_STREAMS, LogsService


def operations(logs: LogsService) -> Operations:
    """The operations of CloudWatch Logs that are served."""

    def describe_log_groups(request: Input) -> Output:
        if "nextToken" in request:
            raise InvalidParameter("The specified nextToken is invalid: the one group comes in one page.")
        if request.get("logGroupClass", "STANDARD") != "STANDARD":
            return {"logGroups": []}
        names = request.get("logGroupIdentifiers")
        return logs.describe_log_groups(
            prefix=request.get("logGroupNamePrefix"),
            pattern=request.get("logGroupNamePattern"),
            names=None if names is None else [_bare(name) for name in names],
        )

    def describe_log_streams(request: Input) -> Output:
        return logs.describe_log_streams(
            _group(request),
            prefix=request.get("logStreamNamePrefix"),
            order_by=request.get("orderBy", "LogStreamName"),
            descending=request.get("descending", False),
            limit=request.get("limit", MAX_STREAMS),
            token=request.get("nextToken"),
        )

    def get_log_events(request: Input) -> Output:
        return logs.get_log_events(
            _group(request),
            request["logStreamName"],
            start_ms=request.get("startTime"),
            end_ms=request.get("endTime"),
            from_head=request.get("startFromHead", False),
            token=request.get("nextToken"),
            limit=request.get("limit"),
        )

    def filter_log_events(request: Input) -> Output:
        if not request.get("startFromHead", True):
            raise InvalidParameter(
                "startFromHead=false is not supported here: the earliest events come first. Leave it out, and give"
                " startTime for the latest ones."
            )
        return logs.filter_log_events(
            _group(request),
            streams=request.get("logStreamNames"),
            prefix=request.get("logStreamNamePrefix"),
            start_ms=request.get("startTime"),
            end_ms=request.get("endTime"),
            pattern=request.get("filterPattern"),
            token=request.get("nextToken"),
            limit=request.get("limit"),
        )

    return {
        "DescribeLogGroups": describe_log_groups,
        "DescribeLogStreams": describe_log_streams,
        "GetLogEvents": get_log_events,
        "FilterLogEvents": filter_log_events,
    }


def _group(request: Input) -> str:
    """The log group's name; the request gives it or an ARN. Raises ``InvalidParameter``."""
    name = request.get("logGroupName") or request.get("logGroupIdentifier")
    if not name:
        raise InvalidParameter("Give logGroupName or logGroupIdentifier.")
    return _bare(name)


def _bare(name: str) -> str:
    return name.rpartition(":log-group:")[2].removesuffix(":*")
