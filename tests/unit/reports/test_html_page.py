"""The report as one HTML file: complete, self-contained, escaped, and readable by machines for people."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel
from tests.fakes.counters import Counters
from tests.fakes.reports import report_for_counters
from tests.unit.reports.test_job_report import FULL, FakeJob
from windtunnel.priceperf import FullScale
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Document, Row, Section
from windtunnel.rendering.page import as_page
from windtunnel.rendering.plots.chart import Chart
from windtunnel.rendering.plots.style import plain
from windtunnel.reports.for_job import report_for_job
from windtunnel.reports.job.report import PricePerformance
from windtunnel.reports.published import published
from windtunnel.reports.validation.report import validated

VOID = {"meta", "br", "hr", "img", "input", "link"}
LOADS = {
    "script",
    "link",
    "img",
    "iframe",
    "object",
    "embed",
    "video",
    "audio",
    "source",
    "base",
    "form",
    "image",
}
LARGEST_BYTES = 1_000_000


class Page(HTMLParser):
    """A page's tags, attributes and words; checks that tags close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute stands twice in {tag}: {attrs}"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.words.append(data)

    @property
    def text(self) -> str:
        """Everything that is read."""
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of each of these tags."""
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def report(counters: Counters, tmp_path_factory: pytest.TempPathFactory) -> PricePerformance:
    """Of a rehearsal of BERT base: trn1 and p4d at two price dates."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINDTUNNEL_HOME", str(tmp_path_factory.mktemp("home")))
        return report_for_job(FakeJob(counters()), FULL)


@pytest.fixture(scope="module")
def pages(report: PricePerformance) -> list[tuple[Any, str]]:
    """A report of each kind and its page: each is drawn once for all tests."""
    described = windtunnel.Workload.transformer("Llama2-7B", microbatch=1, sequence_length=4096, tensor_parallel=8,
                                                global_batch=256)  # fmt: skip
    size = FullScale(1_000_000)
    reports = [
        report,
        validated(),
        published(),
        windtunnel.compare(described, ["ml.trn1.32xlarge", "ml.p4d.24xlarge"], size, scaling="strong"),
    ]
    return [(drawn, drawn.to_html()) for drawn in reports]


def test_nothing_is_loaded_and_little_is_stored(pages: list[tuple[Any, str]]) -> None:
    """No tag that loads, no address but within the page, a policy that forbids it, and below 1 MB."""
    for _, text in pages:
        page = Page(text)
        assert not LOADS & {tag for tag, _ in page.tags}
        for tag, attributes in page.tags:
            for name, value in attributes.items():
                assert not name.startswith("on"), (tag, name)
                if name in ("src", "href", "srcset", "data", "action"):
                    assert str(value).startswith("#"), (tag, name, value)
        assert set(re.findall(r"url\((.)", text)) <= {"#"}
        assert "@import" not in text
        (policy,) = [item for item in page.all("meta") if item.get("http-equiv") == "Content-Security-Policy"]
        assert str(policy["content"]).startswith("default-src 'none'")
        assert len(text.encode()) < LARGEST_BYTES


def test_the_page_says_all_that_the_report_says(pages: list[tuple[Any, str]]) -> None:
    """Headline, every cell and every note of the document; the modelled costs of the JSON with them."""
    for drawn, html in pages:
        document, text = drawn.document(), Page(html).text
        needed = [document.title, document.subtitle, *document.headline]
        for section in document.sections:
            needed += [section.title, section.subtitle, *section.columns, *section.notes]
            needed += [word for row in section.rows for word in (row.label, *row.cells)]
        for word in needed:
            assert " ".join(word.split()) in text, word
    report, html = pages[0]
    text = Page(html).text
    for estimate in report.to_dict()["modelled"]["estimates"]:
        assert fmt.modelled_seconds(estimate["billable_s"]) in text
        for cost in estimate["costs"]:
            assert fmt.dollars(cost["usd"]) in text
            assert fmt.interval(*map(fmt.dollars, cost["interval_usd"])) in text
            assert cost["price"]["effective_from"] in text


def test_the_page_can_be_used_without_seeing_it(pages: list[tuple[Any, str]]) -> None:
    """Language, title, viewport; headings in order; cells with headers; charts with words; ids once each."""
    for drawn, text in pages:
        assert text.startswith("<!DOCTYPE html>")
        page = Page(text)
        assert page.all("html") == [{"lang": "en"}]
        assert any("width=device-width" in str(item.get("content")) for item in page.all("meta"))
        assert len(page.all("title")) == len(page.all("main")) == 1
        levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
        assert levels == [1, *[2] * (len(levels) - 1)]
        scopes = [item["scope"] for item in page.all("th")]
        assert set(scopes) <= {"col", "row", "rowgroup"}
        assert len(page.all("caption")) == len(page.all("table"))
        charts = [item for item in page.all("svg") if item.get("role") == "img"]
        assert len(charts) == len(page.all("svg")) == len(page.all("figcaption")) == len(drawn.charts())
        first = [section.title for section in drawn.document().sections if section.first]
        in_page_order = sorted(drawn.charts(), key=lambda chart: chart.after not in first)
        for chart, attributes in zip(in_page_order, charts, strict=True):
            assert attributes["aria-label"] == chart.words
        ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
        assert len(set(ids)) == len(ids)
        for place in re.findall(r'(?:href="#|url\(#)([^")]+)', text):
            assert place in ids


