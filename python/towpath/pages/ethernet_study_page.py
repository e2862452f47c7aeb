# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The pages of links between chips: their microbenchmarks, and their best use."""

from __future__ import annotations

from towpath.studies.page import Finding, Page, Plot, Section
from towpath.tuning.answers import Answer
from towpath.tuning.rule import RULE


def ethernet_page(title: str, command: str, plots: list[Plot]) -> Page:
    """The page of `towpath bench ethernet`."""
    sections = [Section(plot.title, [plot]) for plot in plots]
    found = [finding for plot in plots if (finding := _best(plot)) is not None]
    return Page(title, command, sections, found)


def _best(plot: Plot) -> Finding | None:
    """The best value of a plot: the highest rate, or the shortest time."""
    is_rate = "GB/s" in plot.y.title or "%" in plot.y.title
    if not is_rate and plot.y.title not in ("ns", "round trip (us)"):
        return None
    points = [
        (y, x, curve.name) for curve in plot.curves for x, y in zip(curve.x, curve.y, strict=True)
    ]
    value, at, name = max(points) if is_rate else min(points)
    unit = plot.y.title.replace("round trip (us)", "us")
    words = f"{'at most' if is_rate else 'at least'} {value:.4g} {unit}, {name}"
    return Finding(plot.title, f"{words}, {plot.x.text(at)}")


def tune_ethernet_page(title: str, command: str, answers: list[Answer]) -> Page:
    """The page of `towpath tune ethernet`."""
    sections = [
        Section(
            answer.title,
            [answer.table] if answer.plot is None else [answer.plot, answer.table],
            answer.how,
        )
        for answer in answers
    ]
    found = [Finding(answer.title, answer.choice) for answer in answers]
    return Page(title, command, sections, found, how=RULE)
