"""Asks AWS's Price List API for today's price of an instance hour. No other module calls this API.

The API answers in us-east-1 for all regions, needs credentials with ``pricing:GetProducts`` and costs nothing.
Missing attributes in its answers are tolerated, because they change over time. But nothing is guessed: an instance
that is listed with two prices gets none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from windtunnel import settings
from windtunnel.errors import ConfigurationError, PricesUnavailable
from windtunnel.priceperf import Offering, Price
from windtunnel.priceperf.money.offerings import (
    EC2_ON_DEMAND,
    HOSTING_ON_DEMAND,
    TRAINING_ON_DEMAND,
    offering_of,
)

API_REGION = "us-east-1"
ENDPOINT = f"https://api.pricing.{API_REGION}.amazonaws.com"
_OWN_ENDPOINT = "AWS_ENDPOINT_URL_PRICING"
_ADVICE = (
    "Prices need an AWS account that may call pricing:GetProducts, and the network; the call is free of "
    "charge. Nothing was changed: reports go on with the dated prices there are (windtunnel prices)."
)
# Attributes of an on-demand hour of Linux, among the products of an EC2 instance type.
_EC2_ATTRIBUTES = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
}
_EC2_IF_GIVEN = {"marketoption": "OnDemand", "operation": "RunInstances"}
# How SageMaker's products name the use of an instance: their component, and the start of their usage type.
_SAGEMAKER = {TRAINING_ON_DEMAND: ("Training", "Train(ing)?"), HOSTING_ON_DEMAND: ("Hosting", "Host(ing)?")}


@dataclass(frozen=True)
class ListedPrice:
    """One price from AWS's answer. Dates and amount are kept as AWS wrote them."""

    instance_type: str
    region: str
    offering: Offering
    usd_per_hour: str
    effective_date: str
    fetched_at: str
    sku: str
    description: str = ""

    def price(self) -> Price:
        """The price as an entry of the price book.

        Raises:
            ValueError: the amount is no number, or a date is no date.
        """
        fetched = _day(self.fetched_at)
        return Price(
            self.instance_type,
            float(self.usd_per_hour),
            self.region,
            self.offering,
            _day(self.effective_date),
            "fetched",
            f"AWS Price List API, SKU {self.sku}, fetched {fetched}",
            fetched,
        )


@dataclass(frozen=True)
class NotListed:
    """An instance without exactly one price in AWS's answer, and why."""

    instance_type: str
    region: str
    reason: str


def pricing_client(boto_session: Any = None) -> Any:
    """A boto3 client of AWS's price list. It ignores endpoints set for the local backend, which has no such list.

    Only ``AWS_ENDPOINT_URL_PRICING``, which is meant for this service, is followed.

    Args:
        boto_session: a ``boto3.Session``; default: AWS's usual chain of credentials.

    Raises:
        ConfigurationError: the shell's AWS variables are those of `windtunnel env`.
        PricesUnavailable: the profile does not exist.
    """
    # Imported here, because it imports the HTTP client, which is not needed to read a price book.
    from windtunnel.session import client_environment

    environment = settings.environment()
    if boto_session is None and environment.get(client_environment.SAVED):
        raise ConfigurationError(
            "This shell's AWS variables lead to the local backend (windtunnel env), which has no price list. "
            'Ask in another shell, or leave first: eval "$(windtunnel env --unset)"'
        )
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    try:
        session = boto_session or boto3.Session()
        return session.client(
            "pricing",
            region_name=API_REGION,
            endpoint_url=environment.get(_OWN_ENDPOINT) or ENDPOINT,
            config=Config(
                connect_timeout=5, read_timeout=30, retries={"mode": "standard", "total_max_attempts": 3}
            ),
        )
    except BotoCoreError as error:
        raise PricesUnavailable(f"AWS's price list cannot be asked: {error}. {_ADVICE}") from error


def fetch(
    client: Any, instance_type: str, region: str, now: datetime, offering: Offering | None = None
) -> ListedPrice | NotListed:
    """Ask AWS for the price of one instance in one region. Blocks; no retries besides botocore's.

    Default of ``offering``: SageMaker training for names with ``ml.``, else EC2.

    Raises:
        PricesUnavailable: AWS refused, or was not reached.
    """
    offering = offering or offering_of(instance_type)
    products: list[Mapping[str, Any]] = []
    for filters in _queries(instance_type, region, offering):
        products = [
            product
            for product in _products(client, offering, filters)
            if _is_wanted(_attributes(product), instance_type, region, offering)
        ]
        if products:
            break
    return _price_in(products, instance_type, region, offering, now)


