# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of tables measured on links between chips: what answers them, and what cannot be."""

import pytest

from inside.validation import CannotSimulate, Context, half_of, validate_table
from inside.validation import ethernet as validate_ethernet
from towpath import ConfigError

LINKS, FIGURES = validate_ethernet.ETHERNET_KINDS
LINK_COLUMNS = "source,arch,test,direction,metric,unit,packet_bytes,value,tolerance"
FIGURE_COLUMNS = "figure,arch,series,x_name,x,y_name,y,precision"


def link_row(**changes):
    row = {
        "source": "", "arch": "wormhole_b0", "test": "erisc", "direction": "uni",
        "metric": "bandwidth", "unit": "GB/s", "packet_bytes": "8192", "value": "12",
        "tolerance": "",
    }  # fmt: skip
    return row | changes


def figure_row(figure, series, x="16", y="1", arch="wormhole_b0"):
    return {"figure": figure, "arch": arch, "series": series, "x": x, "y": y}


def link(**changes):
    return LINKS.predict(link_row(**changes), Context()).value


def figure(*fields, **changes):
    return FIGURES.predict(figure_row(*fields, **changes), Context())


def problem(predict, row):
    with pytest.raises(CannotSimulate) as refused:
        predict(row, Context())
    return str(refused.value)


# --- tests of a link ------------------------------------------------------------------------------


def test_large_messages_go_at_the_rate_of_the_line_of_each_chip():
    assert 11.5 < link() < 12.5
    assert 23 < link(arch="blackhole") < 25


@pytest.mark.parametrize("size_bytes", [1024, 2048, 4096, 8192])
def test_a_full_line_carries_what_framing_leaves(size_bytes):
    message_bytes = size_bytes + 16  # with its sync word
    on_line = message_bytes + 50 * -(-message_bytes // 1500)
    of_line = link(packet_bytes=str(size_bytes)) / 12.5
    assert of_line == pytest.approx(size_bytes / on_line, rel=0.015)


@pytest.mark.parametrize("test", ["erisc", "erisc_write_worker"])
@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])
def test_both_ends_of_a_link_send_at_once(arch, test):
    ways = [
        link(arch=arch, test=test, direction=direction, packet_bytes="512")
        for direction in ("uni", "bi")
    ]
    assert 0.4 * ways[0] < ways[1] < ways[0]


def test_small_messages_take_eighty_nanoseconds_in_both_directions():
    # tt-metal, test_all_ethernet_links_bandwidth, which is not fitted to.
    assert 512 / link(direction="bi", packet_bytes="512") == pytest.approx(80, rel=0.12)


def test_as_many_slots_as_fit_for_both_directions():
    assert 10 < link(direction="bi", packet_bytes="8192") < 12.5


def test_a_latency_is_one_message_there_and_back_in_full():
    assert link(metric="sender_latency", packet_bytes="16") > 2 * 364.5
    slower = link(metric="sender_latency", packet_bytes="16", test="erisc_write_worker")
    assert slower > link(metric="sender_latency", packet_bytes="16")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"arch": "grayskull"}, "arch is 'grayskull'; choose one of wormhole_b0, blackhole"),
        ({"direction": "up"}, "direction is 'up'; choose one of uni, bi, bidir, both"),
        (
            {"direction": "bi", "packet_bytes": "65536"},
            "two slots of 65536 bytes each way do not fit into L1",
        ),
        ({"metric": "jitter"}, "metric is 'jitter'; choose one of bandwidth, sender_latency"),
        ({"packet_bytes": "0"}, "packet_bytes is '0'; it must be a whole number from 1 to 65536"),
    ],
)
def test_a_row_of_a_link_that_cannot_be_run_says_why(changes, said):
    assert problem(LINKS.predict, link_row(**changes)) == said


def test_a_size_that_hardware_does_not_send_is_told_by_the_simulator():
    with pytest.raises(ValueError, match="multiples of 16"):
        link(packet_bytes="24")


def test_a_curve_of_a_link_is_in_one_half_as_a_whole():
    halves = {half_of(LINKS, link_row(packet_bytes=size)) for size in ("16", "128", "8192")}
    assert len(halves) == 1


