# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Verdicts follow from the numbers alone: made-up ones turn each of them both ways."""

from itertools import product

import pytest

from inside.noc import findings
from traffic_example import WORMHOLE

SIZES_BYTES = (64, 1024, 4096, 8192, 16384)


def bandwidths(pattern, rate_of, *, turned=False, per_destination=4, asked=4):
    """Rows of one pattern; `rate_of` gives the rate for (NoC, size, VC count)."""
    return [
        {
            "pattern": pattern, "noc": noc, "size_bytes": size_bytes, "vcs": vcs, "turned": turned,
            "per_destination": per_destination, "asked_per_destination": asked,
            "bandwidth_bytes_per_cycle": rate_of(noc, size_bytes, vcs),
        }
        for noc, size_bytes, vcs in product((0, 1), SIZES_BYTES, (1, 2, 4))
    ]  # fmt: skip


def rising(noc, size_bytes, vcs):
    return 30 * size_bytes / (size_bytes + 500)


def only(parts, name):
    return next(finding for finding in findings(parts, WORMHOLE) if finding.name == name)


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        ("one_to_one", "patterns"), ("one_to_all", "patterns"), ("one_from_one", "patterns"),
        ("one_from_all", "patterns"), ("loopback", "loopback"),
    ],
)  # fmt: skip
def test_no_difference_is_shown_unless_some_vc_count_differs(pattern, part):
    assert only({part: bandwidths(pattern, rising)}, pattern).verdict == "shown"
    for change, sign in ((1.06, "+6.0%"), (0.94, "-6.0%")):

        def with_change(noc, size_bytes, vcs, change=change):
            return rising(noc, size_bytes, vcs) * (change if (noc, vcs) == (1, 4) else 1)

        finding = only({part: bandwidths(pattern, with_change)}, pattern)
        assert finding.verdict == "refuted"
        assert f"{sign} (NoC 1, 64 B, 4 VCs)" in finding.numbers[0]


def test_small_differences_are_none():
    def noisy(noc, size_bytes, vcs):
        return rising(noc, size_bytes, vcs) * (1 + 0.01 * vcs)

    assert only({"patterns": bandwidths("one_to_one", noisy)}, "one_to_one").shown


@pytest.mark.parametrize(
    ("of_more_vcs", "shown"),
    [
        (lambda size_bytes: 0.8 if size_bytes == 4096 else 1, True),  # a loss in one place
        (lambda size_bytes: 1, False),  # no loss anywhere
        (lambda size_bytes: 1.3, False),  # a gain everywhere
        (lambda size_bytes: 0.8 if size_bytes == 64 else 1.3, False),  # a loss, yet a gain in most
    ],
)
def test_all_to_all_loses_when_nothing_is_gained_and_something_lost(of_more_vcs, shown):
    def rate(noc, size_bytes, vcs):
        return rising(noc, size_bytes, vcs) * (of_more_vcs(size_bytes) if vcs > 1 else 1)

    finding = only({"patterns": bandwidths("all_to_all", rate)}, "all_to_all_loss")
    assert finding.shown is shown
    assert "48 flits" in finding.reason and "may hold 15" in finding.reason


def dipping(noc, size_bytes, vcs):
    return rising(noc, size_bytes, vcs) * (0.6 if (size_bytes, vcs) == (8192, 2) else 1)


def both_ways(noc, size_bytes, vcs):
    return rising(noc, size_bytes, vcs) * {1: 1, 2: 0.9, 4: 1.1}[vcs]


@pytest.mark.parametrize("pattern", ["all_to_all", "all_from_all"])
@pytest.mark.parametrize(
    ("rate_of", "shown"), [(dipping, True), (both_ways, True), (rising, False)]
)
def test_irregular_is_a_dip_or_vcs_that_help_here_and_hurt_there(pattern, rate_of, shown):
    finding = only({"patterns": bandwidths(pattern, rate_of)}, f"{pattern}_irregular")
    assert finding.shown is shown


def orders(plain, turned):
    """Rows with and without randomised order, of one pattern."""
    return [
        *bandwidths("all_to_all", plain),
        *bandwidths("all_to_all", turned, turned=True),
    ]


def falling(noc, size_bytes, vcs):
    return rising(noc, size_bytes, vcs) if size_bytes <= 4096 or noc == 1 else 10


