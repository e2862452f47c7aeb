# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of tables measured on the fabric: what answers them, and what cannot be."""

import pytest

from inside import _core
from inside.machines import catalogue
from inside.validation import CannotSimulate, Context, chip_systems, validate_table
from inside.validation import fabric as validate_fabric
from towpath import ConfigError

NEIGHBOURS, LINE, STREAMS, COLLECTIVES = validate_fabric.FABRIC_KINDS


def line_row(**changes):
    row = {
        "system": "T3000", "topology": "linear", "line_size": "3", "hops_counted": "4",
        "message_bytes": "1024", "fused_payload_with_sync": "False", "mean_ns": "1000",
    }  # fmt: skip
    return row | changes


def neighbour_row(**changes):
    row = {
        "system": "t3k_8", "ntype": "NOC_UNICAST_WRITE", "topology": "Linear",
        "payload_bytes": "16", "per_hop_avg_ns": "789",
    }  # fmt: skip
    return row | changes


def stream_row(**changes):
    row = {
        "system": "p150_x4", "test_name": "NeighborExchangeUnicast", "ntype": "NOC_UNICAST_WRITE",
        "packet_size": "2048", "max_packet_size": "4352", "bandwidth_gb_per_s": "16.6",
    }  # fmt: skip
    return row | changes


def collective_row(**changes):
    row = {
        "arch": "wormhole_b0", "topology": "ring", "mode": "single", "op": "all_gather",
        "n_devices": "8", "links_per_direction": "1", "size_bytes": "16384", "time_us": "30",
    }  # fmt: skip
    return row | changes


def predicted(kind, row, machine=None):
    return kind.predict(row, Context(machine)).value


@pytest.mark.parametrize("row", [neighbour_row(), line_row(), stream_row(), collective_row()])
def test_a_table_that_lacks_a_column_is_none_of_the_known(tmp_path, row):
    path = tmp_path / "table.csv"
    for column in row:
        rest = {name: value for name, value in row.items() if name != column}
        path.write_text(f"{','.join(rest)}\n{','.join(rest.values())}\n")
        with pytest.raises(ConfigError, match="its columns fit no known table"):
            validate_table(path)
    path.write_text(f"{','.join(row)}\n{','.join(row.values())}\n")
    assert validate_table(path).rows[0]["predicted"] > 0


def test_every_field_that_a_prediction_reads_is_a_column_of_its_table():
    for kind, row in (
        (NEIGHBOURS, neighbour_row()),
        (LINE, line_row()),
        (STREAMS, stream_row()),
        (COLLECTIVES, collective_row()),
    ):
        assert predicted(kind, {column: row[column] for column in kind.columns}) > 0


@pytest.mark.parametrize(
    ("kind", "row", "problem"),
    [
        (LINE, line_row(fused_payload_with_sync="yes"), "is 'yes'; choose one of True, False"),
        (LINE, line_row(hops_counted="3"), "hops_counted is 3; it must be even"),
        (LINE, line_row(hops_counted="6"), "at most 4 on a line of 3"),
        (LINE, line_row(topology="ring", line_size="8", hops_counted="10"), "at most 8 on a ring"),
        (LINE, line_row(system="n150"), "use a name like t3k_8"),
        (NEIGHBOURS, neighbour_row(ntype="NOC_READ"), "ntype is 'NOC_READ'; choose one of NOC_UNI"),
        (STREAMS, stream_row(test_name="HalfRing"), "test_name is 'HalfRing'; choose one of Neigh"),
        (STREAMS, stream_row(ntype="NOC_READ"), "choose one of NOC_UNICAST_WRITE"),
        (STREAMS, stream_row(packet_size="4356"), "packet_size is 4356; a slot has max_packet"),
        (
            STREAMS,
            stream_row(system="n300", test_name="FullRingUnicast"),
            "goes round a ring; n300 has 2 chips in a line",
        ),
        (NEIGHBOURS, neighbour_row(system="p150_x1"), "has 1 chips; 2 to 64 are simulated"),
        (COLLECTIVES, collective_row(topology="star"), "topology is 'star'; it must be"),
        (COLLECTIVES, collective_row(mode="fast"), "mode is 'fast'; choose single"),
        (COLLECTIVES, collective_row(arch="grayskull"), "arch is 'grayskull'; choose worm"),
        (COLLECTIVES, collective_row(n_devices="65"), "it must be a whole number from 2 to 64"),
        (
            COLLECTIVES,
            collective_row(links_per_direction="5"),
            "it must be a whole number from 1 to 4",
        ),
        (
            COLLECTIVES,
            collective_row(arch="blackhole", topology="mesh", links_per_direction="4"),
            "a mesh of 8 blackholes has 4 links in each direction; its chips have channels for 3",
        ),
        (
            COLLECTIVES,
            collective_row(system="p150_x8"),
            "system is 'p150_x8', whose chips are blackholes",
        ),
        (COLLECTIVES, collective_row(op="broadcast"), "is 'broadcast'; choose one of all_gather"),
    ],
)
def test_what_is_not_simulated_says_why(kind, row, problem):
    with pytest.raises(CannotSimulate, match=problem):
        predicted(kind, row)


