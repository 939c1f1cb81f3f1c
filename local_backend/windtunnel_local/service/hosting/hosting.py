"""SageMaker's operations on models, endpoint configurations and endpoints, without HTTP.

Answers are dicts in the shape of AWS's responses, with `datetime` for timestamps.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from windtunnel_local.service.ground import hosting
from windtunnel_local.service.ground.errors import ResourceNotFound, ValidationFailed
from windtunnel_local.service.ground.hosting import (
    KINDS,
    EndpointState,
    Fleet,
    Invocation,
    Kind,
    Resource,
    ResourceQuery,
)
from windtunnel_local.service.ground.ports import Ports
from windtunnel_local.service.ground.uris import join_s3
from windtunnel_local.service.hosting import accepted, serving_plan
from windtunnel_local.service.hosting.endpoint_run import EndpointRun
from windtunnel_local.service.hosting.hosting_members import ENDPOINT
from windtunnel_local.service.hosting.meter import Meter
from windtunnel_local.service.hosting.record_thread import RecordThreads
from windtunnel_local.service.hosting.records import Records, all_of, decoded, encoded
from windtunnel_local.service.hosting.router import Router
from windtunnel_local.service.request import validation

_PREFIX: Mapping[Kind, str] = {"model": "Model", "endpoint-config": "EndpointConfig", "endpoint": "Endpoint"}
"""The prefix of the API's member names (as ModelName), by kind; with an "s" the name of the list in an answer."""