def test_a_drop_at_four_transactions_is_shown_where_there_is_one():
    rows = [row for row in orders(falling, rising) if row["vcs"] == 4]
    finding = only({"orders": rows}, "all_to_all_drop_at_four")
    assert finding.shown
    assert finding.numbers == [
        "NoC 0: 26.7 B/cycle at 4 KiB, 10 B/cycle beyond in the mean (-62.6%); the largest drop is "
        "from 26.7 B/cycle at 4 KiB to 10 B/cycle at 8 KiB",
        "NoC 1: 26.7 B/cycle at 4 KiB, 28.7 B/cycle beyond in the mean (+7.3%); no larger size is "
        "slower than a smaller one",
    ]
    rows = [row for row in orders(rising, rising) if row["vcs"] == 4]
    assert only({"orders": rows}, "all_to_all_drop_at_four").verdict == "refuted"
    small = [row for row in rows if row["size_bytes"] <= 4096]
    assert only({"orders": small}, "all_to_all_drop_at_four").verdict == "not tested"


def dipping_below(noc, size_bytes, vcs):
    return rising(noc, size_bytes, vcs) * (0.6 if size_bytes == 1024 else 1)


def test_a_drop_below_the_published_size_is_not_the_published_drop():
    rows = [row for row in orders(dipping_below, rising) if row["vcs"] == 4]
    assert only({"orders": rows}, "all_to_all_drop_at_four").verdict == "refuted"


def falling_on_the_other_noc(noc, size_bytes, vcs):
    return falling(1 - noc, size_bytes, vcs)


def test_a_drop_on_the_other_noc_is_not_the_published_drop():
    rows = [row for row in orders(falling_on_the_other_noc, rising) if row["vcs"] == 4]
    assert only({"orders": rows}, "all_to_all_drop_at_four").verdict == "refuted"


def test_a_single_master_without_a_drop_refutes_it_and_leaves_nothing_to_cure():
    rows = [{**row, "pattern": "one_to_all"} for row in orders(rising, rising) if row["vcs"] == 4]
    drop = only({"orders": rows}, "one_to_all_drop_at_four")
    assert (drop.verdict, "nobody to queue behind" in drop.reason) == ("refuted", True)
    assert only({"orders": rows}, "one_to_all_cure_noc_1").verdict == "not tested"


@pytest.mark.parametrize(
    ("plain", "turned", "verdict"),
    [(falling, rising, "shown"), (falling, falling, "refuted"), (rising, rising, "not tested")],
)
def test_the_order_cures_a_drop_that_there_was(plain, turned, verdict):
    rows = [row for row in orders(plain, turned) if row["vcs"] == 4]
    assert only({"orders": rows}, "all_to_all_cure_noc_0").verdict == verdict
    assert only({"orders": rows}, "all_to_all_cure_noc_1").verdict == "not tested"


def test_points_that_cannot_decide_are_said_to_test_nothing():
    short = [row for row in bandwidths("all_to_all", rising) if row["size_bytes"] == 64]
    loss = only({"patterns": short}, "all_to_all_loss")
    assert (loss.verdict, "480 bytes" in loss.reason) == ("not tested", True)
    assert only({"patterns": short}, "all_to_all_irregular").verdict == "not tested"
    one_vc = [row for row in bandwidths("one_to_one", rising) if row["vcs"] == 1]
    assert only({"patterns": one_vc}, "one_to_one").verdict == "not tested"
    # One transaction per destination is on one VC, however many are allowed.
    single = bandwidths("one_to_one", rising, per_destination=1)
    assert only({"patterns": single}, "one_to_one").verdict == "not tested"


@pytest.mark.parametrize(("rate", "shown"), [(10.4, True), (10.6, False), (9.4, False)])
def test_reduced_points_agree_when_more_transactions_say_the_same(rate, shown):
    rows = bandwidths("all_to_all", lambda *_: 10.0, per_destination=4, asked=256)
    more = bandwidths("all_to_all", lambda *_: rate, per_destination=16, asked=256)
    finding = only({"agreement": [*rows, *more]}, "reduced_points")
    assert finding.shown is shown
    assert "16 instead of 4 transactions" in finding.numbers[0]


def test_one_reduced_point_that_disagrees_is_enough():
    """In the median over all points -50 % beside +0 % would be hidden."""
    rows = bandwidths("all_to_all", lambda *_: 10.0, per_destination=4, asked=256)
    more = bandwidths("all_to_all", lambda *_: 10.0, per_destination=16, asked=256)
    more[0] = {**more[0], "bandwidth_bytes_per_cycle": 5.0}
    assert only({"agreement": [*rows, *more]}, "reduced_points").verdict == "refuted"


