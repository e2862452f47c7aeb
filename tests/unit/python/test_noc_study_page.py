# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The page of the NoC study: every part is on it, and nothing from outside gets into its code."""

import re
from dataclasses import replace

import pytest

from inside.noc import PATTERNS, StudyRequest, findings, measure_point, study_parts
from inside.pages import Provenance, Study, bandwidth_plot, noc_page, write_page
from traffic_example import WORMHOLE, install

pytestmark = pytest.mark.slow  # seconds of simulation

HOSTILE = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def study():
    request = StudyRequest(PATTERNS, sizes_bytes=(32, 4096), vcs=(1, 2), transactions=4)
    asked = study_parts(WORMHOLE, request)
    with pytest.MonkeyPatch.context() as patch:
        install(patch)
        parts = {part: [{**p, **measure_point("", p)} for p in own] for part, own in asked.items()}
    facts = [("Chip", WORMHOLE.name)]
    return Study("a title", "a command", facts, parts, findings(parts, WORMHOLE))


def page_of(study, folder):
    write_page(noc_page(study), folder / "study.html")
    return (folder / "study.html").read_text(encoding="utf-8")


def plots_of(page):
    return page.count('class="plot"')


def test_there_is_a_figure_per_pattern_and_noc_and_per_follow_up(study, tmp_path):
    page = page_of(study, tmp_path)
    # Patterns, orders, accepted and latency, loopback; on two NoCs each.
    assert plots_of(page) == 2 * (6 + 2 + 2 + 1)
    for heading in ("In short", "Order of destinations", "Small messages beside data",
                    "Throttled injection", "Stalled VCs", "Two classes of traffic",
                    "Loopback, 4 transactions"):  # fmt: skip
        assert f"<h2>{heading}" in page


def test_sizes_are_on_a_logarithmic_axis_and_a_line_is_a_vc_count(study):
    plot = noc_page(study).sections[0].parts[0]
    assert [curve.name for curve in plot.curves] == ["1 VC", "2 VCs"]
    assert list(plot.curves[0].x) == [32, 4096]
    assert plot.x.scale == "size"


def test_every_finding_has_its_verdict(study, tmp_path):
    page = page_of(study, tmp_path)
    verdicts = re.findall(
        r'class="verdict (good|bad|neutral)">(shown|refuted|not tested)</span>', page
    )
    assert len(verdicts) == len(study.findings) == 20
    assert set(verdicts) == {("good", "shown"), ("bad", "refuted"), ("neutral", "not tested")}


def test_reduced_points_are_open_circles(study):
    rows = [row for row in study.parts["loopback"] if row["noc"] == 0]
    rows[0]["per_destination"] -= 1
    curves = bandwidth_plot("NoC 0", rows, 1.0).curves
    assert [list(curve.hollow) for curve in curves] == [[0], []]


def test_a_part_that_was_not_run_has_no_section(study, tmp_path):
    only = replace(study, parts={"patterns": study.parts["patterns"]}, findings=[])
    page = page_of(only, tmp_path)
    assert plots_of(page) == 12
    assert "Throttled injection" not in page and "Loopback" not in page


def test_the_page_needs_nothing_else_and_escapes_what_it_is_given(study, tmp_path):
    plain = page_of(study, tmp_path)
    hostile = page_of(replace(study, title=HOSTILE, command=HOSTILE), tmp_path)
    assert hostile.count("<script") == plain.count("<script")
    assert "default-src &#39;none&#39;" in plain or "default-src 'none'" in plain
    assert not re.search(r'(src|href)="(?!#)', plain.split("<script>")[0])


def test_the_foot_says_what_the_study_was_made_with(study, tmp_path):
    made_with = Provenance("9.8.7", "2026-11-22T06:40:00Z", {"wormhole": "0123abcd"})
    write_page(noc_page(study), tmp_path / "study.html", made_with)
    page = (tmp_path / "study.html").read_text(encoding="utf-8")
    foot = page[page.index("<footer>") : page.index("</footer>")]
    assert "Towpath 9.8.7, 2026-11-22T06:40:00Z" in foot
    assert "machine wormhole 0123abcd" in foot
