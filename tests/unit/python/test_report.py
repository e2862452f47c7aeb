# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from inside.collectives import LinkLoad, Report, Timeline
from inside.machines import format_size
from inside.pages import Provenance, provenance, run_names, timeline_figures, write_report
from report_example import example_report, example_run, example_timeline

_HOSTILE = '</script><script>alert("x")</script><img src=x onerror=alert(1)>&amp;'


class _Page(HTMLParser):
    """Elements, texts and the figures of a report."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.figures, self.texts, self.scripts = [], [], [], []
        self._inside = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = (tag, dict(attrs).get("type")) if tag in ("script", "style") else None

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside == ("script", "application/json"):
            self.figures.append(json.loads(data))
        elif self._inside == ("script", None):
            self.scripts.append(data)
        elif self._inside is None and data.strip():
            self.texts.append(data.strip())


def _page(report, path):
    write_report(report, path)
    return _Page(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    return path, _page(example_report(), path)


def test_report_of_sixteen_ranks_stays_below_six_megabytes(example):
    path, _ = example
    assert path.stat().st_size < 6_000_000


def test_foot_says_what_the_report_was_made_with(example, tmp_path):
    path, page = example
    assert page.texts[-1].startswith(f"Towpath {provenance().version}, 20")
    made = Provenance("9.9", "2026-01-02T03:04:05Z", {"ring": "12ab"}, {"<tree>": "34cd"})
    write_report(Report("title", "command", []), tmp_path / "made.html", made)
    texts = _Page((tmp_path / "made.html").read_text(encoding="utf-8")).texts
    assert texts[-3:] == [
        "Towpath 9.9, 2026-01-02T03:04:05Z", "machine ring 12ab", "schedule <tree> 34cd",
    ]  # fmt: skip


def test_report_needs_no_other_file_and_no_network(example):
    path, page = example
    for tag, attributes in page.elements:
        for name in ("src", "href", "action", "data", "srcset"):
            assert attributes.get(name, "#").startswith(("#", "data:image/svg+xml;base64,")), tag
        assert tag not in ("link", "iframe", "object", "embed", "form", "base")
    policies = [a["content"] for t, a in page.elements if t == "meta" and "http-equiv" in a]
    assert policies[0].startswith("default-src 'none';")
    assert not re.search(r"url\(|@import", path.read_text().split("</style>")[0])


def test_plotly_is_there_once_and_every_figure_is_valid(example):
    _, page = example
    assert sum("plotly.js v" in script for script in page.scripts) == 1
    # Time, bandwidth; and of the one run with a timeline: links, overview, thread blocks.
    assert len(page.figures) == 5
    assert all(figure["data"] for figure in page.figures)


def test_all_runs_share_the_two_curves(example):
    _, page = example
    for figure in page.figures[:2]:
        assert [(t["name"], t["line"]["dash"]) for t in figure["data"]] == [
            ("ring, Simple, 8 channels, dgx-h100, 16 ranks", "solid"),
            ("ring, Simple, 8 channels, dgx-h100, 16 ranks", "dot"),
            ("tree, LL128, 8 channels, dgx-h100, 16 ranks", "solid"),
            ("ring, Simple, 2 channels, this host, 4 ranks", "solid"),
            ("ring, Simple, 2 channels, this host, 4 ranks", "dot"),
        ]
        assert [t["showlegend"] for t in figure["data"]] == [True, False, True, True, False]
        assert figure["layout"]["xaxis"]["type"] == "log"


def test_tables_show_what_was_not_run_or_not_checked(example):
    _, page = example
    # The tree does not run in place: 4 x 28. Data of 3 sizes unchecked: ring and live twice each.
    assert page.texts.count("N/A") == 4 * 28 + 3 * 2 + 3 + 3 * 2
    assert "correct (50 of 56 checked)" in page.texts


def test_wrong_data_is_told(tmp_path):
    run = example_run("ring", "Simple", 1.0, 1.0, ranks=2, blocks=1, sizes=1)
    wrong = replace(run.rows[0].in_place, wrong=1234)
    run = replace(run, rows=[replace(run.rows[0], in_place=wrong)])
    page = _page(Report("title", "command", [run]), tmp_path / "report.html")
    assert "1,234 wrong" in page.texts
    assert any(a.get("class") == "failed" for t, a in page.elements if t == "td")


def test_everything_from_outside_is_escaped(tmp_path):
    timeline = example_timeline(2, 2, 1)
    run = replace(
        example_run("ring", "Simple", 1.0, 1.0, ranks=2, blocks=1, sizes=3),
        schedule=_HOSTILE, where=_HOSTILE, collective="all_reduce", protocol=_HOSTILE,
        type=_HOSTILE, operation=_HOSTILE, notes=[_HOSTILE],
        links=[LinkLoad(_HOSTILE, _HOSTILE, _HOSTILE, 8, 0.5)],
        topology_svg=f'<svg xmlns="http://www.w3.org/2000/svg"><script>{_HOSTILE}</script></svg>',
        timeline=replace(timeline, names=[_HOSTILE for _ in timeline.names]),
    )  # fmt: skip
    harmless = example_report()
    harmless = _page(replace(harmless, runs=harmless.runs[:1]), tmp_path / "harmless.html")
    page = _page(Report(_HOSTILE, _HOSTILE, [run]), tmp_path / "report.html")
    assert [t for t, _ in page.elements].count("script") == [t for t, _ in harmless.elements].count(
        "script"
    )
    assert not any("onerror" in attributes for _, attributes in page.elements)
    images = [a["src"] for t, a in page.elements if t == "img"]
    assert [base64.b64decode(src.split(",")[1]).decode() for src in images] == [run.topology_svg]
    assert _HOSTILE in page.texts
    # plotly reads a little HTML in its labels, so there names are escaped once more.
    assert "<img" not in json.dumps(page.figures)


def test_run_without_rows_timeline_or_links_still_reports(tmp_path):
    run = example_run("ring", "Simple", 1.0, 1.0, ranks=2, blocks=1, sizes=0)
    page = _page(Report("title", "command", [run]), tmp_path / "report.html")
    assert len(page.figures) == 2
    assert "not checked" in page.texts
    assert _page(Report("no runs", "command", []), tmp_path / "report.html").texts[0] == "no runs"


def test_timeline_shows_every_span_when_they_are_few():
    timeline = example_timeline(ranks=2, blocks=3, loops=1)
    drawn = timeline_figures(timeline, 10_000)
    blocks = [s for s in timeline.spans if timeline.tracks[s[0]].startswith("rank")]
    assert drawn.spans == drawn.spans_drawn == len(blocks)
    assert drawn.drawn_until_us == drawn.total_us
    assert sum(len(bar.x) for bar in drawn.blocks.data) == len(blocks)


def test_timeline_of_many_ranks_is_cut_at_the_same_time_for_all_shown():
    drawn = timeline_figures(example_timeline(ranks=40, blocks=4, loops=2), 3_200)
    assert (drawn.ranks, drawn.overview_ranks, drawn.blocks_ranks) == (40, 40, 16)
    assert drawn.spans_drawn <= 3_200 < drawn.spans
    assert 0 < drawn.drawn_until_us < drawn.total_us
    assert all(max(bar.base) < drawn.drawn_until_us for bar in drawn.blocks.data)
    buttons = drawn.blocks.layout.updatemenus[0].buttons
    assert buttons[0].label == "rank 0"
    assert buttons[-1].label == "rank 39"
    # Every bar is shown for exactly one rank.
    shown = np.array([button.args[0]["visible"] for button in buttons])
    assert shown.sum(axis=0).tolist() == [1] * len(drawn.blocks.data)


def test_overview_is_the_share_of_thread_blocks_that_move():
    # Two thread blocks over 300 bins of 1 ps: one moves all the time, one in the second half.
    tracks = ["rank 0 thread block 0", "rank 0 thread block 1", "link a > b"]
    spans = [(0, 1, 0, 300, 0), (1, 0, 0, 150, 0), (1, 1, 150, 300, 0), (2, 1, 0, 900, 0)]
    drawn = timeline_figures(Timeline(8, tracks, ["wait", "send"], spans), 100)
    assert drawn.overview.data[0].z[0].tolist() == [50] * 150 + [100] * 150


def test_timeline_without_thread_blocks_is_left_out():
    assert timeline_figures(Timeline(8, ["link a > b"], ["segment"], [(0, 0, 0, 1, 8)]), 10) is None


def test_run_names_say_what_differs_and_never_repeat():
    run = example_run("ring", "Simple", 1.0, 1.0, ranks=2, blocks=1, sizes=0)
    assert run_names([run]) == ["ring"]
    assert run_names([run, replace(run, schedule="tree")]) == ["ring", "tree"]
    assert run_names([run, replace(run, channels=8)]) == ["ring, 1 channel", "ring, 8 channels"]
    assert run_names([run, run]) == ["ring", "ring (2)"]


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536 << 20, "1.5 GiB"), (1 << 44, "16 TiB")],
)
def test_sizes_read_in_binary_units(size_bytes, text):
    assert format_size(size_bytes) == text