def test_a_payload_that_comes_with_its_sync_word_takes_another_time():
    fused = line_row(fused_payload_with_sync="True")
    assert predicted(LINE, fused) != predicted(LINE, line_row())


def test_rows_of_blackholes_are_simulated_on_the_machine_that_is_named():
    row = collective_row(arch="blackhole", topology="line", links_per_direction="2")
    ours, other = (predicted(COLLECTIVES, row, name) for name in (None, "t3000"))
    assert ours == predicted(COLLECTIVES, row, "blackhole-line")
    assert other > 1.2 * ours


def test_routers_that_forward_have_one_channel_more_to_look_at():
    alone, forwarding = (
        predicted(STREAMS, stream_row(test_name=name))
        for name in ("NeighborExchangeUnicast", "NeighborExchangeLinear")
    )
    assert 0.8 * alone < forwarding < 0.97 * alone


def test_a_blackholes_rate_of_packets_does_not_depend_on_their_size():
    small, large = (predicted(STREAMS, stream_row(packet_size=size)) for size in ("2048", "4096"))
    assert large == pytest.approx(2 * small, rel=0.025)


@pytest.mark.slow
def test_what_is_in_a_ring_goes_before_what_enters():
    """With turns for both, packets of 4 KiB would move slower than those of 2 KiB, by bubbles."""
    small, large = (
        predicted(
            STREAMS,
            stream_row(system="t3k_8", test_name="FullRingUnicast", packet_size=size),
        )
        for size in ("2048", "4096")
    )
    assert large > 1.8 * small


# --- systems --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "form", "chip", "sides", "links"),
    [
        ("t3k_8", "line", "wormhole", (8, 1), 1),
        ("T3000", "mesh", "wormhole", (4, 2), 1),
        ("n300", "ring", "wormhole", (2, 1), 1),
        ("wh_galaxy_32", "torus", "wormhole", (8, 4), 4),
        ("galaxy", "mesh", "wormhole", (8, 4), 4),
        ("bh_galaxy_32", "mesh", "blackhole", (8, 4), 2),
        ("p150_x8", "ring", "blackhole", (8, 1), 2),
        ("p150_x4", "mesh", "blackhole", (2, 2), 2),
        ("p300_x2", "line", "blackhole", (4, 1), 2),
        ("bh_galaxy_4x2", "torus", "blackhole", (4, 2), 2),
    ],
)
def test_a_system_is_built_from_its_name(name, form, chip, sides, links):
    system = chip_systems.named_system({"system": name}, form)
    assert (system.chip, (system.columns, system.rows), system.links) == (chip, sides, links)
    shape = system.shape()
    assert len(shape.chips) == system.chips
    assert _core.fabric_planes(system.cluster(), shape) == links


def test_cards_run_at_the_full_rate_and_galaxies_at_half_of_it():
    rates = [
        chip_systems.named_system({"system": name}, "line").link_gb_per_s
        for name in ("p150_x4", "bh_galaxy_32", "t3k_8")
    ]
    assert rates == [50, 25, 12.5]


@pytest.mark.parametrize("topology", ["ring", "Line", "linear", "mesh", "torus"])
@pytest.mark.parametrize("op", ["all_gather", "reduce-scatter", "all_reduce", "all_to_all"])
@pytest.mark.parametrize(("arch", "links"), [("wormhole_b0", 1), ("blackhole", 2)])
def test_collectives_are_simulated_in_every_form(topology, op, arch, links):
    row = collective_row(
        topology=topology, op=op, arch=arch, links_per_direction=str(links), n_devices="4"
    )
    assert predicted(COLLECTIVES, row) > 0


