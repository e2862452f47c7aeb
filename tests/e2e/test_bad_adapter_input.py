# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Spoilt output of ibstatus and rdma link either is read or ends in one sentence with its line."""

import random

import pytest

from inside.machines import catalogue, combinations, with_settings
from mutate import check_mutants
from towpath import ConfigError

IBSTATUS = """\
Infiniband device 'mlx5_0' port 1 status:
\tdefault gid:\t fe80:0000:0000:0000:0000:0000:0000:0001
\tbase lid:\t 0x1
\tstate:\t\t 4: ACTIVE
\tphys state:\t 5: LinkUp
\trate:\t\t 400 Gb/sec (4X NDR)
\tlink_layer:\t InfiniBand

Infiniband device 'mlx5_1' port 1 status:
\tstate:\t\t 4: ACTIVE
\trate:\t\t 200 Gb/sec (4X HDR)
\tlink_layer:\t Ethernet

"""
RDMA = """\
link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 13399 sm_lid 1 lmc 0 state ACTIVE
link mlx5_1/1 state ACTIVE physical_state LINK_UP netdev eth1
2/2: mlx5_1/2: state DOWN physical_state DISABLED netdev eth2
"""


def check(seeds, folder):
    (folder / "ibstatus.txt").write_text(IBSTATUS)
    (folder / "rdma.txt").write_text(RDMA)
    originals = [folder / "ibstatus.txt", folder / "rdma.txt"]
    check_mutants("adapter_host:load", originals, seeds, folder, seconds_max=2)


def test_200_spoilt_adapter_states(tmp_path):
    check(range(200), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("part", range(1, 11))
def test_40_000_spoilt_adapter_states(tmp_path, part):
    check(range(4000 * part, 4000 * (part + 1)), tmp_path)


PIECES = (
    "link_types", "nvlink", "rate_gb_per_s", "gpu_cost", "simple", "fences", "fabric", "shape",
    "hosts", "count", "value", "source", "name", ".", "..", "=", "=", ",", "-1", "1e9", "nan",
    "[1", "{a: b}", "leaf_spine", "true", "", " ", "\x00", "\u2028", "&x", "*x", "!!", "'", "0x10",
)  # fmt: skip


def check_settings(seeds):
    spec = catalogue.load("dgx-h100")
    counts = {"set": 0, "refused": 0}
    for seed in seeds:
        draw = random.Random(seed)
        if draw.random() < 0.3:
            path = draw.choice(["gpu_cost.launch_ns", "fabric.hash_seed", "link_types.pcie.kind"])
            setting = f"{path}={draw.choice(PIECES)}"
        else:
            setting = "".join(draw.choice(PIECES) for _ in range(draw.randrange(1, 8)))
        try:
            for each in combinations([setting]):
                with_settings(spec, each)
            counts["set"] += 1
        except ConfigError as error:
            assert str(error).isprintable() and len(str(error)) < 600, (seed, str(error))
            counts["refused"] += 1
    assert all(counts.values()), counts


def test_500_spoilt_settings():
    check_settings(range(500))


@pytest.mark.long
def test_20_000_spoilt_settings():
    check_settings(range(20_000))