class HostingService:
    """The operations on models, endpoint configurations and endpoints. Thread-safe; no call waits for a container."""

    def __init__(self, ports: Ports, records: Records) -> None:
        """Starts nothing; `resume` and `create_endpoint` do. ``records``: also those of transform jobs, for tags."""
        self._ports = ports
        self._records = records
        self.meter = Meter(ports)
        self._runs = RecordThreads(lambda name: EndpointRun(name, ports, self._records, self.meter))

    # --- the server's life ---

    def resume(self) -> None:
        """Adopt the endpoints that an earlier server left. Call once."""
        for endpoint in all_of(self._ports.store, "endpoint"):
            self._runs.look(endpoint.name)

    def busy(self) -> bool:
        """Whether any endpoint has instances; the server then does not leave when it is idle."""
        return any(run.is_running for run in self._runs.all())

    def shutdown(self) -> None:
        """Stop watching all endpoints, within seconds; their containers run on. Idempotent."""
        self._runs.shutdown()
        self.meter.flush(all_of_it=True)

    # --- models and configurations ---

    def create_model(self, request: Mapping[str, Any]) -> str:
        """Create a model; return its ARN. Raises ``ValidationFailed``, ``ResourceExists``."""
        accepted.check_model(request, self._ports.objects)
        return self._create("model", request)

    def create_config(self, request: Mapping[str, Any]) -> str:
        """Create an endpoint configuration; return its ARN.

        Raises:
            ValidationFailed: the request is not valid.
            ResourceExists: the name is taken.
            ResourceNotFound: a variant's model does not exist.
        """
        accepted.check_config(request, self._ports.objects)
        for variant in request["ProductionVariants"]:
            self._records.get("model", variant["ModelName"])
        return self._create("endpoint-config", request)

    def describe(self, kind: Kind, name: str) -> dict[str, Any]:
        """DescribeModel's or DescribeEndpointConfig's answer; raises ``ResourceNotFound``."""
        found = self._records.get(kind, name)
        told = {**found.request, f"{_PREFIX[kind]}Arn": found.arn, "CreationTime": found.created}
        if kind == "model":
            return {"EnableNetworkIsolation": False, **told}
        variants = [
            {**variant, "InitialVariantWeight": accepted.weight(variant)}
            for variant in found.request["ProductionVariants"]
        ]
        return {**told, "ProductionVariants": variants}

    def delete(self, kind: Kind, name: str) -> None:
        """Delete a model or a configuration; endpoints made from it run on. Raises ``ResourceNotFound``."""
        if not self._ports.store.delete_resource(kind, name):
            raise ResourceNotFound(kind, self._ports.config.arn(kind, name))

    def list(self, query: ResourceQuery) -> dict[str, Any]:
        """A List operation's answer: one page. Raises ``ValidationFailed`` for a token from another list."""
        found, token = self._ports.store.list_resources(query)
        answer: dict[str, Any] = {f"{_PREFIX[query.kind]}s": [_summary(resource) for resource in found]}
        return answer if token is None else {**answer, "NextToken": token}

    # --- endpoints ---

    def create_endpoint(self, request: Mapping[str, Any]) -> str:
        """Create an endpoint, which is then Creating; return its ARN.

        Raises:
            ValidationFailed: the request is not valid.
            ResourceExists: the name is taken.
            ResourceNotFound: its configuration or a model does not exist.
        """
        ENDPOINT.check(request)
        accepted.check_runner(self._ports.runner)
        state = EndpointState(self._fleet(request["EndpointConfigName"], 1))
        accepted.lifetime_s({tag["Key"]: tag["Value"] for tag in request.get("Tags", ())})
        arn = self._create("endpoint", request, "Creating", encoded(state))
        self._runs.look(request["EndpointName"])
        return arn

    def describe_endpoint(self, name: str) -> dict[str, Any]:
        """DescribeEndpoint's answer; raises ``ResourceNotFound``."""
        endpoint = self._records.get("endpoint", name)
        state = decoded(endpoint.record)
        answer: dict[str, Any] = {
            "EndpointName": name,
            "EndpointArn": endpoint.arn,
            "EndpointConfigName": state.fleet.config,
            "EndpointStatus": endpoint.status,
            "CreationTime": endpoint.created,
            "LastModifiedTime": endpoint.modified,
            "ProductionVariants": [self._variant(endpoint, state, v) for v in state.fleet.variants],
        }
        if state.fleet.asynchronous is not None:
            answer["AsyncInferenceConfig"] = accepted.async_config(state.fleet.asynchronous)
        return answer if state.failure_reason is None else {**answer, "FailureReason": state.failure_reason}

    def update_endpoint(self, request: Mapping[str, Any]) -> str:
        """UpdateEndpoint: the current configuration serves until the new one is ready. Returns the ARN.

        Raises:
            ResourceNotFound: no such endpoint, configuration or model.
            ValidationFailed: the endpoint is not InService. One that is Failed can only be deleted, as on AWS.
        """
        ENDPOINT.check(request)
        name, config = request["EndpointName"], request["EndpointConfigName"]

        def changed(endpoint: Resource) -> Resource:
            _require_settled(endpoint, "InService")
            state = decoded(endpoint.record)
            # A generation that no instance has: instances of a failed update may still be there.
            following = self._fleet(config, state.fleet.generation + state.made + 1)
            following = replace(following, updated=self._ports.clock.now().isoformat())
            if request.get("RetainAllVariantProperties"):
                following = _retaining(following, state.fleet)
            after = replace(state, following=following, failure_reason=None)
            return replace(endpoint, status="Updating", record=encoded(after))

        return self._amend(name, changed)

    def update_weights(self, request: Mapping[str, Any]) -> str:
        """UpdateEndpointWeightsAndCapacities; returns the ARN. Raises as `update_endpoint`."""
        wanted = {change["VariantName"]: change for change in request["DesiredWeightsAndCapacities"]}

        def changed(endpoint: Resource) -> Resource:
            _require_settled(endpoint, "InService")
            state = decoded(endpoint.record)
            known = [variant.name for variant in state.fleet.variants]
            if unknown := wanted.keys() - set(known):
                raise ValidationFailed(
                    f"Variants {', '.join(sorted(unknown))} not found. This endpoint has {', '.join(known)}."
                )
            variants = tuple(
                replace(
                    variant,
                    weight=float(wanted.get(variant.name, {}).get("DesiredWeight", variant.weight)),
                    count=int(wanted.get(variant.name, {}).get("DesiredInstanceCount", variant.count)),
                )
                for variant in state.fleet.variants
            )
            if not any(variant.weight > 0 and variant.count > 0 for variant in variants):
                raise ValidationFailed("One variant at least must have an instance and a weight above 0.")
            after = replace(state, fleet=replace(state.fleet, variants=variants))
            accepted.check_count(after.fleet.count)
            return replace(endpoint, status="Updating", record=encoded(after))

        return self._amend(request["EndpointName"], changed)

    def delete_endpoint(self, name: str) -> None:
        """Make an endpoint Deleting; its thread removes it soon.

        Raises:
            ResourceNotFound: no such endpoint.
            ValidationFailed: the endpoint is Creating or Updating.
        """
        if self._records.get("endpoint", name).status == "Deleting":
            return  # a second thread could outlive the first, and delete a new endpoint of the same name

        def deleting(endpoint: Resource) -> Resource:
            _require_settled(endpoint, "InService", "Failed", "Deleting")
            return replace(endpoint, status="Deleting")

        self._amend(name, deleting)

    def router(self, name: str) -> Router:
        """The router of an endpoint's requests; raises ``ResourceNotFound``, also if the endpoint has no thread."""
        return self._run(name).router

    def accept(
        self, name: str, location: str, headers: Mapping[str, str], ttl_s: int, timeout_s: int
    ) -> Invocation:
        """Accept an InvokeEndpointAsync: record the invocation durably, so that it is answered once.

        Raises:
            ResourceNotFound: no such endpoint.
            ValidationFailed: the endpoint is not InService, or not asynchronous.
        """
        run, endpoint = self._run(name), self._records.get("endpoint", name)
        fleet = decoded(endpoint.record).fleet
        if endpoint.status not in ("InService", "Updating"):
            raise ValidationFailed(
                f"Endpoint {name} is {endpoint.status}. It can be invoked when it is InService."
            )
        if fleet.asynchronous is None:
            raise ValidationFailed(
                f"Endpoint {name} is not asynchronous: its configuration has no AsyncInferenceConfig. Ask it with"
                " InvokeEndpoint."
            )
        made, wanted = str(uuid.uuid4()), fleet.asynchronous
        failure = None if wanted.failure is None else join_s3(wanted.failure, f"{made}-error.out")
        output = join_s3(wanted.output, f"{made}.out")
        now_ms = self._ports.now_ms()
        invocation = Invocation(made, name, now_ms, location, headers, output, failure, ttl_s, timeout_s)
        self._ports.store.add_invocation(invocation)
        run.async_queue.wake()
        return invocation

    def status(self, name: str) -> str:
        """The endpoint's EndpointStatus; raises ``ResourceNotFound``."""
        return self._records.get("endpoint", name).status or ""

    # --- tags ---

    def owns(self, arn: str) -> bool:
        """Whether an ARN is one of a model, an endpoint configuration, an endpoint or a transform job."""
        return arn.rpartition(":")[2].partition("/")[0] in KINDS

    def tags(self, arn: str) -> Mapping[str, str]:
        """The tags of a resource, as a dict; raises ``ResourceNotFound``."""
        return self._records.get(*_named(arn)).tags

    def change_tags(
        self, arn: str, added: Mapping[str, str], removed: Sequence[str] = ()
    ) -> Mapping[str, str]:
        """Add or overwrite tags, and remove others; return all tags.

        Raises:
            ResourceNotFound: no such resource.
            ValidationFailed: too many tags, or one that is not valid.
        """

        def changed(resource: Resource) -> Resource:
            kept = {key: value for key, value in resource.tags.items() if key not in removed}
            tags = {**kept, **added}
            validation.tags([{"Key": key, "Value": value} for key, value in tags.items()])
            accepted.lifetime_s(tags)
            return replace(resource, tags=tags)

        return self._records.amend(*_named(arn), changed).tags

    # --- parts ---

    def _create(
        self,
        kind: Kind,
        request: Mapping[str, Any],
        status: str | None = None,
        record: Mapping[str, Any] | None = None,
    ) -> str:
        return self._records.create(kind, request[f"{_PREFIX[kind]}Name"], request, status, record).arn

    def _amend(self, name: str, change: Any) -> str:
        arn = self._records.amend("endpoint", name, change).arn
        self._runs.look(name)
        return arn

    def _run(self, name: str) -> EndpointRun:
        run = self._runs.get(name)
        if run is None:
            raise ResourceNotFound("endpoint", self._ports.config.arn("endpoint", name))
        return run

    def _fleet(self, config: str, generation: int) -> Fleet:
        request = self._records.get("endpoint-config", config).request
        described = request["ProductionVariants"]
        models = [self._records.get("model", variant["ModelName"]) for variant in described]
        variants = tuple(accepted.variant_of(*pair) for pair in zip(described, models, strict=True))
        fleet = Fleet(config, generation, variants, accepted.async_inference(request))
        accepted.check_count(fleet.count)
        return fleet

    def _variant(self, endpoint: Resource, state: EndpointState, variant: hosting.Variant) -> dict[str, Any]:
        image, updated = variant.container["Image"], state.fleet.updated
        return {
            "VariantName": variant.name,
            "DeployedImages": [
                {
                    "SpecifiedImage": image,
                    "ResolvedImage": serving_plan.local_image(image, self._ports.config),
                    "ResolutionTime": datetime.fromisoformat(updated) if updated else endpoint.created,
                }
            ],
            "CurrentWeight": variant.weight,
            "DesiredWeight": variant.weight,
            "CurrentInstanceCount": sum(i.ready for i in state.of(state.fleet, variant.name)),
            "DesiredInstanceCount": variant.count,
        }


