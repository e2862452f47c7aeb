# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A report as one HTML file that needs nothing else: no network, no other file, no server."""

from __future__ import annotations

import base64
from pathlib import Path

import plotly.io
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from towpath.collectives.result import LinkLoad, Report, Run
from towpath.pages import plots as figures
from towpath.pages.provenance import Provenance, provenance
from towpath.pages.table import format_time

_TEMPLATES = Path(__file__).parent / "templates"
# Spans of thread blocks drawn in one file, all runs together: about 30 bytes each.
_DRAWN_SPANS_MAX = 30_000


def write_report(report: Report, path: Path | str, made_with: Provenance | None = None) -> None:
    """Writes the report; its foot says what it was made with.

    Everything that comes from outside is escaped, and drawings are shown as images, in which no
    script runs. The file is plotly's 5 MB and little more, whatever the runs' size.
    """
    names = figures.run_names(report.runs)
    timelines = sum(run.timeline is not None for run in report.runs)
    write_page(
        path,
        "report.html.jinja",
        made_with=made_with,
        report=report,
        names=names,
        sections=[_section(run, _DRAWN_SPANS_MAX // max(timelines, 1)) for run in report.runs],
        time_figure=figures.time_over_size(report.runs, names),
        bandwidth_figure=figures.bandwidth_over_size(report.runs, names),
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


def _section(run: Run, drawn_spans_max: int) -> dict:
    """What the template shows of one run besides the run itself."""
    section: dict = {
        "facts": _facts(run),
        "best": max(run.measurements, key=lambda each: each.busbw_gb_per_s, default=None),
        "fastest": min(run.measurements, key=lambda each: each.time_us, default=None),
        "data": _data_verdict(run),
        "kinds": _link_summary(run.links),
        "links_figure": figures.busiest_links(run.links) if run.links else None,
        "busiest": figures.busiest(run.links),
        "links_shown": min(len(run.links), figures.LINKS_SHOWN_MAX),
        "fault_costs": [(row, row.fault_cost) for row in run.rows if row.fault_cost is not None],
        "topology": None,
        "timeline": None,
    }
    if run.topology_svg is not None:
        encoded = base64.b64encode(run.topology_svg.encode()).decode()
        section["topology"] = f"data:image/svg+xml;base64,{encoded}"
    if run.timeline is not None:
        section["timeline"] = figures.timeline_figures(run.timeline, drawn_spans_max)
    return section


def _facts(run: Run) -> list[tuple[str, str]]:
    facts = [
        ("Where", run.where),
        ("Collective", run.collective),
        ("Schedule", run.schedule),
        ("Protocol", run.protocol),
        ("Channels", str(run.channels)),
        ("Ranks", str(run.ranks)),
        ("Type", run.type),
    ]
    if run.reduces:
        facts.append(("Operation", run.operation))
    if run.has_root:
        facts.append(("Root", str(run.root)))
    facts.append(("Iterations", f"{run.iterations} after {run.warmup} warm-up"))
    return facts


def _data_verdict(run: Run) -> tuple[str, str]:
    """A word for the style sheet and a few for the reader."""
    checked = [each for each in run.measurements if each.wrong is not None]
    if run.wrong is None:
        return "unchecked", "not checked"
    if run.wrong:
        return "failed", f"{run.wrong:,} wrong"
    if len(checked) < len(run.measurements):
        return "passed", f"correct ({len(checked)} of {len(run.measurements)} checked)"
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
