# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Files of operators in the forms that the programs print, with a planted fault if asked."""

from __future__ import annotations

import json
import pickle
import random

HEADINGS = """\
# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20
#
#                                                              out-of-place          in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time
"""
FACTORS = {
    "all_reduce": lambda n: 2 * (n - 1) / n, "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
}  # fmt: skip


def nccl_tests(
    collective: str, times_us: dict[int, float], hosts: int, gpus: int, gpu: str,
    *, prefix: str = "", wrong: int = 0,
) -> str:  # fmt: skip
    """A log of nccl-tests.

    Args:
        collective: name of the collective.
        times_us: time at each size in bytes.
        hosts: number of hosts.
        gpus: GPUs of a host.
        gpu: product name of the GPUs.
        prefix: text of a launcher before each line.
        wrong: number of wrong elements in the last row.
    """
    ranks = hosts * gpus
    lines = [f"mpirun -np {ranks} ./build/{collective}_perf -b 8 -e 1G -f 2", *HEADINGS.split("\n")]
    lines += [
        f"#  Rank {n:2} Group  0 Pid {1000 + n} on   node{n // gpus} device {n % gpus:2} "
        f"[0000:{n % gpus:02x}:00] {gpu}"
        for n in range(ranks)
    ]
    op = "none" if collective == "all_gather" else "sum"
    for size, time_us in times_us.items():
        algbw = size / time_us / 1e3
        busbw = algbw * FACTORS[collective](ranks)
        way = f"{time_us:8.2f} {algbw:7.2f} {busbw:7.2f}"
        bad = wrong if size == max(times_us) else 0
        lines.append(f"{size:12} {size // 4:13} float {op:>7} {-1:7} {way} {bad:6} {way} {bad:6}")
    lines.append(f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}")
    return "".join(f"{prefix}{line}\n" for line in lines)


