"""AWS's wire formats: signatures, JSON 1.1, query and rest-xml, one file a service."""

from windtunnel_local.api.dispatch import Api, Services

__all__ = ["Api", "Services"]
