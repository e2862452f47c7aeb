# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath bench ethernet`: what it measures, writes and prints, and what it refuses."""

import json
from functools import partial

import pytest

import towpath
from conftest import towpath_command
from inside.pages import Curve, ethernet_page, page_text, write_page
from inside.studies import ethernet_study, plot
from towpath import ConfigError

SIZES = plot("Bandwidth", "How.", "size", "GB/s", [Curve("1 < 2", [16.0, 1024.0], [1.0, 2.5])])
TIMES = plot("Trips", "How.", "us", "trips", [Curve("8 hops", [5.54, 5.6], [3.0, 1.0])])


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """Runs the command as typed after `towpath bench ethernet`, with few sizes."""
    monkeypatch.chdir(tmp_path)
    for name in ("_LINK_BYTES", "_RING_BYTES", "_PING_BYTES", "_BIDIRECTIONAL_BYTES"):
        monkeypatch.setattr(ethernet_study, name, (512, 1024))
    monkeypatch.setattr(ethernet_study, "_BEST_BYTES", (32768,))

    return partial(towpath_command, "bench", "ethernet")


def test_a_t3000_has_all_figures(bench, tmp_path):
    text = bench().stdout
    titles = [line for line in text.splitlines() if line.startswith("# ")]
    assert len(titles) == 6 + 1  # and in short
    assert sorted(path.name for path in (tmp_path / "ethernet-t3000").iterdir()) == [
        "study.html", "study.json",
    ]  # fmt: skip


def test_an_n300_has_no_rings(bench, tmp_path):
    found = json.loads(bench("--machine", "n300", "--json").stdout)["results"][0]
    assert [figure["title"] for figure in found["figures"]] == [
        "Utilisation", "Bandwidth by packet size", "Bandwidth by packet size and channels",
        "Link ping",
    ]  # fmt: skip
    kept = json.loads((tmp_path / "ethernet-n300" / "study.json").read_text())
    assert [found] == kept["results"]
    framing, measured = found["figures"][0]["curves"]
    assert framing["y"] == pytest.approx([100 * 512 / 562, 100 * 1024 / 1074])
    assert all(0 < m < f for m, f in zip(measured["y"], framing["y"], strict=True))


def test_a_machine_without_links_is_refused(bench):
    with pytest.raises(ConfigError, match="'p150' has no link between chips"):
        bench("--machine", "p150")


def test_text_has_every_number():
    assert page_text(ethernet_page("Links", "bench", [SIZES, TIMES])).splitlines() == [
        "# Bandwidth",
        "   size  1 < 2 (GB/s)",
        "   16 B             1",
        "  1 KiB           2.5",
        "",
        "# Trips",
        "    us  8 hops (trips)",
        "  5.54               3",
        "   5.6               1",
        "",
        "# In short",
        "Bandwidth: at most 2.5 GB/s, 1 < 2, 1 KiB",
    ]


def test_the_page_stands_alone_and_is_escaped(tmp_path):
    page = tmp_path / "study.html"
    write_page(ethernet_page("Links of <a>", "towpath bench ethernet", [SIZES, TIMES]), page)
    html = page.read_text()
    assert "Links of &lt;a&gt;" in html
    assert html.count('class="plot"') == 2
    assert "1 < 2" not in html


def test_the_links_of_a_ring_can_be_chosen():
    t3000 = towpath.load("t3000")
    ring = [0, 1, 2, 3]
    times = {
        links: max(t3000.ring_ping(ring, samples=2, links=links))
        for links in ((0, 0, 0, 0), (1, 1, 1, 1))
    }
    assert times[0, 0, 0, 0] == max(t3000.ring_ping(ring, samples=2))
    assert times[1, 1, 1, 1] != times[0, 0, 0, 0]
    with pytest.raises(ValueError, match="there is no link 3 from chip 0 to chip 1"):
        t3000.ring_ping(ring, links=(2, 0, 0, 0))
    with pytest.raises(ValueError, match="links has 1 numbers; it must have one for each of 4"):
        t3000.ring_ping(ring, links=(0,))