class InfoLog:
    """A log of NCCL_DEBUG=INFO of hosts with 8 GPUs on NVSwitch and 8 adapters.

    Attributes are what a fault changes.
    """

    def __init__(self, hosts: int = 2, release: str = "2.28.9", gpus: int = 8) -> None:
        self.hosts, self.gpus = hosts, gpus
        self.releases = [release] * hosts
        self.network = "IB"
        self.gdr = True
        self.without_gdr: set[int] = set()
        self.adapters = [[f"mlx5_{n}" for n in range(gpus)] for _ in range(hosts)]
        self.variables: dict[str, str] = {}
        self.local = "P2P/CUMEM"
        self.path = "PIX"
        self.rail_of = {(host, gpu): gpu for host in range(hosts) for gpu in range(gpus)}
        self.pcie = [48.0] * gpus
        self.nvlink = [370.8] * gpus
        self.bridge = [48.0] * gpus
        self.warnings: list[str] = []
        self.prefix = ""

    def text(self) -> str:
        """The log."""
        lines: list[str] = []
        for host in range(self.hosts):
            lines += self._start(host)
        lines += self._system()
        lines += self._channels()
        lines += [f"node0:100:200 [0] NCCL WARN {each}" for each in self.warnings]
        return "".join(f"{self.prefix}{line}\n" for line in lines)

    def _say(self, host: int, gpu: int, text: str) -> str:
        return f"node{host}:{100 + gpu}:{200 + gpu} [{gpu}] NCCL INFO {text}"

    def _start(self, host: int) -> list[str]:
        adapters = " ".join(f"[{n}]{name}:1/IB" for n, name in enumerate(self.adapters[host]))
        say = lambda text: self._say(host, 0, text)  # noqa: E731
        lines = [
            say("Bootstrap: Using eth0:10.0.0.1<0>"),
            f"NCCL version {self.releases[host]}+cuda12.9",
            *(say(f"{name} set by environment to {value}.") for name, value in
              self.variables.items()),
            say("NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin."),
        ]  # fmt: skip
        if self.network == "IB":
            lines += [say(f"NET/IB : Using {adapters} [RO]; OOB eth0:10.0.0.1<0>")]
            state = "Enabled" if self.gdr else "Disabled"
            lines += [
                say(f"NET/IB : GPU Direct RDMA {state} for HCA {n} '{name}'")
                for n, name in enumerate(self.adapters[host])
            ]
        else:
            lines += [
                say("NET/IB : No device found."),
                say("NET/Socket : Using [0]eth0:10.0.0.1<0>"),
            ]
        ranks = self.hosts * self.gpus
        lines.append(say(f"Using network {self.network}"))
        lines += [
            self._say(host, gpu, f"comm 0x55d0 rank {host * self.gpus + gpu} nRanks {ranks} nNodes "
                      f"{self.hosts} localRanks {self.gpus} localRank {gpu} MNNVL 0")
            for gpu in range(self.gpus)
        ]  # fmt: skip
        return lines

    def _system(self) -> list[str]:
        lines = ["=== System : maxBw 48.0 totalBw 370.8 ===", "CPU/0-0 (1/1/2)"]
        for gpu in range(self.gpus):
            bus = f"0-{gpu + 1}b000"
            lines += [
                f"+ PCI[{self.bridge[gpu]:.1f}] - PCI/0-{gpu + 1}a000 (1000c0301000100b)",
                f"              + PCI[{self.pcie[gpu]:.1f}] - GPU/{bus} ({gpu})",
                f"                            + NVL[{self.nvlink[gpu]:.1f}] - NVS/0-0",
                f"              + PCI[48.0] - NIC/0-{gpu + 1}c000",
                f"                            + NET[50.0] - NET/0-{gpu} (0/0/50.000000)",
            ]
        lines.append("Pattern 4, crossNic 0, nChannels 8, bw 44.000000/44.000000, type NVL/"
                     f"{self.path}, sameChannels 0")  # fmt: skip
        return [self._say(0, 0, line) for line in lines]

    def _channels(self) -> list[str]:
        lines = []
        count = self.hosts * self.gpus
        for channel in range(self.gpus):
            order = [h * self.gpus + (channel + n) % self.gpus for h in range(self.hosts)
                     for n in range(self.gpus)]  # fmt: skip
            shown = " ".join(f"{rank:3}" for rank in order)
            lines.append(self._say(0, 0, f"Channel {channel:02}/{self.gpus:02} : {shown}"))
            for one, other in zip(order, order[1:] + order[:1], strict=True):
                lines += self._connection(channel, one, other)
        say = f"{self.gpus} coll channels, {self.gpus} collnet channels, 16 nvls channels, "
        lines.append(self._say(0, 0, f"{say}16 p2p channels, 2 p2p channels per peer"))
        assert count
        return lines

    def _connection(self, channel: int, one: int, other: int) -> list[str]:
        ends = [(rank // self.gpus, rank % self.gpus) for rank in (one, other)]
        pair = f"{one}[{ends[0][1]}] -> {other}[{ends[1][1]}]"
        if ends[0][0] == ends[1][0]:
            via = f"Channel {channel:02}/0 : {pair} via {self.local}"
            return [self._say(*ends[0], via)]
        lines = []
        for (host, gpu), end in zip(reversed(ends), ("receive", "send"), strict=True):
            gdr = "/GDRDMA" if self.gdr and host * self.gpus + gpu not in self.without_gdr else ""
            via = f"NET/{self.network}/{self.rail_of[host, channel]}{gdr}"
            lines.append(self._say(host, gpu, f"Channel {channel:02}/0 : {pair} [{end}] via {via}"))
        return lines


def inspector(ranks: int, calls: int, chance: random.Random, late: int | None = None) -> str:
    """Records of NCCL Inspector, with one late rank if asked."""
    lines = []
    for call in range(calls):
        for rank in range(ranks):
            time_us = 500 * chance.uniform(0.95, 1.05)
            if late is not None:
                time_us = 520.0 if rank == late else 1500 * chance.uniform(0.95, 1.05)
            record = {
                "header": {"id": "0x1", "rank": rank, "n_ranks": ranks, "nnodes": 1},
                "metadata": {"inspector_output_format_version": "v4.1", "hostname": "node0"},
                "coll_perf": {
                    "coll": "AllReduce", "coll_sn": call, "coll_msg_size_bytes": 1 << 26,
                    "coll_exec_time_us": time_us, "coll_timing_source": "kernel_gpu",
                    "coll_algobw_gbs": (1 << 26) / time_us / 1e3,
                    "coll_busbw_gbs": (1 << 26) / time_us / 1e3 * 2 * (ranks - 1) / ranks,
                },
            }  # fmt: skip
            lines.append(json.dumps(record))
    return "\n".join(lines) + "\n"


def entry(number: int, name: str = "nccl:all_reduce", state: str = "completed", size: int = 1024):
    """A collective of a flight recorder dump."""
    return {
        "frames": [{"name": "step", "filename": "train.py", "line": 10}], "record_id": number,
        "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": number,
        "p2p_seq_id": 0, "op_id": number, "profiling_name": name, "time_created_ns": 10**18,
        "input_sizes": [[size]], "input_dtypes": ["Float"], "output_sizes": [[size]],
        "output_dtypes": ["Float"], "state": state, "retired": state == "completed",
        "timeout_ms": 600000, "is_p2p": False, "duration_ms": 1.0,
    }  # fmt: skip


def dump(ranks: int, entries: list[dict]) -> bytes:
    """A flight recorder dump."""
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(ranks)))}}
    data = {"version": "2.10", "pg_config": config, "pg_status": {}, "entries": entries}
    return pickle.dumps(data)


