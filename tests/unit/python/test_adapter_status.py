# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
import pytest

from conftest import refusal
from inside.machines import AdapterPort, is_status, merged, parse_status

IBSTATUS = """\
Infiniband device 'mlx5_eth4' port 1 status:
\tdefault gid:\t fe80:0000:0000:0000:0000:0000:0000:0001
\tbase lid:\t 0x0
\tstate:\t\t 4: ACTIVE
\tphys state:\t 5: LinkUp
\trate:\t\t 25 Gb/sec (1X EDR)
\tlink_layer:\t Ethernet

Infiniband device 'mlx5_ib0' port 1 status:
        rate:            400 Gb/sec (4X NDR)
        link_layer:      InfiniBand

"""
RDMA = """\
link mlx5_ib0/1 subnet_prefix fe80:0000:0000:0000 lid 13399 sm_lid 1 lmc 0 state ACTIVE \
physical_state LINK_UP
2/1: mlx5_eth4/1: state DOWN physical_state DISABLED netdev eth4
"""


def test_ibstatus_gives_rate_layer_and_state():
    assert is_status(IBSTATUS)
    assert parse_status(IBSTATUS, "f") == [
        AdapterPort("mlx5_eth4", 1, "Ethernet", True, 25.0, "25 Gb/sec (1X EDR)"),
        AdapterPort("mlx5_ib0", 1, "InfiniBand", None, 400.0, "400 Gb/sec (4X NDR)"),
    ]


def test_rdma_link_gives_layer_and_state():
    assert is_status(RDMA)
    assert parse_status(RDMA, "f") == [
        AdapterPort("mlx5_ib0", 1, "InfiniBand", True),
        AdapterPort("mlx5_eth4", 1, "Ethernet", False),
    ]


def test_texts_are_joined_and_a_port_is_up_only_if_all_say_so():
    ports = merged([*parse_status(IBSTATUS, "f"), *parse_status(RDMA, "g")])
    assert ports["mlx5_ib0"].is_up is True and ports["mlx5_ib0"].rate_gbit == 400
    assert ports["mlx5_eth4"].is_up is False and ports["mlx5_eth4"].rate_gbit == 25


def test_an_adapter_counts_with_its_best_port():
    down, up = AdapterPort("a", 1, None, False, 400.0), AdapterPort("a", 2, None, True, 100.0)
    assert merged([down, up]) == {"a": up}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("400 Gb/sec (4X NDR)", "fast", "f:10: rate: is 'fast'; it must be like '400 Gb/sec"),
        ("400 Gb/sec", "99999 Gb/sec", "f:10: rate: is '99999 Gb/sec (4X NDR)'"),
        ("rate:            400", "other: 400", "f:9: rate: is missing"),
        ("InfiniBand", "Token ring", "f:11: link_layer: is 'Token ring'; it must be InfiniBand"),
        ("4: ACTIVE", "4: FINE", "f:4: state: is 'FINE'; it must be one of NOP, DOWN"),
        ("mlx5_ib0", "mlx5_eth4", "f:9: names port 1 of 'mlx5_eth4' a second time"),
        ("Infiniband device", "device", "f:1: is not the output of ibstatus or rdma link"),
    ],
)
def test_a_wrong_status_is_refused_with_its_line(old, new, expected):
    assert IBSTATUS.replace(old, new) != IBSTATUS
    assert expected in refusal(lambda: parse_status(IBSTATUS.replace(old, new), "f"))


def test_a_link_without_state_is_refused():
    assert "f:1: state: is missing" in refusal(lambda: parse_status("link mlx5_0/1 lid 3", "f"))
