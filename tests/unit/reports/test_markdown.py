"""A report as Markdown: a reader of GitHub's dialect finds the same words in the same places, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from windtunnel.rendering.document import Document, Row, Section
from windtunnel.rendering.markdown import as_markdown
from windtunnel.reports.published import published

GITHUB = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
TEXT = st.text(st.sampled_from("ab1 .)-+=#>*_`~|[](){}<&;!:$\\/\n"), max_size=12) | st.sampled_from(
    [
        "1. a",
        "- a",
        "+",
        "# a",
        "---",
        "===",
        "> a",
        "<b>a</b>",
        "&amp;",
        "a | b",
        "~~a~~",
        "__init__",
        "[a](b)",
        "```",
    ]
)
SECTION = st.builds(
    Section,
    title=TEXT,
    kind=st.just("text"),
    subtitle=TEXT,
    columns=st.just(("a", "b")) | st.just(()),
    rows=st.lists(
        st.builds(Row, TEXT, st.tuples(TEXT, TEXT), st.sampled_from(["normal", "detail", "total"]))
    ).map(tuple),
    notes=st.lists(TEXT.filter(str.strip), max_size=3).map(tuple),
    label_header=TEXT,
    first=st.booleans(),
)


def shown(token: Token) -> str:
    """The words of a block, as they are read."""
    children = token.children or []
    assert {child.type for child in children} <= {"text", "text_special", "strong_open", "strong_close"}, (
        token
    )
    return one_line("".join(child.content for child in children))


def one_line(text: str) -> str:
    return " ".join(text.split())


@example(title="a #", subtitle="", headline=[], sections=[])
@given(title=TEXT, subtitle=TEXT, headline=st.lists(TEXT, max_size=2), sections=st.lists(SECTION, max_size=2))
def test_a_reader_finds_each_text_as_it_was(
    title: str, subtitle: str, headline: list[str], sections: list[Section]
) -> None:
    document = Document(title, subtitle, tuple(headline), tuple(sections))

    tokens = GITHUB.parse(as_markdown(document, full=True))

    expected = [one_line(title), *filter(None, map(one_line, [subtitle, *headline]))]
    tables, notes = 0, 0
    for section in sections:
        expected.append(one_line(section.title + (f" · {section.subtitle}" if section.subtitle else "")))
        if section.rows:
            tables += 1
            expected += map(one_line, [section.label_header, *(section.columns or ("", ""))])
            expected += [one_line(text) for row in section.rows for text in (row.label, *row.cells)]
        notes += len(section.notes)
        expected += map(one_line, section.notes)
    assert [shown(token) for token in tokens if token.type == "inline"] == expected
    kinds = [token.type for token in tokens]
    assert kinds.count("heading_open") == 1 + len(sections)
    assert (kinds.count("table_open"), kinds.count("list_item_open")) == (tables, notes)
    assert not {"html_block", "code_block", "fence", "hr", "blockquote_open"} & set(kinds)


def test_a_report_is_its_first_screen_and_in_full_all_of_it() -> None:
    rest = Section("Rest", "text", notes=("the rest",))
    document = Document("T", "", (), (Section("Answer", "modelled", notes=("a", "b"), first=True), rest))

    assert as_markdown(document) == "## T\n\n### Answer\n\n- **a**\n- b\n"
    assert as_markdown(document, full=True).endswith("### Rest\n\n- the rest\n")


def test_a_published_table_reads_as_a_table(tmp_path: Path) -> None:
    path = tmp_path / "published.md"

    text = published().to_markdown(path)

    assert path.read_text(encoding="utf-8") == text
    assert re.search(r"^\| Iterations/s \| 6\.64 \| 5\.44 \|$", text, re.MULTILINE)
    with pytest.raises(OSError, match="nowhere"):
        published().to_markdown(tmp_path / "nowhere" / "a.md")