RAS = """\
NCCL version 2.28.9 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 12090

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          8            1         16       16

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         8        16        16   RUNNING      OK

Errors
======

Warnings
========

"""


def ras_json(counts: dict[int, int], missing: tuple[int, ...] = ()) -> str:
    """The output of `ncclras -f json` with the number of all-reduces of each rank."""
    ranks = [
        {
            "rank": rank, "host": "node0", "pid": 100 + rank, "cuda_dev": rank, "nvml_dev": rank,
            "status": {"init_state": 0, "async_error": 0, "finalize_called": False},
            "collective_counts": {"Broadcast": 1, "AllReduce": count},
        }
        for rank, count in counts.items()
    ]  # fmt: skip
    gone = [
        {"rank": rank, "host": "node1", "pid": 1, "cuda_dev": 0, "nvml_dev": 0,
         "status": {"unresponsive": True, "considered_dead": False}}
        for rank in missing
    ]  # fmt: skip
    communicator = {
        "hash": "0x1", "size": len(ranks) + len(gone), "ranks_count": len(ranks),
        "missing_ranks_count": len(gone), "ranks": ranks, "missing_ranks": gone,
    }  # fmt: skip
    return json.dumps({"nccl_version": "2.28.9", "communicators": [communicator]}, indent=1)


def watchdog(rank: int, enqueued: int, completed: int) -> str:
    """The lines of PyTorch's watchdog of one rank that timed out."""
    start = f"[rank{rank}]:[E603 17:48:01.005271823 ProcessGroupNCCL.cpp:632] [Rank {rank}] "
    return (
        f"{start}Watchdog caught collective operation timeout: WorkNCCL(SeqNum={completed + 1}, "
        "OpType=ALLREDUCE, NumelIn=8652160, NumelOut=8652160, Timeout(ms)=1800000) ran for 1800068 "
        f"milliseconds before timing out.\n[rank{rank}]:[E603 17:48:01 ProcessGroupNCCL.cpp:2268] "
        f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]  failure detected by watchdog at work "
        f"sequence id: {completed + 1} PG status: last enqueued work: {enqueued}, last completed "
        f"work: {completed}\n"
    )


def showtopo(cell: str = "XGMI") -> str:
    """The output of `rocm-smi --showtopo` of a host with eight GPUs."""
    names = [f"GPU{n}" for n in range(8)]

    def table(title: str, own: str, other: str) -> list[str]:
        rows = [
            f"{name}   " + " ".join(own if row == column else other for column in range(8))
            for row, name in enumerate(names)
        ]
        return [f"===== {title} =====", "   ".join(["    ", *names]), *rows, ""]

    numa = [f"GPU[{n}]\t\t: (Topology) Numa Node: {n // 4}" for n in range(8)]
    return "\n".join(
        [
            *table("Weight between two GPUs", "0", "15"),
            *table("Hops between two GPUs", "0", "1"),
            *table("Link Type between two GPUs", "0", cell),
            "===== Numa Nodes =====", *numa, "===== End of ROCm SMI Log =====",
        ]
    )  # fmt: skip


