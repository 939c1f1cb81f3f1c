"""SageMaker's models, endpoint configurations and endpoints: the wire's members to the service's arguments."""

from __future__ import annotations

from typing import Any

from windtunnel_local.api.rpc import Input, Operations, Output
from windtunnel_local.api.sagemaker import LISTED
from windtunnel_local.service.ground.hosting import Kind, ResourceQuery
from windtunnel_local.service.hosting.hosting import HostingService


def operations(hosting: HostingService) -> Operations:
    """The operations of SageMaker on what is deployed."""

    def listed(kind: Kind, request: Input) -> Output:
        arguments: dict[str, Any] = {LISTED[member]: value for member, value in request.items()}
        return hosting.list(ResourceQuery(kind, **arguments))

    def delete(kind: Kind, name: str) -> Output:
        hosting.delete(kind, name)
        return {}

    def delete_endpoint(request: Input) -> Output:
        hosting.delete_endpoint(request["EndpointName"])
        return {}

    return {
        "CreateModel": lambda request: {"ModelArn": hosting.create_model(request)},
        "DescribeModel": lambda request: hosting.describe("model", request["ModelName"]),
        "ListModels": lambda request: listed("model", request),
        "DeleteModel": lambda request: delete("model", request["ModelName"]),
        "CreateEndpointConfig": lambda request: {"EndpointConfigArn": hosting.create_config(request)},
        "DescribeEndpointConfig": lambda request: hosting.describe(
            "endpoint-config", request["EndpointConfigName"]
        ),
        "ListEndpointConfigs": lambda request: listed("endpoint-config", request),
        "DeleteEndpointConfig": lambda request: delete("endpoint-config", request["EndpointConfigName"]),
        "CreateEndpoint": lambda request: {"EndpointArn": hosting.create_endpoint(request)},
        "DescribeEndpoint": lambda request: hosting.describe_endpoint(request["EndpointName"]),
        "ListEndpoints": lambda request: listed("endpoint", request),
        "UpdateEndpoint": lambda request: {"EndpointArn": hosting.update_endpoint(request)},
        "UpdateEndpointWeightsAndCapacities": lambda request: {
            "EndpointArn": hosting.update_weights(request)
        },
        "DeleteEndpoint": delete_endpoint,
    }
