# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The page of a replayed trace: what its figures hold, and that it needs nothing but itself."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import fake_traffic
from fake_traffic import CALL, LATENCY, Spec
from inside.pages import (
    LINKS_SHOWN_MAX,
    REQUEST_CORES_MAX,
    grid_plot,
    links_heat,
    phases_bars,
    replay_page,
    write_page,
)
from inside.replay import PHASES, load_noc_trace, replay, replay_module
from trace_example import event, write, zone


@pytest.fixture(autouse=True)
def simulator(monkeypatch):
    fake_traffic.install(monkeypatch, replay_module)


def replayed_cores(folder, cores=1):
    """So many cores that read 4 KiB three times each, on NoC 0."""
    events = []
    for number in range(cores):
        core = (1 + number % 4, 1 + number // 4)
        events.append(zone(core, "NCRISC", number))
        for cycle in (100, 240, 380):
            events.append(event(core, "NCRISC", number + cycle, "READ", (2, 2), size_bytes=4096))
        events.append(event(core, "NCRISC", number + 500, "READ_BARRIER_START"))
        events.append(event(core, "NCRISC", number + 2000, "READ_BARRIER_END"))
    trace = load_noc_trace(write(folder / "example.json", events), (10, 12))
    return replay(trace, Spec(), samples_links=True)


def page_of(replayed, path):
    page = replay_page(replayed, "towpath replay example.json")
    write_page(page, path)
    return path.read_text(encoding="utf-8"), {section.title: section for section in page.sections}


def test_page_shows_cycles_cores_requests_and_the_noc_that_was_used(tmp_path):
    text, sections = page_of(replayed_cores(tmp_path), tmp_path / "page.html")
    assert "<h1>example on example</h1>" in text
    assert list(sections) == ["Where requests wait", "Cores", "NoC 0"]
    predicted = 380 + replay_module.RECORD_CYCLES + CALL + LATENCY
    assert f"<td>{predicted}</td><td>2000</td>" in text
    measured, simulated = sections["Cores"].parts[0].series
    assert (list(measured.lengths), list(simulated.lengths)) == ([2000], [predicted])
    phases, _, lanes = sections["Where requests wait"].parts
    assert [series.name for series in phases.series] == list(PHASES)
    assert [name for name, _ in lanes.kinds] == list(PHASES)
    grid, heat = sections["NoC 0"].parts
    assert grid.curves and heat.percents


def test_page_is_one_file_without_a_network(tmp_path):
    text, _ = page_of(replayed_cores(tmp_path), tmp_path / "page.html")
    outside = text.replace(re.findall(r"<script>(.*?)</script>", text, re.DOTALL)[-1], "")
    assert "default-src 'none'" in text
    assert not re.search(r'(?:src|href)="(?!data:|#)', outside)


def test_a_hostile_name_stays_text(tmp_path):
    hostile = '</script><script>alert("x")</script>'
    text, _ = page_of(replace(replayed_cores(tmp_path), name=hostile), tmp_path / "page.html")
    assert hostile not in text and "&lt;/script&gt;" in text


def test_phases_are_means_over_the_requests_of_a_processor(tmp_path):
    (requests,) = [list(replayed_cores(tmp_path).requests)]
    waits, leaves, travels, answered = phases_bars({"core": requests}).series
    # The stand-in starts a request at once, sends it in a cycle less than its call, and answers
    # it half of its latency after it arrived.
    assert (list(waits.lengths), list(leaves.lengths)) == ([CALL - 1], [1])
    assert (list(travels.lengths), list(answered.lengths)) == ([LATENCY // 2], [LATENCY // 2])


def test_a_link_is_as_dark_as_it_is_busy(tmp_path):
    replayed = replayed_cores(tmp_path)
    heat = links_heat(replayed, 0)
    assert list(heat.rows) == ["(1, 0) > (1, 1)"]  # tile 1's second port: down
    # Samples of 16 cycles at least, in half of whose cycles a flit left.
    assert set(np.asarray(heat.percents).ravel()) == {50}
    (busy,) = [curve for curve in grid_plot(replayed, 0).curves if curve.name == "40 to 60 %"]
    assert list(busy.x[:2]) == [1, 1] and list(busy.y[:2]) == [0, -1] and math.isnan(busy.x[2])


def test_a_link_around_the_border_is_two_stubs(tmp_path):
    replayed = replayed_cores(tmp_path)
    flits = np.zeros_like(replayed.link_flits)
    flits[:, 1, 4 * 2] = replayed.link_sample_cycles  # NoC 1, tile (2, 0), up
    moved = replace(replayed, link_flits=flits)
    assert list(links_heat(moved, 1).rows) == ["(2, 0) > (2, 11)"]
    (busy,) = [curve for curve in grid_plot(moved, 1).curves if curve.name == "80 to 100 %"]
    assert [y for y in busy.y if not math.isnan(y)] == [0, 0.6, -11.6, -11]


def test_many_links_and_cores_are_cut_and_said_so(tmp_path):
    replayed = replayed_cores(tmp_path, cores=20)
    flits = np.ones_like(replayed.link_flits)
    text, sections = page_of(replace(replayed, link_flits=flits), tmp_path / "page.html")
    assert f"The {LINKS_SHOWN_MAX} busiest of 240 are shown." in text
    assert len(sections["Where requests wait"].parts[2].groups) == REQUEST_CORES_MAX
    assert "NoC 0" in sections and "NoC 1" in sections
