# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
import json

import pytest

from inside.collectives import Row, bus_factor, measure
from report_example import example_report, example_run


@pytest.mark.parametrize(
    ("collective", "factor"),
    [("all_reduce", 1.75), ("all_gather", 0.875), ("reduce_scatter", 0.875),
     ("all_to_all", 0.875), ("broadcast", 1.0), ("reduce", 1.0),
     ("gather", 0.875), ("scatter", 0.875), ("all_to_all_v", 0.875), ("send_recv", 1.0),
     ("barrier", 0.0)],
)  # fmt: skip
def test_bus_factor_of_eight_ranks_is_that_of_nccl_tests(collective, factor):
    assert bus_factor(collective, 8) == factor


def test_bus_factor_names_what_is_allowed():
    with pytest.raises(ValueError, match="'butterfly'; allowed are all_reduce, .*, barrier$"):
        bus_factor("butterfly", 8)
    with pytest.raises(ValueError, match="ranks is 0; it must be at least 1"):
        bus_factor("all_reduce", 0)


def test_bandwidths_follow_from_size_and_time():
    # 67,108,864 B / 200 us = 335.54432 GB/s; times 2 * 7 / 8.
    measurement = measure(200.0, 67_108_864, "all_reduce", 8, 0)
    assert measurement.algbw_gb_per_s == pytest.approx(335.54432)
    assert measurement.busbw_gb_per_s == pytest.approx(587.20256)


def test_measure_refuses_a_time_of_zero():
    with pytest.raises(ValueError, match="time_us is 0; it must be above 0"):
        measure(0, 8, "reduce", 2, None)


def test_mean_bus_bandwidth_counts_every_measurement_once():
    run = example_run("ring", "Simple", 1.0, 1.0, ranks=2, blocks=1, sizes=0)
    ten, thirty = measure(1.0, 10_000, "reduce", 2, 3), measure(1.0, 30_000, "reduce", 2, None)
    assert run.busbw_mean_gb_per_s is None
    assert run.wrong is None
    run.rows.extend([Row(10_000, 2500, ten, None), Row(30_000, 7500, ten, thirty)])
    assert run.busbw_mean_gb_per_s == pytest.approx((10 + 10 + 30) / 3)
    assert run.wrong == 6


def test_json_holds_the_rows_and_leaves_out_what_has_its_own_file():
    report = json.loads(example_report(sizes=2).to_json())
    run = report["runs"][0]
    assert report["command"].startswith("towpath run all_reduce")
    assert [row["size_bytes"] for row in run["rows"]] == [8, 16]
    assert run["rows"][0]["out_of_place"]["wrong"] == 0
    assert run["links"][0]["kind"] == "nvlink"
    assert "timeline" not in run
    assert "topology_svg" not in run
