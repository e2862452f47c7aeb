# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import re
import xml.etree.ElementTree as ElementTree

import pytest

from inside.machines import catalogue, shipped
from inside.pages import show_chip_cluster

SVG = "{http://www.w3.org/2000/svg}"
CLUSTERS = shipped.names("chip_cluster")


def drawing(name):
    return ElementTree.fromstring(
        show_chip_cluster.draw_chip_cluster_svg(catalogue.shipped_chip_cluster(name))
    )


def groups(root, kind):
    return [group for group in root.iter(f"{SVG}g") if group.get("class") == kind]


def rectangle(group):
    found = group.find(f"{SVG}rect")
    return tuple(float(found.get(key)) for key in ("x", "y", "width", "height"))


def title(group):
    return group.find(f"{SVG}title").text


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_chip_tile_and_end_is_drawn_once(name):
    spec = catalogue.shipped_chip_cluster(name)
    root = drawing(name)
    assert len(groups(root, "card")) == len(spec.chips)
    tiles = [placed.chip.grid.width * placed.chip.grid.height for placed in spec.chips]
    assert len(groups(root, "tile")) == sum(tiles)
    ports = {title(port).split(":")[0] for port in groups(root, "port")}
    assert ports == {f"{end.chip} E{end.channel} ({spec.core_of(end)})" for end in spec.link_of_end}


@pytest.mark.parametrize("name", CLUSTERS)
def test_everything_stays_inside_and_apart(name):
    root = drawing(name)
    width, height = float(root.get("width")), float(root.get("height"))
    for kind in ("card", "port", "tile"):
        placed = []
        for group in groups(root, kind):
            x, y, w, h = rectangle(group)
            assert 0 <= x and x + w <= width and 0 <= y and y + h <= height
            placed.append((x, y, w, h))
        placed.sort()
        for number, (x, y, w, h) in enumerate(placed):
            for other_x, other_y, _, _ in placed[number + 1 :]:
                if other_x >= x + w:
                    break
                assert abs(other_y - y) >= h, (kind, x, y)


@pytest.mark.parametrize("name", CLUSTERS)
def test_lines_between_neighbours_are_straight(name):
    for wire in groups(drawing(name), "wire"):
        numbers = re.findall(r"[0-9.]+", wire.find(f"{SVG}path").get("d"))
        x, y, other_x, other_y = map(float, numbers)
        assert x == other_x or y == other_y


def test_links_of_a_mesh_are_lines_and_those_round_a_ring_are_stubs():
    mesh, torus = drawing("galaxy"), drawing("galaxy-torus")
    assert len(groups(mesh, "wire")) == 208 and not groups(mesh, "stub")
    assert len(groups(torus, "wire")) == 208 and len(groups(torus, "stub")) == 2 * 48
    texts = {stub.find(f"{SVG}text").text for stub in groups(torus, "stub")}
    assert {"7/4", "0/4", "24/0", "0/0"} <= texts


def test_the_dispatchers_link_looks_different():
    svg = show_chip_cluster.draw_chip_cluster_svg(catalogue.shipped_chip_cluster("n300"))
    lines = [wire.find(f"{SVG}path") for wire in groups(ElementTree.fromstring(svg), "wire")]
    assert [line.get("stroke-dasharray") for line in lines] == ["5 4", None]
    assert lines[0].get("stroke") != lines[1].get("stroke")
    assert "taken by the dispatcher" in svg
    assert "taken by" not in show_chip_cluster.draw_chip_cluster_svg(
        catalogue.shipped_chip_cluster("galaxy")
    )


def test_a_tile_says_what_its_core_is_joined_to():
    titles = {title(tile) for tile in groups(drawing("n300"), "tile")}
    assert "9-6: ethernet E8, joined to E0 (9-0) of chip 1 for the dispatcher" in titles
    assert "1-0: ethernet E1, joined to E9 (1-6) of chip 0" in titles
    assert "9-0: ethernet E0, not connected" in titles


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_description_has_every_chip_and_link(name):
    spec = catalogue.shipped_chip_cluster(name)
    text = show_chip_cluster.describe_chip_cluster(spec)
    assert max(map(len, text.splitlines())) <= 100
    assert text.isascii()
    words = " ".join(text.split())
    assert spec.source in words
    for link in spec.links:
        one, other = sorted((link.one, link.other))
        joined = " - ".join(f"E{end.channel} ({spec.core_of(end)})" for end in (one, other))
        assert joined in words
    assert words.count("for the dispatcher") == sum(link.is_reserved for link in spec.links)
    for number in range(len(spec.chips)):
        assert re.search(rf"(?m)^ *{number}  (wormhole|blackhole) ", text)


def test_racks_and_shelves_stand_side_by_side_and_empty_columns_go():
    spec = catalogue.shipped_chip_cluster("n300")
    near, far = spec.chips
    moved = dataclasses.replace(spec, chips=(near, dataclasses.replace(far, x=900)))
    assert show_chip_cluster.draw_chip_cluster_svg(moved).count('class="wire"') == 2
    shelves = dataclasses.replace(spec, chips=(near, dataclasses.replace(far, x=0, shelf=1)))
    root = ElementTree.fromstring(show_chip_cluster.draw_chip_cluster_svg(shelves))
    first, second = (rectangle(card) for card in groups(root, "card"))
    assert second[0] > first[0] + first[2] and second[1] == first[1]


def test_a_hostile_name_or_description_stays_text():
    spec = dataclasses.replace(
        catalogue.shipped_chip_cluster("n300"), name="<b>", description="<script>" * 100
    )
    svg = show_chip_cluster.draw_chip_cluster_svg(spec)
    assert "<script>" not in svg and "<b>" not in svg
    ElementTree.fromstring(svg)


def test_under_load_a_link_has_the_colour_of_its_busier_direction():
    spec = catalogue.shipped_chip_cluster("t3000")
    number = next(n for n, link in enumerate(spec.links) if not link.is_reserved)
    svg = show_chip_cluster.draw_chip_cluster_svg(spec, load={2 * number: 0.25, 2 * number + 1: 1})
    root = ElementTree.fromstring(svg)
    wires = {title(wire): wire.find(f"{SVG}path").get("stroke") for wire in groups(root, "wire")}
    assert sorted(wires.values()) == ["#cd2323"] + ["#cdd2da"] * 19
    (busy,) = (text for text, colour in wires.items() if colour == "#cd2323")
    assert busy.endswith("; busy 25% from here, 100% to here")
    link = spec.links[number]
    ports = {title(port): port.find(f"{SVG}rect").get("stroke") for port in groups(root, "port")}
    (far,) = (text for text in ports if text.startswith(f"{link.other} ".replace("/", " E")))
    assert ports[far] == "#cd2323"
    assert far.endswith("; busy 100% from here, 25% to here")
    assert "busy all the time" in svg and "dashed: taken by the dispatcher" in svg
