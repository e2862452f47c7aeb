# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Spoilt files of operators either are read or end in one sentence."""

import gzip
import json
import pickle
import random

import pytest

from inside.operators import diagnose
from job_traces import chakra_json, chakra_protobuf, kineto
from mutate import check_mutants
from operator_logs import (
    RAS,
    InfoLog,
    dump,
    entry,
    inspector,
    lstopo,
    nccl_tests,
    ras_json,
    showtopo,
    watchdog,
)
from towpath import ConfigError

TIMES = {1 << 20: 30.0, 1 << 24: 150.0, 1 << 27: 700.0}
ENTRIES = [entry(n, state="completed" if n < 3 else "started") for n in range(4)]
TOPOLOGY = """\
        GPU0    GPU1    NIC0    CPU Affinity
GPU0     X      NV12    PXB     0-31
GPU1    NV12     X      SYS     32-63
NIC0    PXB     SYS      X

  NIC0: mlx5_0
"""
SYSTEM = """\
<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" modelid="143">
    <pci busid="0001:00:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="90"><nvlink target="0002:00:00.0" count="18" tclass="0x030200"/></gpu>
    </pci>
    <pci busid="0002:00:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="1" sm="90"><nvlink target="0001:00:00.0" count="18" tclass="0x030200"/></gpu>
    </pci>
    <pci busid="0101:00:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
      <nic><net name="mlx5_0" dev="0" speed="400000" port="1"/></nic>
    </pci>
  </cpu>
</system>
"""
IBSTATUS = """\
Infiniband device 'mlx5_0' port 1 status:
\tstate:\t\t 4: ACTIVE
\trate:\t\t 400 Gb/sec (4X NDR)
\tlink_layer:\t InfiniBand

Infiniband device 'mlx5_1' port 1 status:
\tstate:\t\t 1: DOWN
\trate:\t\t 200 Gb/sec (4X HDR)
\tlink_layer:\t InfiniBand

"""
RDMA = """\
link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 13399 sm_lid 1 lmc 0 state ACTIVE
2/2: mlx5_1/2: state DOWN physical_state DISABLED netdev eth2
"""
CHIPS = """\
arch: {0: Wormhole, 1: Wormhole}
chips: {0: [0, 0, 0, 0], 1: [1, 0, 0, 0]}
ethernet_connections: [[{chip: 0, chan: 8}, {chip: 1, chan: 0}]]
chips_with_mmio: [{0: 0}]
boards: [[{board_id: 1}, {board_type: n300}, {chips: [0, 1]}]]
harvesting:
  0: {noc_translation: true, harvest_mask: 65}
  1: {noc_translation: true, harvest_mask: 5}
"""
FORMATS = {
    "nccl_tests": nccl_tests("all_reduce", TIMES, 1, 4, "a GPU without a machine"),
    "rccl_tests": nccl_tests(
        "all_gather", TIMES, 1, 8, "AMD Instinct, unknown", prefix="[1,0]<stdout>:"
    ).replace("#", ""),
    "nccl_info": InfoLog(2, gpus=2).text(),
    "inspector": inspector(3, 3, random.Random(1)),
    "ras_text": RAS,
    "ras_json": ras_json({0: 5, 1: 5}),
    "watchdog": watchdog(3, 12, 9),
    "flight_recorder": json.dumps({"rank": 3} | pickle.loads(dump(2, ENTRIES)), indent=1),
    "topology": TOPOLOGY,
    "topology_xml": SYSTEM,
    "lstopo": lstopo(model="NVIDIA H100 80GB HBM3"),
    "showtopo": showtopo(),
    "ibstatus": IBSTATUS,
    "rdma_link": RDMA,
    "cluster_descriptor": CHIPS,
    "collect_env": "PyTorch version: 2.9\nGPU 0: NVIDIA H100 80GB HBM3\n" + TOPOLOGY,
}
STEP = [("", 0.0, 1000.0, 0), ("all_gather", 100.0, 400.0, 1 << 26),
        ("all_reduce", 800.0, 400.0, 1 << 26)]  # fmt: skip
NODES = [(1, "", 100, 0, ()), (2, "all_reduce", 0, 1 << 24, (1,)), (3, "", 50, 0, (1, 2))]
JOBS = {
    "kineto": json.dumps(kineto(STEP, 8), indent=1),
    "chakra": json.dumps(chakra_json(NODES), indent=1),
    "chakra_protobuf": chakra_protobuf(NODES),
    "packed": gzip.compress(json.dumps(kineto(STEP, 8)).encode(), mtime=0),
}


def check(name, seeds, folder):
    path = folder / f"{name}.txt"
    content = (FORMATS | JOBS)[name]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    reader = "operator_files:load_job" if name in JOBS else "operator_files:load"
    # Text before the first line of a table and unknown lines are skipped, so most mutants load.
    check_mutants(reader, [path], seeds, folder, seconds_max=4, place="(?::[0-9]+)?")


@pytest.mark.parametrize("name", [*FORMATS, *JOBS])
def test_50_spoilt_files_of_each_format(tmp_path, name):
    check(name, range(50), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("part", range(1, 6))
@pytest.mark.parametrize("name", [*FORMATS, *JOBS])
def test_20_000_spoilt_files_of_each_format(tmp_path, name, part):
    check(name, range(4000 * part, 4000 * (part + 1)), tmp_path)


def spoilt(content, chance, planted):
    """A pickle with changed, missing and added bytes, or with a part that would run a command."""
    data = bytearray(content)
    for _ in range(chance.randrange(1, 6)):
        place = chance.randrange(len(data))
        kind = chance.randrange(4)
        if kind == 0:
            data[place] = chance.randrange(256)
        elif kind == 1:
            del data[place : place + chance.randrange(1, 30)]
        elif kind == 2:
            data[place:place] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 9)))
        else:
            parts = [planted, b"\x93", b"R", b"b", b"\x81", b"i", b"\x82\x01", b"."]
            data[place:place] = chance.choice(parts)
    return bytes(data)


def planted(path):
    """A part of a pickle that makes a folder when it is read."""
    return f"cos\nmkdir\n(V{path}\ntR.".encode()


def check_pickles(seeds, folder):
    made = folder / "made"
    pickle.loads(b"\x80\x02" + planted(made))
    assert made.is_dir(), "the planted part would not run"
    made.rmdir()
    original = dump(2, [entry(n) for n in range(4)])
    counts = {"read": 0, "refused": 0}
    path = folder / "trace_rank_0"
    for seed in seeds:
        path.write_bytes(spoilt(original, random.Random(seed), planted(made)))
        try:
            diagnose([path])
            counts["read"] += 1
        except ConfigError as error:
            assert "\n" not in str(error) and len(str(error)) < 2000, (seed, str(error))
            counts["refused"] += 1
        assert not made.exists(), seed
    assert all(counts.values()), counts


def test_200_spoilt_pickles(tmp_path):
    check_pickles(range(200), tmp_path)


@pytest.mark.long
def test_20_000_spoilt_pickles(tmp_path):
    check_pickles(range(1000, 21_000), tmp_path)
