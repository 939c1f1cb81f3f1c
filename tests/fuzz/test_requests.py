"""Whatever its owner sends, the server answers, and in AWS's shape."""

from __future__ import annotations

from tests.fuzz.campaign import Campaign, Target

REQUESTS = 1000


def test_every_answer_has_aws_shape(server: Target) -> None:
    """Valid and broken requests of all operations: no failure of the server, no silence, nothing malformed.

    The figures and the first findings are printed.
    """
    findings = Campaign(server, seed=2026).run(REQUESTS)
    print(findings.summary())
    assert findings.server_errors == []
    assert findings.hangs == []
    assert findings.malformed == []
    assert "Traceback" not in (server.home / "backend.log").read_text()
    # It was worth asking: much was accepted, also jobs, and much refused.
    assert findings.accepted["sagemaker:CreateTrainingJob"] >= 3
    assert sum(findings.accepted.values()) > REQUESTS / 20
    assert findings.statuses["4xx"] > REQUESTS / 5
    assert findings.threads < 150
    assert findings.rss_growth_mib < 150
