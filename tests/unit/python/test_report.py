# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
import base64
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from inside.collectives import LinkLoad, Timeline
from inside.machines import format_size
from inside.pages import (
    Lanes,
    Provenance,
    provenance,
    report_page,
    run_names,
    table,
    timeline_section,
    write_report,
)
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


def _page(results, path):
    write_report(results, path)
    return _Page(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    return path, _page(example_report(), path)


def test_the_page_of_sixteen_ranks_stays_below_a_megabyte_and_a_half(example):
    path, _ = example
    assert path.stat().st_size < 1_500_000


def test_foot_says_what_the_report_was_made_with(example, tmp_path):
    _, page = example
    assert page.texts[-1].startswith(f"Towpath {provenance().version}, 20")
    made = Provenance("9.9", "2026-01-02T03:04:05Z", {"ring": "12ab"}, {"<tree>": "34cd"})
    run = example_run("ring", "Simple", 1.0, 1.0, ranks=2, blocks=1, sizes=1)
    texts = _page([replace(run, provenance=made)], tmp_path / "made.html").texts
    assert texts[-3:] == [
        "Towpath 9.9, 2026-01-02T03:04:05Z", "machine ring 12ab", "schedule <tree> 34cd",
    ]  # fmt: skip


def test_report_needs_no_other_file_and_no_network(example):
    path, page = example
    for tag, attributes in page.elements:
        for name in ("src", "href", "action", "data", "srcset"):
            assert attributes.get(name, "#").startswith(("#", "data:image/")), tag
        assert tag not in ("link", "iframe", "object", "embed", "form", "base")
    policies = [a["content"] for t, a in page.elements if t == "meta" and "http-equiv" in a]
    assert policies[0].startswith("default-src 'none';")
    assert not re.search(r"url\(|@import", path.read_text().split("</style>")[0])
    assert not re.search(r"https?:|fetch\(|XMLHttpRequest|import\(", "".join(page.scripts))


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_reports_no_error(example, width, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no chromium here")
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
         f"--user-data-dir={tmp_path}", f"--window-size={width},900",
         f"--screenshot={tmp_path / 'page.png'}", example[0].as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (tmp_path / "page.png").is_file(), done.stderr
    assert "CONSOLE" not in done.stderr


def test_all_runs_share_the_two_plots(example):
    runs = example_report()
    time, bandwidth, _ = report_page(runs, [None] * 3).sections[0].parts
    for plot in (time, bandwidth):
        assert [(curve.name, curve.style) for curve in plot.curves] == [
            ("ring, Simple, 8 channels, dgx-h100, 16 ranks", "line"),
            ("ring, Simple, 8 channels, dgx-h100, 16 ranks, in place", "open"),
            ("tree, LL128, 8 channels, dgx-h100, 16 ranks", "line"),
            ("ring, Simple, 2 channels, this host, 4 ranks", "line"),
            ("ring, Simple, 2 channels, this host, 4 ranks, in place", "open"),
        ]
        assert plot.x.scale == "size"


def test_a_chosen_run_is_one_curve_that_names_the_schedule_where_it_changes():
    run = example_run("tree", "LL128", 21.0, 190.0, ranks=8, blocks=2, sizes=4)
    rows = [replace(row, schedule="ring_all_reduce") if n > 1 else row
            for n, row in enumerate(run.rows)]  # fmt: skip
    run = replace(run, is_chosen=True, rows=tuple(rows))
    time, _, _ = report_page([run], [None]).sections[0].parts
    (curve,) = time.curves
    assert curve.name == "fastest schedule at each size"
    assert list(curve.labels) == ["tree LL128", "", "ring LL128", ""]


def test_the_first_table_has_the_error_to_expect(tmp_path):
    run = example_run("ring", "Simple", 1.0, 1.0, ranks=2, blocks=1, sizes=2)
    rows = (replace(run.rows[0], error_pct=(2.0, 7.0)), run.rows[1])
    page = report_page([replace(run, rows=rows)], [None])
    assert [line[-1] for line in page.headline.lines] == [
        "2 %, 90th percentile 7 %", "not validated",
    ]  # fmt: skip


def test_times_in_place_are_left_out_if_they_are_the_same():
    run = example_run("tree", "Simple", 1.0, 1.0, ranks=2, blocks=1, sizes=2)
    rows = tuple(replace(row, in_place=row.out_of_place) for row in run.rows)
    *_, table = report_page([replace(run, rows=rows)], [None]).sections[0].parts
    assert not any("in place" in heading for heading in table.headings)
    assert "times in place are the same" in table.title


def test_tables_show_what_was_not_run_or_not_checked(example):
    _, page = example
    # The tree does not run in place: 4 x 28. Data of 3 sizes unchecked: ring and live twice each.
    assert page.texts.count("N/A") == 4 * 28 + 3 * 2 + 3 + 3 * 2
    assert "correct (50 of 56 checked)" in page.texts


def test_wrong_data_is_told(tmp_path):
    run = example_run("ring", "Simple", 1.0, 1.0, ranks=2, blocks=1, sizes=1)
    wrong = replace(run.rows[0].in_place, wrong=1234)
    run = replace(run, rows=(replace(run.rows[0], in_place=wrong),))
    page = _page([run], tmp_path / "report.html")
    assert "1,234 wrong" in page.texts
    assert any(a.get("class") == "bad" for t, a in page.elements if t == "dd")


def test_everything_from_outside_is_escaped(tmp_path):
    timeline = example_timeline(2, 2, 1)
    timeline = replace(timeline, names=[_HOSTILE for _ in timeline.names])
    links = [LinkLoad(_HOSTILE, _HOSTILE, _HOSTILE, 8, 0.5)]

    class Outcome:
        limit = None

    Outcome.links, Outcome.timeline = links, timeline
    svg = f'<svg xmlns="http://www.w3.org/2000/svg"><script>{_HOSTILE}</script></svg>'
    harmless = example_run("ring", "Simple", 1.0, 1.0, ranks=2, blocks=1, sizes=3, loops=1)
    rows = tuple(
        replace(row, schedule=_HOSTILE, protocol=_HOSTILE, again=lambda size, traced: Outcome)
        for row in harmless.rows
    )
    run = replace(
        harmless, where=_HOSTILE, dtype=_HOSTILE, op=_HOSTILE, notes=(_HOSTILE,), rows=rows,
        command=_HOSTILE, draw=lambda loads: svg,
    )  # fmt: skip
    plain = _page([harmless], tmp_path / "harmless.html")
    page = _page([run], tmp_path / "report.html")
    tags = [[t for t, _ in each.elements] for each in (page, plain)]
    assert tags[0].count("script") == tags[1].count("script")
    assert not any("onerror" in attributes for _, attributes in page.elements)
    images = [a["src"] for t, a in page.elements if t == "img" and "svg" in a["src"]]
    assert [base64.b64decode(src.split(",")[1]).decode() for src in images] == [svg]
    assert _HOSTILE in page.texts


def test_run_without_rows_timeline_or_links_still_reports(tmp_path):
    run = example_run("ring", "Simple", 1.0, 1.0, ranks=2, blocks=1, sizes=1)
    assert "correct" in _page([run], tmp_path / "report.html").texts


def _lanes(section):
    (lanes,) = [part for part in section.parts if isinstance(part, Lanes)]
    return lanes


def test_timeline_shows_every_span_when_they_are_few():
    timeline = example_timeline(ranks=2, blocks=3, loops=1)
    section = timeline_section(timeline, 10_000)
    blocks = [s for s in timeline.spans if timeline.tracks[s[0]].startswith("rank")]
    assert section.notes == []
    assert sum(map(len, _lanes(section).groups.values())) == len(blocks)


def test_timeline_of_many_ranks_is_cut_at_the_same_time_for_all_shown():
    section = timeline_section(example_timeline(ranks=40, blocks=4, loops=2), 3_200)
    lanes = _lanes(section)
    assert len(section.parts[0].rows) == 40
    assert list(lanes.groups)[0] == "rank 0" and list(lanes.groups)[-1] == "rank 39"
    assert len(lanes.groups) == 16
    assert sum(map(len, lanes.groups.values())) <= 3_200
    assert all(span[1] < lanes.span[1] for own in lanes.groups.values() for span in own)
    (note,) = section.notes
    assert "16 of 40 ranks" in note and "The Perfetto trace has everything." in note


def test_overview_is_the_share_of_thread_blocks_that_move():
    # Two thread blocks over 300 bins of 1 ps: one moves all the time, one in the second half.
    tracks = ["rank 0 thread block 0", "rank 0 thread block 1", "link a > b"]
    spans = [(0, 1, 0, 300, 0), (1, 0, 0, 150, 0), (1, 1, 150, 300, 0), (2, 1, 0, 900, 0)]
    section = timeline_section(Timeline(8, tracks, ["wait", "send"], spans), 100)
    assert np.asarray(section.parts[0].percents).tolist() == [[50] * 150 + [100] * 150]


def test_timeline_without_thread_blocks_is_left_out():
    assert timeline_section(Timeline(8, ["link a > b"], ["segment"], [(0, 0, 0, 1, 8)]), 10) is None


def test_run_names_say_what_differs_and_never_repeat():
    run = example_run("ring", "Simple", 1.0, 1.0, ranks=2, blocks=1, sizes=1)
    tree = example_run("tree", "Simple", 1.0, 1.0, ranks=2, blocks=1, sizes=1)
    wide = example_run("ring", "Simple", 1.0, 1.0, ranks=2, blocks=8, sizes=1)
    assert run_names([run]) == ["ring"]
    assert run_names([run, tree]) == ["ring", "tree"]
    assert run_names([run, wide]) == ["ring, 1 channel", "ring, 8 channels"]
    assert run_names([run, run]) == ["ring", "ring (2)"]


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536 << 20, "1.5 GiB"), (1 << 44, "16 TiB")],
)
def test_sizes_read_in_binary_units(size_bytes, text):
    assert format_size(size_bytes) == text


def test_a_narrow_table_fits_80_columns_and_shows_in_place_only_if_it_differs():
    run = example_run("double_binary_tree_all_reduce", "LL128", 21.0, 190.0, ranks=8, blocks=16,
                      sizes=28)  # fmt: skip
    same = tuple(replace(row, in_place=row.out_of_place, error_pct=(2, 7)) for row in run.rows)
    lines = [*table.header(run, is_narrow=True)]
    for row in same:
        lines += table.row_lines(run, row, is_narrow=True)
    rows = [line for line in lines if not line.startswith("#")]
    assert len(rows) == 28
    assert max(map(len, rows)) <= 80
    assert "+-2/7%" in rows[0]
    ring = example_run("ring", "Simple", 1.0, 1.0, ranks=2, blocks=1, sizes=1)
    assert len([*table.row_lines(ring, ring.rows[0], is_narrow=True)]) == 2