def lstopo(
    *, rates: tuple[float, ...] = (63.015385,) * 4, device: str = "2330", model: str = "",
    has_nvlinks: bool = True, ports: tuple[int, ...] = (4, 4), version: str = "2.0",
) -> str:  # fmt: skip
    """The XML of lstopo of a host with two processors, two GPUs on each, and an adapter each.

    Each pair of GPUs shares a switch of PCIe with an adapter. An NVSwitch joins all GPUs.

    Args:
        rates: rate of the PCIe link of each GPU in GB/s.
        device: PCI device of the GPUs.
        model: product name of the GPUs, if a library of NVIDIA is there.
        has_nvlinks: True if hwloc has the library that lists NVLinks.
        ports: state of the port of each adapter.
        version: version of the format.
    """
    rdma = "32" if version == "3.0" else "3"
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<!DOCTYPE topology SYSTEM "hwloc2.dtd">',
        f'<topology version="{version}">', '<object type="Machine" os_index="0" gp_index="1">',
        '<info name="HostName" value="node0"/>',
    ]  # fmt: skip
    for socket in range(2):
        lines += [
            f'<object type="Package" os_index="{socket}" gp_index="{2 + socket}">',
            '<info name="CPUVendor" value="GenuineIntel"/>',
            '<info name="CPUFamilyNumber" value="6"/>',
            '<info name="CPUModelNumber" value="143"/>',
            f'<object type="NUMANode" os_index="{socket}" gp_index="{4 + socket}"/>',
            f'<object type="Core" os_index="0" gp_index="{6 + socket}"/>',
            f'<object type="Bridge" gp_index="{8 + socket}" bridge_type="0-1" depth="0"'
            f' bridge_pci="0000:[{socket}0-{socket}7]">',
            _bridge(f"0000:{socket}0:01.0", 63.015385), _bridge(f"0000:{socket}1:00.0", 63.015385),
        ]  # fmt: skip
        for n in (2 * socket, 2 * socket + 1):
            lines += [
                _bridge(f"0000:{socket}2:0{n}.0", 63.015385),
                _pci(100 + n, f"0000:{socket}{3 + n % 2}:00.0", f"0302 [10de:{device}]", rates[n]),
                f'<object type="OSDev" gp_index="{200 + n}" name="nvml{n}" osdev_type="5">',
                *([f'<info name="GPUModel" value="{model}"/>'] if model else []),
                *["</object>"] * 3,
            ]  # fmt: skip
        lines += [
            _bridge(f"0000:{socket}2:08.0", 63.015385),
            _pci(110 + socket, f"0000:{socket}6:00.0", "0207 [15b3:1021]", 63.015385),
            f'<object type="OSDev" gp_index="{120 + socket}" name="ib{socket}" osdev_type="2"/>',
            f'<object type="OSDev" gp_index="{130 + socket}" name="mlx5_{socket}" '
            f'osdev_type="{rdma}">',
            f'<info name="Port1State" value="{ports[socket]}"/>',
            *["</object>"] * 5,
            _pci(140 + socket, f"0000:{socket}7:00.0", "0108 [144d:a824]", 7.876923),
            "</object>",
            _pci(150 + socket, f"0000:{socket}8:00.0", "0680 [10de:22a3]", 1.0),
            *["</object>"] * 3,
        ]
    lines.append("</object>")
    lines += _nvlinks_of_lstopo() if has_nvlinks else []
    return "\n".join([*lines, "</topology>", ""])


def _nvlinks_of_lstopo() -> list[str]:
    """The bandwidth of NVLinks between four GPUs and two NVSwitches."""
    ends = [f"OSDev:{200 + n}" for n in range(4)] + ["PCIDev:150", "PCIDev:151"]
    values = [
        1_000_000 if one == other else 225_000 * ((one < 4) != (other < 4))
        for one in range(6) for other in range(6)
    ]  # fmt: skip
    return [
        '<distances2hetero nbobjs="6" kind="25" name="NVLinkBandwidth">',
        f'<indexes length="62">{" ".join(ends)} </indexes>',
        *(f'<u64values length="30">{" ".join(map(str, values[n : n + 6]))} </u64values>'
          for n in range(0, 36, 6)),
        "</distances2hetero>",
    ]  # fmt: skip


def _bridge(bus: str, rate: float) -> str:
    return (
        f'<object type="Bridge" bridge_type="1-1" pci_busid="{bus}" '
        f'pci_type="0604 [1000:c030] [1000:0000] b0" pci_link_speed="{rate:.6f}">'
    )


def _pci(number: int, bus: str, kind: str, rate: float) -> str:
    return (
        f'<object type="PCIDev" gp_index="{number}" pci_busid="{bus}" '
        f'pci_type="{kind} [0000:0000] a1" pci_link_speed="{rate:.6f}">'
    )