def _retaining(fleet: Fleet, before: Fleet) -> Fleet:
    """The fleet, with the counts and weights that variants of the same names had before."""
    known = {variant.name: variant for variant in before.variants}
    return replace(
        fleet,
        variants=tuple(
            replace(v, count=known[v.name].count, weight=known[v.name].weight) if v.name in known else v
            for v in fleet.variants
        ),
    )


def _require_settled(endpoint: Resource, *statuses: str) -> None:
    if endpoint.status not in statuses:
        raise ValidationFailed(
            f'Cannot update in-progress endpoint "{endpoint.arn}".'
            if endpoint.status in ("Creating", "Updating", "Deleting")
            else f'Cannot update endpoint "{endpoint.arn}" in status {endpoint.status}: it can only be deleted.'
        )


def _named(arn: str) -> tuple[Kind, str]:
    kind, _, name = arn.rpartition(":")[2].partition("/")
    return kind, name  # type: ignore[return-value]  # `owns` was asked


def _summary(resource: Resource) -> dict[str, Any]:
    prefix = _PREFIX[resource.kind]
    summary = {
        f"{prefix}Name": resource.name,
        f"{prefix}Arn": resource.arn,
        "CreationTime": resource.created,
    }
    if resource.kind == "endpoint":
        summary |= {"LastModifiedTime": resource.modified, "EndpointStatus": resource.status}
    return summary