# --- figures of the guide -------------------------------------------------------------------------


def test_the_best_number_of_channels_is_told():
    prediction = figure("ubench1", "bidirectional best channel count", x="32768")
    assert prediction.details["channels"] in (1, 2)  # more do not fit
    assert 17 < prediction.value < 25


def test_more_channels_carry_more():
    one = figure("ubench2", "512B 1ch", x="plateau").value
    assert figure("ubench2", "512B 4ch", x="plateau").value > 2 * one


def test_more_hops_and_more_packets_take_longer():
    one = figure("ubench3", "8 hops 1 channel (mode)").value
    assert figure("ubench3", "12 hops 1 channel (mode)").value == pytest.approx(1.5 * one, rel=0.05)
    assert figure("ubench3", "8 hops 8 channels (mode)").value > one


def test_the_second_line_of_ubench4_is_the_first_without_bytes_on_links_and_noc():
    measured = figure("ubench4", "8-hop ring measured", x="1024").value
    less = figure("ubench4", "8-hop ring minus link serialisation", x="1024").value
    # The guide's plot has 6.761 and 5.86388 us.
    assert measured - less == pytest.approx(6.761 - 5.86388, abs=0.001)
    row = figure_row("ubench4", "8-hop ring plus something")
    assert problem(FIGURES.predict, row).startswith("series is '8-hop ring plus something'")


def test_one_hop_is_half_of_there_and_back_without_the_payload_on_the_line():
    full = figure("ubench5", "sender full send+receive", x="2048").value
    one_hop = figure("ubench5", "computed one hop time", x="2048").value
    assert one_hop == pytest.approx((full - 2048 / 12.5) / 2)
    assert figure("ubench5", "eth subsystem + link", x="2048").value < one_hop


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (figure_row("ubench9", ""), "figure is 'ubench9'; choose one of ubench1, ubench2, "),
        (figure_row("ubench2", "512B"), "series is '512B'; ubench2 does not have it"),
        (figure_row("ubench5", "gap"), "series is 'gap'; choose one of sender full send+receive, "),
        (
            figure_row("ubench1", "", x="65537"),
            "x is '65537'; it must be a whole number from 1 to 65536",
        ),
        (figure_row("ubench3", "", arch="blackhole"), "arch is 'blackhole'; choose one of worm"),
    ],
)
def test_a_row_of_a_figure_that_cannot_be_run_says_why(row, said):
    assert problem(FIGURES.predict, row).startswith(said)


def test_rows_are_grouped_by_curve():
    assert FIGURES.group(figure_row("ubench2", "512B 3ch")) == "ubench2 512B"
    assert FIGURES.group(figure_row("ubench3", "8 hops 1 channel (mode)")) == "ubench3"
    assert FIGURES.group(figure_row("ubench4", "8-hop ring measured")).startswith("ubench4 8-hop")


# --- through validate -----------------------------------------------------------------------------


def test_both_tables_are_known_by_their_columns(tmp_path):
    links = tmp_path / "links.csv"
    links.write_text(f"{LINK_COLUMNS}\ns,wormhole_b0,erisc,uni,bandwidth,GB/s,8192,12.07,t\n")
    figures = tmp_path / "figures.csv"
    figures.write_text(
        f"{FIGURE_COLUMNS}\nubench5,wormhole_b0,sender waiting for acks,payload_bytes,16,ns,785,p\n"
    )
    for path, kind in ((links, LINKS), (figures, FIGURES)):
        validation = validate_table(path, jobs=1)
        assert validation.kind == kind.name
        assert abs(validation.rows[0]["error_pct"]) < 2


def test_a_machine_that_is_no_cluster_of_chips_is_refused(tmp_path):
    path = tmp_path / "links.csv"
    path.write_text(f"{LINK_COLUMNS}\ns,wormhole_b0,erisc,uni,bandwidth,GB/s,8192,12.07,t\n")
    with pytest.raises(ConfigError):
        validate_table(path, "dgx-h100", jobs=1)
