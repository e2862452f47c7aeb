# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What `towpath tune ethernet` found, as text and as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from towpath.pages.ethernet_study_page import draw_figure
from towpath.pages.plain_text import table_text
from towpath.pages.provenance import Provenance
from towpath.pages.report import write_page
from towpath.tuning.answers import Answer
from towpath.tuning.rule import RULE


def write_tuning(
    title: str, command: str, answers: list[Answer], path: Path, *,
    made_with: Provenance | None = None,
) -> None:  # fmt: skip
    """Write the page; it needs no other file and no network.

    `made_with` becomes its foot; by default that is the version of Towpath and the date.
    """
    drawn = [(a, None if a.figure is None else draw_figure(a.figure)) for a in answers]
    write_page(
        path, "tune_ethernet.html.jinja", made_with=made_with, title=title, command=command,
        rule=RULE, answers=drawn,
    )  # fmt: skip


def tuning_text(answers: list[Answer]) -> Iterator[str]:
    """Every table, and what follows from them in the end."""
    for answer in answers:
        yield f"# {answer.title}"
        yield from table_text(answer.table)
        yield ""
    yield f"# In short. {RULE}"
    for answer in answers:
        yield f"{answer.title}: {answer.choice}"
