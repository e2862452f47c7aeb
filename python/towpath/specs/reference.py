# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reference of all parameters (docs/parameters.md), generated from the tables of the C++ core."""

from __future__ import annotations

from towpath.specs.kinds import KINDS
from towpath.specs.parameter_models import Row, tables

# Tables of parts of a machine. They follow the tables of the kinds.
_PARTS = {
    "gpu_cost": "Costs of a GPU (`gpu_cost`)",
    "link_type": "Kinds of wires (`link_types`)",
}
_HEAD = """\
# Parameters

This page lists the parameters of machine files, which [machines.md](machines.md) describes.
`python -m towpath.specs.reference` generates it from the tables in `src/towpath/machine/`, and a
test compares them. The last word of a name is the unit. Write a parameter as
`{value: ..., source: ...}`, and a flag as `true` or `false`.
"""


def page() -> str:
    """The page as Markdown."""
    parts = [_HEAD]
    titles = {name: kind.plural.capitalize() for name, kind in KINDS.items() if name in tables()}
    for kind, title in {**titles, **_PARTS}.items():
        parts.append(f"\n## {title}\n\n| parameter | means | allowed |\n|---|---|---|\n")
        for block, rows in tables()[kind].items():
            for row in rows:
                name = f"{block}.{row['name']}" if block else row["name"]
                parts.append(f"| `{name}` | {row['meaning']} | {_allowed(row)} |\n")
    return "".join(parts)


def _allowed(row: Row) -> str:
    text = f"{_number(row['min'])} to {_number(row['max'])}"
    if row["type"] == "truth":
        text = "true, false"
    elif row["is_power_of_two"]:
        text = f"a power of two, {text}"
    form = row["form"].replace("_", " ").replace("quantity", "").strip()
    return f"{text}; {form}" if form else text


def _number(value: float) -> str:
    """A number in a readable form.

    >>> _number(1 << 40), _number(1e6), _number(0.001)
    ('2^40', '1,000,000', '0.001')
    """
    if value == int(value):
        whole = int(value)
        is_power = whole > 1 << 20 and whole & (whole - 1) == 0
        return f"2^{whole.bit_length() - 1}" if is_power else f"{whole:,}"
    return f"{value:g}" if value > 1e-6 else f"{value:.0e}"


if __name__ == "__main__":
    print(page(), end="")
