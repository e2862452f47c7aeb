# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Common parts of the descriptions of specs: values with their sources, notes, and wrapped text."""

from __future__ import annotations

import textwrap

from towpath.specs.spec_model import Frozen, Leaf, Quantity, quantities_of

_WIDTH = 100
_NAME_WIDTH = 38
_VALUE_WIDTH = 13


def paragraph(text: str, start: str) -> list[str]:
    """The text after `start`, wrapped, with further lines below the first one."""
    indent = " " * len(start)
    return textwrap.wrap(
        text, _WIDTH, initial_indent=start, subsequent_indent=indent, break_on_hyphens=False
    )


def facts(rows: dict[str, str], width: int) -> list[str]:
    """Texts after their names, which are padded to this number of columns."""
    return [line for name, fact in rows.items() for line in paragraph(fact, f"  {name:<{width}}")]


def notes(texts: tuple[str, ...]) -> list[str]:
    """Notes below their heading; no lines if there are no notes."""
    if not texts:
        return []
    return ["", "notes", *(line for text in texts for line in paragraph(text, "- "))]


def figures(spec: Frozen) -> list[str]:
    """Every value of a spec with its source: first the values of the spec itself, then block by
    block.
    """
    own: list[str] = []
    blocks: list[str] = []
    for name in type(spec).model_fields:
        value = getattr(spec, name)
        if isinstance(value, Quantity):
            own += _row(name, value.value, value.source)
        elif any(source for _, _, source in quantities_of(value)):
            blocks += ["", name]
            for path, leaf, source in quantities_of(value):
                blocks += _row(path, leaf, source)
    return own + blocks


def _row(name: str, value: Leaf, source: str) -> list[str]:
    if isinstance(value, bool):
        shown = "yes" if value else "no"
    elif isinstance(value, int):
        shown = f"{value:,}"
    else:
        shown = value if isinstance(value, str) else f"{value:g}"
    start = f"  {name:<{_NAME_WIDTH}}{shown:>{_VALUE_WIDTH}}"
    return paragraph(source, f"{start}  ") if source else [start]
