# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath doctor`: faults of public issues, whose causes their maintainers or reporters explained.

Each log has the lines that matter, in the form of the program, with names of its own.
"""

import pytest

from doctor_answers import answer, causes, diagnosed
from operator_logs import dump, entry

GITHUB = "https://github.com"


def info(*lines, host="node0"):
    return "".join(f"{host}:100:200 [0] NCCL INFO {line}\n" for line in lines)


def warn(place, line, host="node0"):
    return f"\n{host}:100:200 [0] {place} NCCL WARN {line}\n"


def nodes(count):
    return info(
        f"comm 0x1 rank 0 nRanks {8 * count} nNodes {count} localRanks 8 localRank 0 MNNVL 0"
    )


def ends(via):
    return info(
        f"Channel 00/0 : 15[7] -> 0[0] [receive] via {via}",
        f"Channel 00/0 : 7[7] -> 8[0] [send] via {via}",
    )


BRIDGE = info(
    "=== System : maxBw 48.0 totalBw 370.8 ===", "CPU/0-0 (1/2/-1)",
    "+ PCI[0.2] - PCI/0-65000 (104c823200000000)", "             + PCI[48.0] - NIC/0-67000",
    "                           + NET[50.0] - NET/0-c (0/d4f9/1/50.000000)",
    "             + PCI[48.0] - GPU/0-68000 (8)",
    "                           + NVL[370.8] - NVS/0-0",
)  # fmt: skip
IB = info(
    "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB ib0:10.0.0.1<0>", "Using network IB"
)
SOCKET = info("NET/Socket : Using [0]eth0:10.0.0.1<0>", "Using network Socket")
ISSUES = [
    # The adapters cannot reach each other over RoCE. NCCL_IB_GID_INDEX=3 was the solution.
    ("NVIDIA/nccl/issues/426", "network_error", nodes(2) + IB + warn(
        "transport/net_ib.cc:839",
        "NET/IB : Got completion with error 12, opcode 1, len 0, vendor err 129")),
    ("NVIDIA/nccl/issues/905", "network_error", IB + warn(  # a link that goes up and down
        "transport/net_ib.cc:93", "NET/IB : Got async event : port error")),
    ("NVIDIA/nccl/issues/2013", "network_error", IB + warn(
        "ibvwrap.c:262", "Call to ibv_modify_qp failed with 110 Connection timed out, on dev "
        "mlx5_0:1, curr state INIT, next state RTR, local GID index 3")),
    ("NVIDIA/nccl/issues/342", "shared_memory", warn(  # 64 MB of /dev/shm in a container
        "include/shm.h:28", "Call to posix_fallocate failed: No space left on device") + warn(
        "include/shm.h:48", "Error while creating shared memory segment nccl-shm-recv-2-0-1-3 "
        "(size 9637888)")),
    ("NVIDIA/nccl-tests/issues/206", "locked_memory", IB + warn(  # ulimit -l was 8192
        "misc/ibvwrap.cc:278",
        "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory")),
    ("NVIDIA/nccl/issues/1842", "registration", IB + warn(  # two hosts with a driver of 2021
        "misc/ibvwrap.cc:182", "Call to ibv_reg_mr_iova2 failed with error Invalid argument")),
    ("Mellanox/nv_peer_memory/issues/115", "registration", IB + warn(
        "misc/ibvwrap.cc:239", "Call to ibv_reg_mr_iova2 failed with error Bad address")),
    ("NVIDIA/nccl/issues/229", "sockets", nodes(2) + warn(
        "get_ofi_provider:312", "NET/OFI Could not find any optimal provider") + SOCKET),
    ("sgl-project/sglang/pull/1427", "sockets",  # the container lacks libibverbs
     nodes(2) + info("Failed to open libibverbs.so[.1]") + SOCKET),
    ("NVIDIA/nccl/issues/1412", "gdr_off", nodes(2) + IB + ends("NET/IB/0")),
    ("NVIDIA/nccl/issues/1676", "gdr_off", nodes(2) + IB + info(
        "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'",
        "NET/IB : GPU Direct RDMA Disabled for HCA 1 'mlx5_1'")),
    ("NVIDIA/nccl-tests/issues/256", "pcie_link", BRIDGE),
    # One of the hosts had another release.
    ("NVIDIA/nccl/issues/1267", "version", "NCCL version 2.20.5+cuda12.4\n" + warn(
        "misc/socket.cc:738", "ncclSocketInit: connecting to address  with family 0 is neither "
        "AF_INET(2) nor AF_INET6(10)")),
    ("facebookresearch/fairchem/issues/597", "same_gpu", warn(
        "init.cc:497", "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device a4000")),
    ("NVIDIA/nccl/issues/286", "interface", nodes(2) + info(
        "NCCL_SOCKET_IFNAME set by environment to lo",
        "Bootstrap : Using lo:127.0.0.1<0>") + SOCKET),
    ("marin-community/marin/issues/6940", "interface", info(
        "NCCL_SOCKET_IFNAME set by environment to =enp90s0np0") + warn(
        "bootstrap.cc:114", "Bootstrap : no socket interface found")),
    ("NVIDIA/nccl/issues/976", "fabric_manager", warn(
        "transport/nvls.cc:165", "Cuda failure 'invalid argument'")),
    ("NVIDIA/nccl-tests/issues/276", "fabric_manager", warn(
        "transport/nvls.cc:223", "Cuda failure 999 'unknown error'")),
    ("pytorch/ci-infra/pull/541", "fabric_manager", warn(
        "transport/nvls.cc:379", "Failed to bind NVLink SHARP (NVLS) Multicast memory of size "
        "2097152 : CUDA error 401 'the operation cannot be performed in the present state'.")),
    # GPUs with NVLinks exchanged data through shared memory until the variable was removed.
    ("NVIDIA/nccl-tests/issues/166", "p2p_off", "#  Rank  0 Group  0 Pid   1 on  gpu004 device  0 "
     "[0x07] NVIDIA A100-SXM4-80GB\n" + info(
         "NCCL_P2P_LEVEL set by environment to LOC", "Channel 00 : 0[7000] -> 1[a000] via "
         "SHM/direct/direct", "Channel 00 : 1[a000] -> 0[7000] via SHM/direct/direct")),
    ("NVIDIA/nccl/issues/1235", "gpu_memory", warn(
        "misc/socket.cc:49",
        "socketProgress: Connection closed by remote peer ng3-ib<51159>") + warn(
        "include/alloc.h:178", "Cuda failure 'out of memory'")),
    ("NVIDIA/nccl/issues/795", "dead_rank", warn(  # a segmentation fault of the peer
        "misc/socket.cc:538", "Net : Connection closed by remote peer a100-22.pcluster<47861>")),
]  # fmt: skip


@pytest.mark.parametrize(("issue", "cause", "log"), ISSUES, ids=[each[0] for each in ISSUES])
def test_the_cause_of_a_public_issue_is_named(tmp_path, issue, cause, log):
    found = diagnosed(tmp_path, log)
    assert causes(found)[:1] == [cause], (f"{GITHUB}/{issue}", found.findings)


FAR = info(
    "Pattern 4, crossNic 0, nChannels 2, bw 12.000000/12.000000, type PHB/PHB, sameChannels 1"
)
ENABLED = info("NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (FAR, "it is off, or the adapters are far from the GPUs (PHB)"),
        (FAR + ENABLED, "because the adapters are far from the GPUs"),
        # github.com/NVIDIA/nccl/issues/1151
        (info("GPU Direct RDMA Disabled for GPU ca000 / HCA 0 (distance 7 > 4)"),
         "because the adapters are far from the GPUs"),
    ],
)  # fmt: skip
def test_adapters_far_from_the_gpus_need_no_gpudirect(tmp_path, lines, words):
    """github.com/NVIDIA/nccl/issues/465: NCCL goes through the processor there on purpose."""
    found = diagnosed(tmp_path, nodes(2) + IB + lines + ends("NET/IB/0"))
    assert causes(found) == []
    assert words in str(found.findings)


def test_far_paths_of_adapters_without_gpudirect_are_its_result(tmp_path):
    """github.com/NVIDIA/nccl/issues/489: adapters behind the switches of GPUs, and paths PHB."""
    disabled = info("NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'")
    found = diagnosed(tmp_path, nodes(2) + IB + FAR + disabled + ends("NET/IB/0"))
    assert causes(found) == ["gdr_off"]
    assert "far from" not in found.findings[0]["sentence"]


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("transport/nvls.cc:165", "Cuda failure 2 'out of memory'"),
        ("transport/nvls.cc:376", "Failed to bind NVLink SHARP (NVLS) Multicast memory of size "
         "603979776 : CUDA error 2 'out of memory'."),
    ],
)  # fmt: skip
def test_memory_for_nvls_is_its_own_cause(tmp_path, place, line):
    """github.com/NVIDIA/JAX-Toolbox/pull/383 switched NVLS off to save the memory."""
    assert causes(diagnosed(tmp_path, warn(place, line))) == ["nvls_memory"]


def test_a_warning_has_one_cause(tmp_path):
    line = "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"
    found = diagnosed(tmp_path, IB + warn("misc/ibvwrap.cc:278", line))
    assert causes(found) == ["locked_memory"]


def test_an_interface_over_which_hosts_connected_is_no_fault(tmp_path):
    lo = info("NCCL_SOCKET_IFNAME set by environment to lo")
    assert causes(diagnosed(tmp_path, nodes(2) + lo + IB + ends("NET/IB/0/GDRDMA"))) == []


SHARED = info("Channel 00 : 0[7000] -> 1[a000] via SHM/direct/direct")


def peers(**variables):
    lines = [f"NCCL_{name} set by environment to {value}" for name, value in variables.items()]
    return info(*lines) + SHARED


@pytest.mark.parametrize(
    ("log", "faults"),
    [
        (peers(P2P_DISABLE="1"), ["p2p_off", "p2p_disable"]),
        (peers(P2P_LEVEL="loc"), ["p2p_off", "p2p_level"]),
        (peers(P2P_DISABLE="1", P2P_LEVEL="0"), ["p2p_off", "p2p_disable", "p2p_level"]),
        (peers(P2P_DISABLE="0", P2P_LEVEL="LOC"), ["p2p_off", "p2p_level"]),
        (peers(P2P_LEVEL="PIX"), ["p2p_off"]),
        (peers(P2P_DISABLE="0"), []),
        (peers(P2P_LEVEL="SYS"), []),
    ],
)
def test_both_variables_of_peer_access_are_named(tmp_path, log, faults):
    found = diagnosed(tmp_path, log)
    assert causes(found) == faults
    named = {each["cause"] for each in found.findings}
    assert ("p2p_disable" in named, "p2p_level" in named) == ("DISABLE" in log, "LEVEL" in log)
    # The line of shared memory, and the line of each variable that limits peers.
    limits = log.count("environment") - log.count("P2P_DISABLE set by environment to 0")
    assert not faults or len(found.findings[0]["evidence"]) == 1 + limits


@pytest.mark.parametrize("name", ["NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS"])
@pytest.mark.parametrize(("limit", "faults"), [(4, ["variable"]), (16, []), (32, [])])
def test_a_limit_below_the_channels_of_the_search_is_a_fault(tmp_path, name, limit, faults):
    search = "Pattern 4, crossNic 0, nChannels 8, bw 48.0/48.0, type NVL/PIX, sameChannels 0"
    log = info(f"{name} set by environment to {limit}.", search)
    assert causes(diagnosed(tmp_path, log)) == faults


def test_consumer_gpus_without_peer_access_are_no_fault(tmp_path):
    """github.com/NVIDIA/TensorRT-LLM/issues/2225: eight RTX 4090."""
    line = "P2P is disabled between connected GPUs 6 and 7. You can repress this message with X=1."
    assert causes(diagnosed(tmp_path, info(line))) == []


def test_ranks_that_did_not_join_are_named(tmp_path):
    """github.com/pytorch/pytorch/pull/140969: ranks 3 to 7 of 8 are missing in one collective."""
    files = []
    for rank in range(8):
        done = [entry(number) for number in range(31110, 31117)]
        last = [entry(31117, state="scheduled", size=1571911)] if rank < 3 else []
        files.append(tmp_path / f"nccl_trace_rank_{rank}")
        files[-1].write_bytes(dump(8, done + last))
    found = answer(*files)
    assert causes(found) == ["late_rank"]
    assert "rank 3, 4, 5, 6, 7 did not enter nccl:all_reduce number 31117" in str(found.findings)
