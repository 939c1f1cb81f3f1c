"""CloudWatch's operations that read metrics: pass the request's members to the service."""

from __future__ import annotations

from windtunnel_local.api.rpc import Input, Operations, Output
from windtunnel_local.service.observed.cloudwatch_metrics import MetricsService


def operations(metrics: MetricsService) -> Operations:
    """The operations of CloudWatch that are served."""

    def get_metric_statistics(request: Input) -> Output:
        return metrics.get_metric_statistics(
            request["Namespace"],
            request["MetricName"],
            request.get("Dimensions", ()),
            request["StartTime"],
            request["EndTime"],
            request["Period"],
            request.get("Statistics", ()),
            request.get("ExtendedStatistics", ()),
            request.get("Unit"),
        )

    def get_metric_data(request: Input) -> Output:
        return metrics.get_metric_data(
            request["MetricDataQueries"],
            request["StartTime"],
            request["EndTime"],
            ascending=request.get("ScanBy") == "TimestampAscending",
            limit=request.get("MaxDatapoints"),
            token=request.get("NextToken"),
        )

    def list_metrics(request: Input) -> Output:
        return metrics.list_metrics(
            request.get("Namespace"),
            request.get("MetricName"),
            request.get("Dimensions", ()),
            request.get("NextToken"),
        )

    return {
        "GetMetricStatistics": get_metric_statistics,
        "GetMetricData": get_metric_data,
        "ListMetrics": list_metrics,
    }
