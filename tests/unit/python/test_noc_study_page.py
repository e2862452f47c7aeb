# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The page of the NoC study: every part is on it, and nothing from outside gets into its code."""

import json
import re
from dataclasses import replace

import pytest

from inside.noc import PATTERNS, StudyRequest, findings, measure_point, study_parts
from inside.pages import Provenance, Study, bandwidth_figure, write_study
from traffic_example import WORMHOLE, install

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
    write_study(study, folder / "study.html")
    return (folder / "study.html").read_text(encoding="utf-8")


def figures_of(page):
    texts = re.findall(r'<script type="application/json">(.*?)</script>', page)
    return [json.loads(text) for text in texts]


def test_there_is_a_figure_per_pattern_and_noc_and_per_follow_up(study, tmp_path):
    page = page_of(study, tmp_path)
    # Patterns, orders, accepted and latency, loopback; on two NoCs each.
    assert len(figures_of(page)) == 2 * (6 + 2 + 2 + 1)
    for heading in ("Findings", "Order of destinations", "Small messages beside data",
                    "Throttled injection", "Stalled VCs", "Two classes of traffic",
                    "Loopback, 4 transactions"):  # fmt: skip
        assert f"<h2>{heading}" in page


def test_sizes_are_on_a_logarithmic_axis_and_a_line_is_a_vc_count(study, tmp_path):
    figure = figures_of(page_of(study, tmp_path))[0]
    assert [line["name"] for line in figure["data"]] == ["1 VC", "2 VCs"]
    assert figure["data"][0]["x"] == [32, 4096]
    assert figure["layout"]["xaxis"]["type"] == "log"


def test_every_finding_has_its_verdict(study, tmp_path):
    page = page_of(study, tmp_path)
    verdicts = re.findall(
        r'<td class="text (passed|failed|muted)">(shown|refuted|not tested)</td>', page
    )
    assert len(verdicts) == len(study.findings) == 20
    assert set(verdicts) == {("passed", "shown"), ("failed", "refuted"), ("muted", "not tested")}


def test_reduced_points_are_open_circles(study):
    rows = [row for row in study.parts["loopback"] if row["noc"] == 0]
    rows[0]["per_destination"] -= 1
    symbols = [line.marker.symbol for line in bandwidth_figure(rows, 1.0).data]
    assert symbols == [("circle-open", "circle"), ("circle", "circle")]


def test_a_part_that_was_not_run_has_no_section(study, tmp_path):
    only = replace(study, parts={"patterns": study.parts["patterns"]}, findings=[])
    page = page_of(only, tmp_path)
    assert len(figures_of(page)) == 12
    assert "Throttled injection" not in page and "Loopback" not in page


def test_the_page_needs_nothing_else_and_escapes_what_it_is_given(study, tmp_path):
    plain = page_of(study, tmp_path)
    hostile = page_of(replace(study, title=HOSTILE, command=HOSTILE), tmp_path)
    assert hostile.count("<script") == plain.count("<script")
    assert "default-src &#39;none&#39;" in plain or "default-src 'none'" in plain
    assert not re.search(r'(src|href)="(?!#)', plain.split("<script>")[0])


def test_the_foot_says_what_the_study_was_made_with(study, tmp_path):
    made_with = Provenance("9.8.7", "2026-11-22T06:40:00Z", {"wormhole": "0123abcd"})
    write_study(study, tmp_path / "study.html", made_with=made_with)
    page = (tmp_path / "study.html").read_text(encoding="utf-8")
    foot = page[page.index("<footer>") : page.index("</footer>")]
    assert "Towpath 9.8.7, 2026-11-22T06:40:00Z" in foot
    assert "machine wormhole 0123abcd" in foot
