"""SageMaker's operations on models, endpoint configurations and endpoints: pass the members to the service."""

from __future__ import annotations

from windtunnel_local.api.rpc import Operations
from windtunnel_local.api.sagemaker import listed
from windtunnel_local.service.hosting.hosting import HostingService


def operations(hosting: HostingService) -> Operations:
    """The operations of SageMaker on models, endpoint configurations and endpoints."""
    return {
        "CreateModel": lambda request: {"ModelArn": hosting.create_model(request)},
        "DescribeModel": lambda request: hosting.describe("model", request["ModelName"]),
        "ListModels": lambda request: hosting.list(listed("model", request)),
        "DeleteModel": lambda request: hosting.delete("model", request["ModelName"]),
        "CreateEndpointConfig": lambda request: {"EndpointConfigArn": hosting.create_config(request)},
        "DescribeEndpointConfig": lambda request: hosting.describe(
            "endpoint-config", request["EndpointConfigName"]
        ),
        "ListEndpointConfigs": lambda request: hosting.list(listed("endpoint-config", request)),
        "DeleteEndpointConfig": lambda request: hosting.delete(
            "endpoint-config", request["EndpointConfigName"]
        ),
        "CreateEndpoint": lambda request: {"EndpointArn": hosting.create_endpoint(request)},
        "DescribeEndpoint": lambda request: hosting.describe_endpoint(request["EndpointName"]),
        "ListEndpoints": lambda request: hosting.list(listed("endpoint", request)),
        "UpdateEndpoint": lambda request: {"EndpointArn": hosting.update_endpoint(request)},
        "UpdateEndpointWeightsAndCapacities": lambda request: {
            "EndpointArn": hosting.update_weights(request)
        },
        "DeleteEndpoint": lambda request: hosting.delete_endpoint(request["EndpointName"]),
    }
