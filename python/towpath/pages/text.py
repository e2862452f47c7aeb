# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Pages and tables as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from towpath.studies.page import Finding, Page, PlainTable, Section

_KIND_NAMES = {"nvlink": "NVLink", "pcie": "PCIe", "ethernet": "Ethernet"}


def page_text(page: Page) -> str:
    """A page as text: its tables, with the answers last, where a terminal shows them."""
    blocks = [list(_section_text(section)) for section in page.sections if section.in_text]
    if page.headline is not None:
        blocks.append([*([f"# {page.how}"] if page.how else []), *table_text(page.headline)])
    if page.in_short:
        blocks.append(["# In short", *(finding.sentence for finding in page.in_short)])
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _section_text(section: Section) -> Iterator[str]:
    tables = list(section.tables)
    for number, table in enumerate(tables):
        title = table.title or (section.title if number == 0 else "")
        if number:
            yield ""
        yield from table_text(PlainTable(table.headings, table.lines, title))
    for part in section.parts:
        if isinstance(part, Section) and part.in_text:
            yield from ("", *_section_text(part))


def findings_text(findings: Iterable[Finding]) -> Iterator[str]:
    """A line per finding."""
    for finding in findings:
        yield finding.sentence


def table_text(table: PlainTable) -> Iterator[str]:
    """The lines of a table: numbers right-aligned, text left-aligned."""
    if table.title:
        yield f"# {table.title}"
    columns = list(zip(table.headings, *table.lines, strict=True))
    widths = [max(map(len, column)) for column in columns]
    are_numeric = table.are_numeric
    first = "  " if table.title else "# "
    for mark, line in [(first, table.headings)] + [("  ", line) for line in table.lines]:
        cells = (
            cell.rjust(width) if is_numeric else cell.ljust(width)
            for cell, width, is_numeric in zip(line, widths, are_numeric, strict=True)
        )
        yield (mark + "  ".join(cells)).rstrip()


def tables_text(tables: Iterable[PlainTable]) -> str:
    """Several tables, separated by an empty line."""
    return "\n\n".join("\n".join(table_text(table)) for table in tables)


def format_time(time_us: float) -> str:
    """Microseconds in at most seven characters up to ten seconds, rounded like nccl-tests.

    >>> format_time(12.345), format_time(125.84), format_time(11363.4)
    ('12.35', '125.8', '11363')
    """
    decimals = 0 if time_us >= 10_000 else 1 if time_us >= 100 else 2
    return f"{time_us:.{decimals}f}"


def kind_name(kind: str) -> str:
    """A kind of link in its usual spelling."""
    return _KIND_NAMES.get(kind, kind)
