# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A page as one self-contained HTML file: no network, no other file, no server."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from towpath.files import write_text
from towpath.pages.frame import bars_frame, heat_frame, plot_frame
from towpath.pages.provenance import Provenance, provenance
from towpath.studies.page import (
    Bars,
    Heat,
    Lanes,
    Page,
    Part,
    Picture,
    PlainTable,
    Plot,
    Section,
)

_TEMPLATES = Path(__file__).parent / "templates"
_FRAMES: dict[type, Any] = {Plot: plot_frame, Bars: bars_frame, Heat: heat_frame}


def write_page(page: Page, path: Path | str, made_with: Provenance | None = None) -> None:
    """Writes a page.

    All external text is escaped, and drawings of machines are images, in which scripts do not run.

    Args:
        page: content of the page.
        path: the file.
        made_with: the footer; by default the version of Towpath and the date.
    """
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["json"] = _json
    environment.filters["lanes"] = lanes_data
    environment.filters["groups"] = _groups
    environment.filters["picture"] = _picture
    environment.filters["frame"] = lambda drawing: _FRAMES[type(drawing)](drawing)
    environment.filters["kind"] = lambda part: type(part).__name__
    text = environment.get_template("page.html.jinja").stream(
        page=page, made_with=made_with or provenance()
    )
    write_text(path, text)


def _groups(section: Section) -> list[list[Part]]:
    """The parts of a page: consecutive plots together, and the numbers of plots without a table."""
    groups: list[list[Part]] = []
    for part in section.parts:
        is_joined = isinstance(part, (Plot, Bars, Heat, Picture)) and groups
        if is_joined and isinstance(groups[-1][0], (Plot, Bars, Heat, Picture)):
            groups[-1].append(part)
        else:
            groups.append([part])
    if not any(isinstance(part, PlainTable) for part in section.parts):
        groups += [
            [PlainTable(each.headings, each.lines, f"Table: {each.title}", is_folded=True)]
            for each in section.tables
        ]
    return groups


def _json(value: object) -> Markup:
    """Plain data for a script element: its content cannot end the element."""
    text = json.dumps(value, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _picture(svg: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def lanes_data(lanes: Lanes) -> dict[str, Any]:
    """Data from which the script draws lanes."""
    return {
        "groups": lanes.groups, "kinds": lanes.kinds, "texts": lanes.texts, "lane": lanes.lane,
        "unit": lanes.unit, "span": lanes.span,
    }  # fmt: skip