def _queries(name: str, region: str, offering: Offering) -> Iterator[dict[str, str]]:
    if offering == EC2_ON_DEMAND:
        yield {"instanceType": name, "regionCode": region, **_EC2_ATTRIBUTES}
        return
    component, _ = _SAGEMAKER[offering]
    yield {"instanceName": name, "regionCode": region, "component": component}
    # Older products have no instanceName; their instanceType contains the component.
    yield {"instanceType": f"{name}-{component}", "regionCode": region}


def _products(client: Any, offering: Offering, filters: Mapping[str, str]) -> list[Mapping[str, Any]]:
    from botocore.exceptions import BotoCoreError, ClientError

    service = "AmazonEC2" if offering == EC2_ON_DEMAND else "AmazonSageMaker"
    terms = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in filters.items()]
    try:
        pages = client.get_paginator("get_products").paginate(
            ServiceCode=service, Filters=terms, FormatVersion="aws_v1"
        )
        found = [item for page in pages for item in page.get("PriceList", ())]
    except ClientError as error:
        said = error.response.get("Error", {})
        raise PricesUnavailable(
            f"AWS's price list refused GetProducts ({said.get('Code')}): {said.get('Message')}. {_ADVICE}"
        ) from error
    except BotoCoreError as error:  # no credentials, no network, no such profile
        raise PricesUnavailable(f"AWS's price list cannot be asked: {error}. {_ADVICE}") from error
    return list(_documents(found))


def _documents(items: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """The products of an answer, each of which is a JSON document in a string."""
    for item in items:
        try:
            document = json.loads(item) if isinstance(item, str) else item
        except ValueError:
            continue
        if isinstance(document, Mapping):
            yield document


def _attributes(product: Mapping[str, Any]) -> Mapping[str, Any]:
    found = _part(product, "product")
    return _part(found, "attributes")


def _part(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = holder.get(name)
    return value if isinstance(value, Mapping) else {}


def _is_wanted(attributes: Mapping[str, Any], name: str, region: str, offering: Offering) -> bool:
    """Whether a product is an hour of that instance. Attributes that the product lacks are not compared."""
    if attributes.get("regionCode", region) != region:
        return False
    if offering == EC2_ON_DEMAND:
        needed = {"instanceType": name, **_EC2_ATTRIBUTES}
        return all(attributes.get(key) == value for key, value in needed.items()) and all(
            attributes.get(key, value) == value for key, value in _EC2_IF_GIVEN.items()
        )
    component, prefix = _SAGEMAKER[offering]
    if attributes.get("component", component) != component:
        return False
    # Training plans, clusters and warm pools have usage types of their own.
    usage = attributes.get("usagetype")
    return usage is None or bool(re.fullmatch(rf"([A-Z0-9]+-)?{prefix}:{re.escape(name)}", str(usage)))


def _price_in(
    products: Sequence[Mapping[str, Any]], name: str, region: str, offering: Offering, now: datetime
) -> ListedPrice | NotListed:
    fetched_at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    offers = [
        ListedPrice(name, region, offering, amount, effective, fetched_at, sku, description)
        for product in products
        for sku, effective, amount, description in _offers(product)
        if _is_in_force(amount, effective, now)
    ]
    if not offers:
        return NotListed(name, region, f"AWS lists no {offering} price of {name} in {region}")
    newest = max(_day(offer.effective_date) for offer in offers)
    latest = [offer for offer in offers if _day(offer.effective_date) == newest]
    amounts = {float(offer.usd_per_hour) for offer in latest}
    if len(amounts) > 1:
        found = ", ".join(f"${offer.usd_per_hour} (SKU {offer.sku})" for offer in latest)
        return NotListed(name, region, f"AWS lists several prices of {name} in {region}: {found}")
    return min(latest, key=lambda offer: offer.sku)


def _offers(product: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """SKU, effective date, US dollars and description of each on-demand price by the hour."""
    sku = _printable(_part(product, "product").get("sku")) or "unknown"
    for term in _part(_part(product, "terms"), "OnDemand").values():
        if not isinstance(term, Mapping):
            continue
        for dimension in _part(term, "priceDimensions").values():
            if not isinstance(dimension, Mapping):
                continue
            amount = _part(dimension, "pricePerUnit").get("USD")
            if amount is not None and str(dimension.get("unit", "Hrs")).lower() in ("hrs", "hours", "hour"):
                yield (
                    sku,
                    str(term.get("effectiveDate", "")),
                    str(amount),
                    _printable(dimension.get("description")),
                )


def _printable(text: object) -> str:
    """Text of AWS as one printable line: `cache` refuses a whole file that has any other text."""
    return "".join(filter(str.isprintable, " ".join(str(text or "").split())))


def _is_in_force(amount: str, effective: str, now: datetime) -> bool:
    """Whether a price is valid now: above 0 dollars, and its date is not in the future."""
    try:
        return 0 < float(amount) < float("inf") and _day(effective) <= now.date()
    except ValueError:
        return False


def _day(text: str) -> date:
    return date.fromisoformat(text[:10])
