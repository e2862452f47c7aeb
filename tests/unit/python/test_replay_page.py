# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The page of a replayed trace: what its figures hold, and that it needs nothing but itself."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import fake_traffic
from fake_traffic import CALL, LATENCY, Spec
from inside.pages import (
    LINKS_SHOWN_MAX,
    REQUEST_CORES_MAX,
    grid_figure,
    links_figure,
    phases_figure,
    write_replay,
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
    write_replay(replayed, "towpath replay example.json", path)
    text = path.read_text(encoding="utf-8")
    found = re.findall(r'<script type="application/json">(.*?)</script>', text)
    return text, [json.loads(figure) for figure in found]


def test_page_shows_figures_cores_requests_and_the_noc_that_was_used(tmp_path):
    text, figures = page_of(replayed_cores(tmp_path), tmp_path / "page.html")
    assert "<h1>example on example</h1>" in text and "<h2>NoC 0</h2>" in text
    assert "NoC 1</h2>" not in text
    predicted = 380 + replay_module.RECORD_CYCLES + CALL + LATENCY
    assert f"<td>{predicted:,}</td><td>2,000</td>" in text
    cores, phases, requests, grid, links = figures
    assert [trace["x"] for trace in cores["data"]] == [[2000], [predicted]]
    assert [trace["name"] for trace in phases["data"]] == list(PHASES)
    assert len(requests["data"]) == len(PHASES)
    assert grid["data"] and links["data"][0]["type"] == "heatmap"


def test_page_is_one_file_without_a_network(tmp_path):
    text, _ = page_of(replayed_cores(tmp_path), tmp_path / "page.html")
    outside = text.replace(re.search(r"<script>(.*?)</script>", text, re.DOTALL)[1], "")
    assert "default-src 'none'" in text
    assert not re.search(r'(?:src|href)="(?!data:|#)', outside)


def test_a_hostile_name_stays_text(tmp_path):
    hostile = '</script><script>alert("x")</script>'
    text, _ = page_of(replace(replayed_cores(tmp_path), name=hostile), tmp_path / "page.html")
    assert hostile not in text and "&lt;/script&gt;" in text


def test_phases_are_means_over_the_requests_of_a_processor(tmp_path):
    (requests,) = [list(replayed_cores(tmp_path).requests)]
    waits, leaves, travels, answered = phases_figure({"core": requests}).data
    # The stand-in starts a request at once, sends it in a cycle less than its call, and answers
    # it half of its latency after it arrived.
    assert (list(waits.x), list(leaves.x)) == ([CALL - 1], [1])
    assert (list(travels.x), list(answered.x)) == ([LATENCY // 2], [LATENCY // 2])


def test_a_link_is_as_dark_as_it_is_busy(tmp_path):
    replayed = replayed_cores(tmp_path)
    (heat,) = links_figure(replayed, 0).data
    assert list(heat.y) == ["(1, 0) > (1, 1)"]  # tile 1's second port: down
    # Samples of 16 cycles at least, in half of whose cycles a flit left.
    assert set(np.asarray(heat.z).ravel()) == {50}
    lines = grid_figure(replayed, 0).data
    (busy,) = [line for line in lines if line.name == "40 to 60 %"]
    assert list(busy.x) == [1, 1, None] and list(busy.y) == [0, 1, None]


def test_a_link_around_the_border_is_two_stubs(tmp_path):
    replayed = replayed_cores(tmp_path)
    flits = np.zeros_like(replayed.link_flits)
    flits[:, 1, 4 * 2] = replayed.link_sample_cycles  # NoC 1, tile (2, 0), up
    moved = replace(replayed, link_flits=flits)
    (heat,) = links_figure(moved, 1).data
    assert list(heat.y) == ["(2, 0) > (2, 11)"]
    (busy,) = [line for line in grid_figure(moved, 1).data if line.name == "80 to 100 %"]
    assert list(busy.y) == [0, -0.6, None, 11.6, 11, None]


def test_many_links_and_cores_are_cut_and_said_so(tmp_path):
    replayed = replayed_cores(tmp_path, cores=20)
    flits = np.ones_like(replayed.link_flits)
    text, figures = page_of(replace(replayed, link_flits=flits), tmp_path / "page.html")
    assert f"The {LINKS_SHOWN_MAX} busiest of 240 are shown." in text
    assert len(figures[2]["data"]) == REQUEST_CORES_MAX * len(PHASES)
    assert len(figures) == 7  # both NoCs