def test_one_chart_serves_light_dark_and_paper(pages: list[tuple[Any, str]]) -> None:
    """Charts have no colours of their own: all are variables, and each theme defines them all."""
    pytest.importorskip("matplotlib")
    text = pages[0][1]
    used = set(re.findall(r"var\((--wt-[a-z0-9-]+)\)", text))
    assert {"--wt-ink", "--wt-series-0", "--wt-edge"} <= used
    themes = re.findall(r":root\{([^}]*)\}", text)
    assert len(themes) == 3
    for theme in themes:
        assert used <= set(re.findall(r"(--wt-[a-z0-9-]+):", theme))
    assert "prefers-color-scheme:dark" in text
    assert "@media print" in text
    for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        assert re.findall(r"(?:fill|stroke): *#[0-9a-f]+", svg) == []


def test_the_same_report_gives_the_same_page(pages: list[tuple[Any, str]]) -> None:
    """No clock and no chance in it."""
    report, text = pages[0]
    assert report.to_html() == text


def test_without_matplotlib_the_page_still_comes(
    report: PricePerformance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All tables, no charts, and the extra that adds them."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = Page(report.to_html())
    assert page.all("svg") == []
    assert "pip install 'windtunnel[plot]'" in page.text
    assert "Who is cheapest" in page.text
    assert "windtunnel[plot]" not in Page(published().to_html()).text


def test_a_measured_job_without_a_model_has_a_page(counters: Any) -> None:
    """Nothing to draw: the reason stands in it, and nobody is asked to install anything."""
    page = Page(report_for_job(FakeJob(counters(train=None)), FULL).to_html())
    assert "no training step on the device" in page.text
    assert page.all("svg") == []
    assert "pip install" not in page.text


NASTY = [
    '"><script>alert(1)</script>',
    "</title><svg onload=x>",
    "<!--",
    "-->",
    "]]>",
    "&amp;&lt;",
    "' onx='",
    "</style>",
    'id="x" href="http://x"',
    "#0072b2",
    "$\\frac$",
    "__main__\n\n",
    "ä-漢字-😀",
    "\x00\x1b[0m",
]
NAMES = st.one_of(st.text(max_size=60), st.sampled_from(NASTY))


@pytest.fixture(scope="module")
def shape(counters: Counters) -> Callable[[str], Counter[tuple[str, ...]]]:
    """The tags, with their attributes' names, of the page without charts of a job of that name."""

    def counted(job: str) -> Counter[tuple[str, ...]]:
        document = report_for_counters(counters(job=job), FULL).document()
        return Counter((tag, *sorted(attributes)) for tag, attributes in Page(as_page(document)).tags)

    return cache(counted)


@settings(max_examples=30)
@given(name=NAMES)
def test_no_name_becomes_markup(shape: Callable[[str], Counter[tuple[str, ...]]], name: str) -> None:
    """Whatever a job is called, the page has the same tags with the same attributes' names.

    Fewer, where a name of wide characters takes a line of the first screen that a note would have.
    """
    found, usual = shape(name), shape("bert")
    assert set(found) == set(usual)
    assert found <= usual
    assert usual.total() - found.total() <= 2


def has_no_markup(page: Page) -> bool:
    """Nothing that loads, and nothing that acts."""
    loads = LOADS & {tag for tag, _ in page.tags}
    acts = [
        attribute for _, attributes in page.tags for attribute in attributes if attribute.startswith("on")
    ]
    return not loads and not acts


@settings(max_examples=25)
@given(name=NAMES)
def test_no_name_becomes_markup_in_a_chart(name: str) -> None:
    """Nor in an SVG: its text has the name, its tags none of it."""
    pytest.importorskip("matplotlib")

    def draw(target: Any, _: Any) -> None:
        target.suptitle(plain(name))

    chart = Chart(kind="small", title=name, caption=name, words=name, size_in=(2.0, 1.0), draw=draw)
    page = Page(as_page(published().document(), [chart]))
    assert len(page.all("svg")) == 1
    assert has_no_markup(page)


def test_no_nasty_name_becomes_markup_in_a_jobs_charts(counters: Counters) -> None:
    """All of them at once, on the page of a whole report."""
    pytest.importorskip("matplotlib")
    text = report_for_counters(counters(job=" ".join(NASTY)), FULL).to_html()
    assert len(Page(text).all("svg")) == 2
    assert has_no_markup(Page(text))


def test_it_is_written_where_it_should_be(tmp_path: Path) -> None:
    """The file is what is returned; a path that is none raises."""
    report = published()
    path = tmp_path / "report.html"
    assert report.to_html(path) == path.read_text(encoding="utf-8")
    with pytest.raises(OSError, match="nowhere"):
        report.to_html(tmp_path / "nowhere" / "report.html")


def test_a_phone_shows_an_interval_on_a_second_line_and_tears_no_number() -> None:
    """A cell may break before its interval and in the middle of it, not between a number and its unit."""
    row = Row("trn1.32xlarge", ("2,700 s (1,500 to 5,100 s)",))
    text = as_page(
        Document("a job", "", (), (Section("The answer", "modelled", columns=("billable",), rows=(row,)),))
    )
    (cell,) = re.findall("<td>(2,700.*?)</td>", text)
    assert cell.split(" ") == [
        "2,700\N{NO-BREAK SPACE}s",
        "(1,500",
        "to\N{NO-BREAK SPACE}5,100\N{NO-BREAK SPACE}s)",
    ]
    assert ".grid.short td{white-space:normal}" in text