@pytest.mark.parametrize(("devices", "links"), [(2, 1), (2, 4), (3, 2), (16, 3)])
def test_collectives_are_simulated_on_any_number_of_chips_and_links(devices, links):
    row = collective_row(n_devices=str(devices), links_per_direction=str(links))
    assert predicted(COLLECTIVES, row) > 0


def test_a_ring_of_two_is_a_line():
    ring, line = (
        predicted(COLLECTIVES, collective_row(n_devices="2", topology=form))
        for form in ("ring", "line")
    )
    assert ring == line


@pytest.mark.parametrize(
    ("form", "size_bytes", "algorithm"),
    [
        ("ring", 512 << 10, "all_pairs_reduce_scatter"),
        ("ring", (512 << 10) + 4, "half_ring_reduce_scatter"),
        ("line", 1 << 10, "line_reduce_scatter"),
    ],
)
def test_sums_go_the_way_of_tt_metal(form, size_bytes, algorithm):
    system = chip_systems.system_of("wormhole", form, 8, 1)
    call = validate_fabric.ChipCall(system, "reduce_scatter", size_bytes)
    assert call.algorithm() == algorithm


@pytest.mark.parametrize(
    ("form", "op", "link_bytes"),
    [
        ("line", "all_gather", 875), ("ring", "all_gather", 437.5), ("line", "all_to_all", 2000),
        ("ring", "all_to_all", 1000),
    ],
)  # fmt: skip
def test_the_busiest_link_of_a_call(form, op, link_bytes):
    system = chip_systems.system_of("blackhole", form, 8, 2)
    assert validate_fabric.ChipCall(system, op, 1000).link_bytes() == link_bytes


@pytest.mark.parametrize(
    ("form", "chips", "link_bytes"),
    [("mesh", 4, 375), ("torus", 4, 375), ("mesh", 8, 437.5), ("torus", 32, 242.1875)],
)
def test_a_chip_of_a_mesh_takes_in_over_all_its_links(form, chips, link_bytes):
    system = chip_systems.system_of("blackhole", form, chips, 2)
    assert validate_fabric.ChipCall(system, "all_gather", 1000).link_bytes() == link_bytes


def test_what_is_scaled_is_not_faster_than_the_line(monkeypatch):
    monkeypatch.setattr(validate_fabric, "_LINK_BYTES_MAX", 4 << 20)
    row = collective_row(n_devices="2", size_bytes=str(1 << 32))
    prediction = COLLECTIVES.predict(row, Context())
    assert prediction.details["scaled_from"] == {"size_bytes": 4 << 20}
    # Packets of 6 KiB have a header of 48 B and five frames of 50 B more.
    assert prediction.value >= (1 << 31) / (12.5e3 * 6144 / (6144 + 48 + 250))


def test_calls_of_a_series_count_alike():
    single, series = (
        predicted(COLLECTIVES, collective_row(mode=mode)) for mode in ("single", "back-to-back")
    )
    assert series == pytest.approx(single, rel=0.05)


@pytest.mark.parametrize(
    ("chip", "form", "chips", "size_bytes", "algorithm"),
    [
        ("wormhole", "line", 2, 1 << 30, "multicast_all_gather"),
        ("wormhole", "line", 4, 1 << 30, "multicast_all_gather"),
        ("wormhole", "ring", 8, 1 << 19, "multicast_all_gather"),
        ("wormhole", "ring", 8, 1 << 20, "ring_all_gather"),
        ("wormhole", "ring", 4, 1 << 19, "ring_all_gather"),
        ("blackhole", "line", 8, 1 << 20, "multicast_all_gather"),
        ("blackhole", "line", 8, 1 << 21, "line_all_gather"),
        ("wormhole", "mesh", 8, 1 << 14, "grid_all_gather"),
    ],
)
def test_all_gather_goes_to_all_at_once_where_tt_metals_does(
    chip, form, chips, size_bytes, algorithm
):
    links = 2 if chip == "blackhole" else 1
    system = chip_systems.system_of(chip, form, chips, links)
    assert validate_fabric.ChipCall(system, "all_gather", size_bytes).algorithm() == algorithm


@pytest.mark.parametrize(
    # Three pages of 2 KiB fit 7,616 B; of the seven that fit 15,232 B, a write has four.
    ("machine", "size_bytes"), [("t3000", 6144), ("blackhole-line", 8192)],
)  # fmt: skip
def test_packets_of_collectives_are_those_of_tt_metals_benchmark(machine, size_bytes):
    cluster = catalogue.load_chip_cluster(machine).build()
    assert validate_fabric._payload_bytes_of(cluster) == size_bytes
