"""AWS's Price List API as a local HTTP server: products with the attributes AWS documents, filtered and paged.

Instance types, attributes and terms have AWS's form; amounts and SKUs are the tests' own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes.http import serving

TARGET = "AWSPriceListService.GetProducts"


def product(
    service: str,
    attributes: dict[str, str],
    usd: str,
    *,
    sku: str = "ABCDEFGHJKMNPQRS",
    since: str = "2026-11-01T00:00:00Z",
    unit: str = "Hrs",
) -> dict[str, Any]:
    """One document of a PriceList."""
    rate = f"{sku}.JRTCKXETXF"
    return {
        "product": {"productFamily": "ML Instance", "attributes": attributes, "sku": sku},
        "serviceCode": service,
        "terms": {
            "OnDemand": {
                rate: {
                    "priceDimensions": {
                        f"{rate}.6YS6EN2CT7": {
                            "unit": unit,
                            "beginRange": "0",
                            "endRange": "Inf",
                            "description": f"${usd} per hour",
                            "appliesTo": [],
                            "rateCode": f"{rate}.6YS6EN2CT7",
                            "pricePerUnit": {"USD": usd},
                        }
                    },
                    "sku": sku,
                    "effectiveDate": since,
                    "offerTermCode": "JRTCKXETXF",
                    "termAttributes": {},
                }
            }
        },
        "version": "20261105000000",
        "publicationDate": "2026-11-05T00:00:00Z",
    }


def training(name: str, usd: str, region: str = "us-east-1", **changes: Any) -> dict[str, Any]:
    """A SageMaker training hour."""
    attributes = {
        "instanceName": name,
        "instanceType": f"{name}-Training",
        "component": "Training",
        "usagetype": f"USE1-Train:{name}",
        "operation": "RunInstance",
        "regionCode": region,
        "locationType": "AWS Region",
        "servicecode": "AmazonSageMaker",
        **changes.pop("attributes", {}),
    }
    return product("AmazonSageMaker", attributes, usd, **changes)


def ec2(name: str, usd: str, region: str = "us-east-1", **changes: Any) -> dict[str, Any]:
    """An EC2 hour of Linux on shared hardware."""
    attributes = {
        "instanceType": name,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
        "operation": "RunInstances",
        "licenseModel": "No License required",
        "usagetype": f"BoxUsage:{name}",
        "regionCode": region,
        "servicecode": "AmazonEC2",
        **changes.pop("attributes", {}),
    }
    return product("AmazonEC2", attributes, usd, **changes)


@contextmanager
def served(products: list[dict[str, Any]], refusal: tuple[int, str] | None = None) -> Iterator[str]:
    """The URL of a price list of these products, one a page; or one that refuses each call."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.headers["X-Amz-Target"] != TARGET or "Authorization" not in self.headers:
                self._answer(400, {"__type": "InvalidAction", "message": "unknown call"})
            elif refusal is not None:
                self._answer(refusal[0], {"__type": refusal[1], "message": "not for you"})
            else:
                self._answer(200, self._page(request))

        def _page(self, request: dict[str, Any]) -> dict[str, Any]:
            wanted = [
                json.dumps(item)
                for item in products
                if item["serviceCode"] == request["ServiceCode"]
                and all(
                    item["product"]["attributes"].get(term["Field"]) == term["Value"]
                    for term in request["Filters"]
                )
            ]
            start = int(request.get("NextToken") or 0)
            page: dict[str, Any] = {"FormatVersion": "aws_v1", "PriceList": wanted[start : start + 1]}
            return page if start + 1 >= len(wanted) else {**page, "NextToken": str(start + 1)}

        def _answer(self, status: int, document: dict[str, Any]) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing on stderr."""

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield f"http://127.0.0.1:{port}"
