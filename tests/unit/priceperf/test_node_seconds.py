"""Whose seconds a node's are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from windtunnel.priceperf.money.node_seconds import NodeTimes, Span, joined, of_cluster, of_job


def node(
    *jobs: tuple[int, float, float], up: tuple[Span, ...] = (Span(0, 1000),), static: bool = False
) -> NodeTimes:
    spans = tuple((number, Span(begin, end)) for number, begin, end in jobs)
    return NodeTimes("n", "trn1.32xlarge", "ONDEMAND", static, up, spans)


def test_a_node_that_came_for_a_job() -> None:
    """It comes for its first job, and after each waits for the next, or leaves."""
    one = node((1, 40, 300), (2, 350, 600))
    assert (of_job([one], 1).coming, of_job([one], 1).leaving) == (40, 50)
    assert (of_job([one], 2).coming, of_job([one], 2).leaving) == (0, 400)
    cluster = of_cluster([one])
    assert (cluster.up, cluster.busy, cluster.idle_dynamic) == (1000, 510, 490)
    assert cluster.idle_dynamic == sum(of_job([one], job).idle for job in (1, 2))


def test_a_static_node_waits_for_nobody() -> None:
    """Its idle seconds are the cluster's."""
    one = node((1, 40, 300), static=True)
    assert of_job([one], 1).idle == 0
    assert of_cluster([one]).idle_static == 740


def test_jobs_that_share_a_node() -> None:
    """The node works once; it is idle when the last of them has ended."""
    one = node((1, 100, 500), (2, 200, 300))
    assert of_cluster([one]).busy == 400
    assert (of_job([one], 1).leaving, of_job([one], 2).leaving) == (500, 0)


def test_a_job_that_was_requeued_pays_for_each_time() -> None:
    """On whichever nodes."""
    first, second = node((1, 10, 20), up=(Span(0, 30),)), node((1, 50, 90), up=(Span(45, 90),))
    found = of_job([first, second], 1)
    assert (found.job, found.coming, found.leaving) == (50, 15, 10)


def test_nobody_noted_when_a_node_ran() -> None:
    """Then its jobs' times are all that is known."""
    one = node((1, 40, 300), up=())
    assert (of_job([one], 1).job, of_job([one], 1).idle) == (260, 0)
    assert of_cluster([one]).up == 260


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=12))
def test_joined_spans_have_each_moment_once(given_spans: list[tuple[int, int]]) -> None:
    """As many seconds as there are whole ones in any of them."""
    spans = [Span(min(pair), max(pair)) for pair in given_spans]
    inside = sum(any(span.begin <= second < span.end for span in spans) for second in range(99))
    assert sum(span.seconds for span in joined(spans)) == inside
