# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter

import pytest

from inside.machines import PcieParameters, catalogue, quantities_of, shipped
from inside.pages import show_chip

SVG = "{http://www.w3.org/2000/svg}"
CHIPS = shipped.names("chip")


def boxes(svg):
    """Title, rectangle and texts of each tile."""
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        rectangle = group.find(f"{SVG}rect")
        texts = [text.text for text in group.iter(f"{SVG}text")]
        yield group.find(f"{SVG}title").text, rectangle, texts


@pytest.mark.parametrize("name", CHIPS)
def test_a_drawing_shows_every_tile_once_in_the_colour_of_its_kind(name):
    spec = shipped.chip(name)
    kinds = spec.tile_kinds()
    fills = {}
    drawn = list(boxes(show_chip.draw_chip_svg(spec)))
    assert len(drawn) == len(kinds) == spec.grid.width * spec.grid.height
    for (at, kind), (title, rectangle, texts) in zip(kinds.items(), drawn, strict=True):
        assert title.startswith(f"{at}: {kind}")
        assert str(at) in texts
        fills.setdefault(kind, set()).add(rectangle.get("fill"))
    assert all(len(colours) == 1 for colours in fills.values())
    assert len(set.union(*fills.values())) == len(fills)


def test_workers_carry_their_logical_place_and_dram_its_group():
    svg = show_chip.draw_chip_svg(shipped.chip("wormhole"))
    texts = {texts[-1]: texts[0] for _, _, texts in boxes(svg)}
    assert texts["1-1"] == "0,0"
    assert texts["9-10"] == "7,7"
    assert texts["6-7"] == "4,4"
    assert texts["0-11"] == "D0"
    assert texts["1-5"] == "1-5"  # harvested: no label but its place


@pytest.mark.parametrize("name", CHIPS)
def test_a_drawing_has_a_link_of_either_noc_in_every_gap(name):
    spec = shipped.chip(name)
    root = ElementTree.fromstring(show_chip.draw_chip_svg(spec))
    ways = Counter()
    for path in root.iter(f"{SVG}path"):
        marker = [key for key in path.attrib if key.startswith("marker-")]
        if marker:
            way = re.fullmatch(r"M\d+ \d+l(\d+) (\d+)", path.get("d"))
            axis = "x" if way[2] == "0" else "y"
            ways[axis, path.get(marker[0]), marker[0]] += 1
    across = spec.grid.height * (spec.grid.width + 1)
    down = spec.grid.width * (spec.grid.height + 1)
    assert ways == {
        ("x", "url(#noc0)", "marker-end"): across + 1,  # one more each in the legend
        ("x", "url(#noc1)", "marker-start"): across + 1,
        ("y", "url(#noc0)", "marker-end"): down,
        ("y", "url(#noc1)", "marker-start"): down,
    }


@pytest.mark.parametrize("name", CHIPS)
def test_everything_stays_inside_and_apart(name):
    svg = show_chip.draw_chip_svg(shipped.chip(name))
    root = ElementTree.fromstring(svg)
    width, height = float(root.get("width")), float(root.get("height"))
    placed = set()
    for _, rectangle, _ in boxes(svg):
        x, y, w, h = (float(rectangle.get(key)) for key in ("x", "y", "width", "height"))
        assert 0 <= x and x + w <= width and 0 <= y and y + h <= height
        assert not any(abs(x - a) < w and abs(y - b) < h for a, b in placed)
        placed.add((x, y))
    assert not re.search(r"(href|src)=", svg)


def test_a_drawing_follows_the_harvest_mask():
    svg = show_chip.draw_chip_svg(catalogue.load_chip("wormhole", 65))
    harvested = {title.split(":")[0] for title, _, _ in boxes(svg) if title.endswith("harvested")}
    assert harvested == {f"{x}-{y}" for y in (1, 8) for x in (1, 2, 3, 4, 6, 7, 8, 9)}
    assert "rows 1, 8 harvested" in svg
    assert "no rows harvested" in show_chip.draw_chip_svg(catalogue.load_chip("wormhole", 0))


def in_words(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return format(value, ",d" if isinstance(value, int) else "g")


@pytest.mark.parametrize("name", CHIPS)
def test_a_description_holds_every_figure_and_source(name):
    spec = shipped.chip(name)
    lines = show_chip.describe_chip(spec).splitlines()
    assert max(map(len, lines)) <= 100
    text = " ".join(" ".join(lines).split())
    for field in ("router", "niu", "dram", "ethernet", "alignment", "pcie"):  # fmt: skip
        for path, value, source in quantities_of(getattr(spec, field)):
            assert f" {path} {in_words(value)} {source}".rstrip() in text
    assert all(name in text for name in PcieParameters.model_fields)
    assert f"logical grid of {spec.worker_grid()[0]} x {spec.worker_grid()[1]}" in text


def test_a_hostile_name_or_description_stays_text():
    spec = catalogue.load_chip("wormhole").model_copy(update={"description": "<script>" * 100})
    svg = show_chip.draw_chip_svg(spec)
    assert "<script>" not in svg
    ElementTree.fromstring(svg)
