# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A report as one HTML file that needs nothing else: no network, no other file, no server."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING

import plotly.io
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from towpath.collectives.result import LinkLoad, has_root, reduces
from towpath.pages import plots as figures
from towpath.pages.provenance import Provenance, joined, provenance
from towpath.pages.table import format_time

if TYPE_CHECKING:
    from towpath.api.result import RunResult
    from towpath.collectives.result import Timeline

_TEMPLATES = Path(__file__).parent / "templates"
# Spans of thread blocks drawn in one file, all runs together: about 30 bytes each.
_DRAWN_SPANS_MAX = 30_000


def write_report(
    results: list[RunResult], path: Path | str, *, trace_size_bytes: int | None = None
) -> None:
    """Writes the page of one run or several; its foot says what it was made with.

    Everything that comes from outside is escaped, and drawings are shown as images, in which no
    script runs. The file is plotly's 5 MB and little more, whatever the runs' size.

    Args:
        results: the runs, at least one.
        path: the file.
        trace_size_bytes: the size of the timeline; None: the largest up to 1 MiB.
    """
    names = figures.run_names(results)
    timelines = [result.timeline(trace_size_bytes) for result in results]
    drawn_max = _DRAWN_SPANS_MAX // max(sum(each is not None for each in timelines), 1)
    write_page(
        path,
        "report.html.jinja",
        made_with=joined(result.provenance for result in results),
        title=_title(results),
        command=results[0].command,
        results=results,
        names=names,
        sections=[
            _section(result, timeline, drawn_max)
            for result, timeline in zip(results, timelines, strict=True)
        ],
        time_figure=figures.time_over_size(results, names),
        bandwidth_figure=figures.bandwidth_over_size(results, names),
    )


def write_page(
    path: Path | str, template: str, *, made_with: Provenance | None = None, **values: object
) -> None:
    """Writes a page that needs nothing else.

    Args:
        path: the file.
        template: in templates/, extending page.html.jinja.
        made_with: the foot of the page; by default only the version of Towpath and the date.
        values: what the template names; figures are plotly's.
    """
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["time"] = format_time
    environment.filters["size"] = figures.format_size
    environment.filters["figure"] = _figure
    environment.filters["capitalize_first"] = lambda text: text[:1].upper() + text[1:]
    page = environment.get_template(template).stream(
        plotly=Markup(get_plotlyjs()), made_with=made_with or provenance(), **values
    )
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(page)


def _figure(figure) -> Markup:
    # plotly writes <, > and / as \u escapes, so nothing in it can end the script element.
    return Markup(plotly.io.to_json(figure, engine="json"))


def _title(results: list[RunResult]) -> str:
    where = ", ".join(dict.fromkeys(result.where for result in results))
    return f"{results[0].collective}: {where}"


def _section(result: RunResult, timeline: Timeline | None, drawn_spans_max: int) -> dict:
    """The parts of the page about one run besides the run itself."""
    section: dict = {
        "facts": _facts(result),
        "operation": result.op if reduces(result.collective) else "none",
        "root": result.root if has_root(result.collective) else -1,
        "best": max(result.measurements, key=lambda each: each.busbw_gb_per_s, default=None),
        "fastest": min(result.measurements, key=lambda each: each.time_us, default=None),
        "data": _data_verdict(result),
        "kinds": _link_summary(result.links),
        "links_figure": figures.busiest_links(result.links) if result.links else None,
        "busiest": figures.busiest(result.links),
        "links_shown": min(len(result.links), figures.LINKS_SHOWN_MAX),
        "fault_costs": [(row, row.fault_cost) for row in result.rows if row.fault_cost is not None],
        "topology": None,
        "timeline": None,
    }
    if result.topology_svg is not None:
        encoded = base64.b64encode(result.topology_svg.encode()).decode()
        section["topology"] = f"data:image/svg+xml;base64,{encoded}"
    if timeline is not None:
        section["timeline"] = figures.timeline_figures(timeline, drawn_spans_max)
    return section


def _facts(result: RunResult) -> list[tuple[str, str]]:
    facts = [
        ("Where", result.where),
        ("Collective", result.collective),
        ("Ranks", str(result.ranks)),
        ("Type", result.dtype),
    ]
    if reduces(result.collective):
        facts.append(("Operation", result.op))
    if has_root(result.collective):
        facts.append(("Root", str(result.root)))
    facts.append(("Iterations", f"{result.iterations} after {result.warmup} warm-up"))
    return facts


def _data_verdict(result: RunResult) -> tuple[str, str]:
    """A word for the style sheet and a few for the reader."""
    checked = [each for each in result.measurements if each.wrong is not None]
    if result.wrong is None:
        return "unchecked", "not checked"
    if result.wrong:
        return "failed", f"{result.wrong:,} wrong"
    if len(checked) < len(result.measurements):
        return "passed", f"correct ({len(checked)} of {len(result.measurements)} checked)"
    return "passed", "correct"


def _link_summary(links: list[LinkLoad]) -> list[dict]:
    """Per kind of link: how many, how many carried something, least, median and most busy."""
    summary = []
    for kind in dict.fromkeys(link.kind for link in links):
        own = sorted(
            (link for link in links if link.kind == kind), key=lambda link: link.busy_fraction
        )
        busy = [link.busy_fraction for link in own]
        middle = (busy[(len(busy) - 1) // 2] + busy[len(busy) // 2]) / 2
        summary.append(
            {
                "kind": figures.kind_name(kind),
                "color": figures.kind_color(kind),
                "count": len(own),
                "used": sum(link.size_bytes > 0 for link in own),
                "busy": (busy[0], middle, busy[-1]),
                "size_bytes": sum(link.size_bytes for link in own),
            }
        )
    return summary