@pytest.mark.parametrize(
    ("other", "name", "own_rate", "verdict"),
    [
        ("dram", "dram_apart", 30.0, "shown"), ("dram", "dram_apart", 20.0, "refuted"),
        ("ethernet", "ethernet_together", 20.0, "shown"),
        ("ethernet", "ethernet_together", 30.0, "refuted"),
        ("debug", "debug_together", 19.0, "shown"), ("debug", "debug_together", 22.0, "refuted"),
    ],
)  # fmt: skip
def test_classes_have_a_vc_each_where_that_brings_something(other, name, own_rate, verdict):
    rows = [
        {
            "noc": noc, "other": other, "placement": placement, "bandwidth_bytes_per_cycle": rate,
            "l1_bandwidth_bytes_per_cycle": rate / 2, "other_bandwidth_bytes_per_cycle": rate / 2,
        }
        for noc in (0, 1)
        for placement, rate in (("data_vc", 20.0), ("own_vc", own_rate))
    ]  # fmt: skip
    assert only({"classes": rows}, name).verdict == verdict


def test_a_drop_of_points_with_fewer_transactions_is_none():
    rows = bandwidths("all_to_all", lambda noc, size_bytes, vcs: 16)
    low = bandwidths("all_to_all", lambda noc, size_bytes, vcs: 2, per_destination=1)
    rows += [{**row, "size_bytes": 4 * row["size_bytes"]} for row in low[-3:]]
    assert not only({"orders": rows}, "all_to_all_drop_at_four").shown


@pytest.mark.parametrize(("beside", "shown"), [(150, True), (149, False), (90, False)])
def test_an_own_vc_is_worth_it_when_messages_wait_half_as_long_again(beside, shown):
    rows = [
        {"noc": 0, "message": message, "placement": placement, "latency_median_cycles": cycles}
        for message in ("atomic", "inline_write")
        for placement, cycles in (("alone", 80), ("own_vc", 100), ("data_vc", 400))
    ]
    rows[-1]["latency_median_cycles"] = beside
    finding = only({"flow_control": rows}, "own_vc")
    assert finding.shown is shown
    assert finding.numbers[0] == (
        "atomic, NoC 0: 100 cycles on its own VC, 400 on the data's, 80 without data"
    )


def throttled(accepted_of):
    return [
        {
            "noc": noc, "vcs": 1, "offered_bytes_per_cycle": offered,
            "bandwidth_bytes_per_cycle": accepted_of(offered), "latency_median_cycles": 100,
        }
        for noc, offered in product((0, 1), (1.0, 2.0, 4.0, 8.0))
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("accepted_of", "shown", "words"),
    [
        (
            lambda offered: min(offered, 3),
            True,
            "behind from 4 B/cycle per core on (12% of a link)",
        ),
        (lambda offered: offered, False, "behind never"),
        (lambda offered: offered / 2, False, "behind from 1 B/cycle"),
    ],
)
def test_an_onset_lies_between_keeping_up_and_falling_behind(accepted_of, shown, words):
    finding = only({"throttle": throttled(accepted_of)}, "onset")
    assert finding.shown is shown
    assert words in finding.numbers[0]


@pytest.mark.parametrize(
    ("rates", "shown"),
    [
        ([30, 30, 28, 1.9], True),
        ([30, 30, 28, 10], False),  # three leave too much
        ([30, 30, 15, 1.9], False),  # two already hurt
    ],
)
def test_three_stalled_vcs_starve_and_two_do_not(rates, shown):
    rows = [
        {"stalled": k, "bandwidth_bytes_per_cycle": rate, "rows": 8} for k, rate in enumerate(rates)
    ]
    finding = only({"stalled_vcs": rows}, "stalled_vcs")
    assert finding.shown is shown
    assert f"3 stalled, each down to 1/64 of a link: {rates[3] / 30:.1%} of" in finding.numbers[-1]
    assert "45 of the 48 flits" in finding.reason


def test_what_was_not_measured_is_not_judged():
    assert findings({}, WORMHOLE) == []
    assert findings({"patterns": [], "stalled_vcs": []}, WORMHOLE) == []
    names = [f.name for f in findings({"patterns": bandwidths("all_to_all", rising)}, WORMHOLE)]
    assert names == ["all_to_all_loss", "all_to_all_irregular"]
