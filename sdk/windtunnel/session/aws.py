"""The session of AWS: real SageMaker, through a boto3.Session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windtunnel.errors import ConfigurationError, ServiceCallFailed
from windtunnel.session.boto3_endpoints import BotoEndpoints
from windtunnel.session.boto3_training import BotoService
from windtunnel.session.boto3_transforms import BotoTransforms
from windtunnel.session.endpoint_service import EndpointService
from windtunnel.session.session import Session
from windtunnel.session.training_service import TrainingService
from windtunnel.session.transform_service import TransformService


class AwsSession(Session):
    """Jobs run on SageMaker itself and cost money.

    Args:
        boto_session: a ``boto3.Session``; default: AWS's usual chain of credentials.
        default_bucket: replaces the default bucket ``sagemaker-<region>-<account>``.
        service, endpoints, transforms: replace boto3 (tests).
    """

    local = False
    log_poll_s = 2.0
    least_poll_s = 2.0  # AWS limits the rate of calls
    describe_poll_s = 5.0
    settle_s = 4.0

    def __init__(
        self,
        boto_session: Any = None,
        *,
        default_bucket: str | None = None,
        service: TrainingService | None = None,
        endpoints: EndpointService | None = None,
        transforms: TransformService | None = None,
    ) -> None:
        self._boto_session = boto_session
        self._bucket = default_bucket
        self._account: str | None = None
        calls = BotoService(self._connect, local=False)
        self.service: TrainingService = service or calls
        self.endpoints: EndpointService = endpoints or BotoEndpoints(calls)
        self.transforms: TransformService = transforms or BotoTransforms(calls)

    @property
    def boto_session(self) -> Any:
        """The boto3.Session; imports boto3 on first use."""
        if self._boto_session is None:
            import boto3

            self._boto_session = boto3.Session()
        return self._boto_session

    @property
    def region(self) -> str:
        """The session's region."""
        from botocore.exceptions import BotoCoreError

        try:
            region = self.boto_session.region_name
        except BotoCoreError as error:  # a profile that does not exist, a file that cannot be read
            raise ConfigurationError(f"The AWS session cannot be made: {error}.") from error
        if not region:
            raise ConfigurationError(
                "The AWS session has no region. Set AWS_DEFAULT_REGION or boto3.Session(region_name=...)."
            )
        return str(region)

    def account_id(self) -> str:
        """The caller's account. The first call asks STS."""
        if self._account is None:
            self._account = self.service.account_id()
        return self._account

    def default_bucket(self) -> str:
        """``sagemaker-<region>-<account>``, or the bucket given."""
        if self._bucket:
            return self._bucket
        try:
            return f"sagemaker-{self.region}-{self.account_id()}"
        except ServiceCallFailed as error:
            raise ServiceCallFailed(
                error.operation,
                error.code,
                f"{error.service_message}. (The account is asked for to name the default bucket: "
                "AwsSession(default_bucket=...) names one, and a dry run then needs no network.)",
            ) from error

    def resolve_role(self, role: str | None) -> str:
        """The role's ARN: as given, or looked up in IAM by name."""
        if not role:
            raise ConfigurationError(
                "role= is required on AWS: the name or ARN of an IAM role that SageMaker may assume."
            )
        return role if "/" in role else self.service.role_arn(role)

    def _connect(self) -> tuple[Any, Mapping[str, Any]]:
        from botocore.config import Config

        return self.boto_session, {"config": Config(connect_timeout=5, retries={"mode": "standard"})}
