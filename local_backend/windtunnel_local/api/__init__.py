"""AWS's wire formats: signatures, JSON 1.1, query, rest-xml. A file a service; of S3 and SageMaker a file a matter."""

from windtunnel_local.api.dispatch import Api, Services

__all__ = ["Api", "Services"]
