# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
import re
import xml.etree.ElementTree as ElementTree

import pytest

from inside.machines import catalogue, shipped
from inside.pages import show

SVG = "{http://www.w3.org/2000/svg}"


def wires(svg):
    root = ElementTree.fromstring(svg)
    return [path for path in root.iter(f"{SVG}path") if path.find(f"{SVG}title") is not None]


def boxes(svg):
    root = ElementTree.fromstring(svg)
    return [group.find(f"{SVG}title").text for group in root.iter(f"{SVG}g")]


def test_a_description_holds_every_figure_and_source():
    spec = shipped.machine("dgx-h100")
    text = " ".join(show.describe(spec).split())
    for link_type in spec.link_types.values():
        for figure in (link_type.rate_gb_per_s, link_type.latency_ns):
            assert f"{figure.value:g} {' '.join(figure.source.split())}"[:40] in text
    assert "16 wires of 370 GB/s" in text
    assert max(len(line) for line in show.describe(spec).splitlines()) <= 100


@pytest.mark.parametrize(
    "name", [n for n in shipped.names("gpu_cluster") if shipped.machine(n).gpus_per_host <= 16]
)
def test_a_drawing_shows_every_device_and_wire_of_a_small_machine(name):
    spec = shipped.machine(name)
    layout = spec.layout()
    svg = show.draw_svg(spec)
    assert sorted(boxes(svg)) == sorted(f"{d.name} ({d.kind})" for d in layout.devices)
    assert len(wires(svg)) == len(layout.wires)


def test_a_drawing_of_many_hosts_shows_four_and_counts_the_others():
    spec = catalogue.load("dgx-h100", hosts=128)
    svg = show.draw_svg(spec)
    assert "124 more hosts" in svg and "1,024 GPUs" in svg
    assert sum("gpu" in name for name in boxes(svg)) == 32
    assert len(svg) < 100_000


def test_a_drawing_of_a_long_ring_says_how_much_it_leaves_out():
    assert "1008 more GPUs not drawn" in show.draw_svg(catalogue.load("ring", ranks=1024))


def test_boxes_stay_inside_and_apart():
    svg = show.draw_svg(catalogue.load("dgx-h100", hosts=4))
    root = ElementTree.fromstring(svg)
    width, height = float(root.get("width")), float(root.get("height"))
    placed = []
    for group in root.iter(f"{SVG}g"):
        box = group.find(f"{SVG}rect")
        x, y, w, h = (float(box.get(name)) for name in ("x", "y", "width", "height"))
        assert 0 <= x and x + w <= width and 0 <= y and y + h <= height
        assert all(x >= a + c or a >= x + w or y >= b + d or b >= y + h for a, b, c, d in placed)
        placed.append((x, y, w, h))


def test_thicker_wires_are_faster():
    width = {
        path.find(f"{SVG}title").text.split(": ")[1].split(",")[0]: float(path.get("stroke-width"))
        for path in wires(show.draw_svg(shipped.machine("dgx-h100")))
    }
    assert width["nvlink"] > width["infiniband_spine"] > width["pcie"] > width["infiniband"]


def test_load_colours_a_wire_by_its_busier_direction():
    spec = shipped.machine("dgx-h100")
    plain = {path.get("stroke") for path in wires(show.draw_svg(spec))}
    loaded = show.draw_svg(spec, {0: 0.1, 1: 1.0})
    by_title = {path.find(f"{SVG}title").text: path.get("stroke") for path in wires(loaded)}
    busiest = next(title for title in by_title if title.endswith("100% busy"))
    assert busiest.startswith("host0/gpu0 to host0/nvswitch")
    assert by_title[busiest] not in plain
    assert len({colour for title, colour in by_title.items() if title != busiest}) == 1


def test_a_drawing_is_self_contained():
    svg = show.draw_svg(shipped.machine("dgx-h100"))
    assert not re.search(r"(href|src)=", svg.replace("http://www.w3.org/2000/svg", ""))
