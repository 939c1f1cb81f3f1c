"""AWS's APIs on the wire: signatures and protocols. One file for each service; for S3 and SageMaker, each subject."""

from windtunnel_local.api.dispatch import Api, Services

__all__ = ["Api", "Services"]
