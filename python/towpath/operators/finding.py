# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Findings about a job or a machine: the cause, the evidence, and the next check."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from towpath.specs.formats import COLOURS

_READ_FACTOR = 10  # escape sequences and spaces may surround a short text
_TEXT_LENGTH_MAX = 200
_SENTENCE_LENGTH_MAX = 600


def printable(text: str, length_max: int = _SENTENCE_LENGTH_MAX) -> str:
    """A text of a file without escape sequences, with spaces for other control characters.

    Args:
        text: the text.
        length_max: a longer text is shortened to this length.

    >>> printable("node\x1b[31m1\tup\x07"), printable("a long name", 8)
    ('node1 up', 'a lon...')
    """
    plain = COLOURS.sub("", text[: _READ_FACTOR * length_max])
    plain = " ".join("".join(c if c.isprintable() else " " for c in plain).split())
    return plain if len(plain) <= length_max else plain[: length_max - 3] + "..."


@dataclass(frozen=True)
class Evidence:
    """A line of a file.

    Attributes:
        file: name of the file.
        line: number of the line, from 1. For records of a binary file, number of the record.
        text: the line, shortened.
    """

    file: str
    line: int
    text: str

    @classmethod
    def of(cls, file: str, line: int, text: str) -> Evidence:
        """A line without control characters, shortened."""
        return cls(file, line, printable(text, _TEXT_LENGTH_MAX))

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Cause:
    """A known cause.

    Attributes:
        title: the cause in a few words.
        next_check: the next step of the operator.
    """

    title: str
    next_check: str


@dataclass(frozen=True)
class Finding:
    """A cause that a file supports, or an unusual fact.

    Attributes:
        cause: name of an entry of CAUSES.
        sentence: the finding with its values.
        evidence: lines that support it.
        confidence: probability that the cause applies, 0 to 1, as a coarse estimate: 0.9 if a line
            states the cause, 0.5 if values fit it, 0.3 if it is one of several explanations.
        is_fault: True for an accusation, False for an unusual fact that may be correct.
    """

    cause: str
    sentence: str
    evidence: tuple[Evidence, ...] = ()
    confidence: float = 0.9
    is_fault: bool = True

    def printable(self) -> Finding:
        """The finding without characters that would control a terminal."""
        evidence = tuple(replace(each, file=printable(each.file)) for each in self.evidence)
        return replace(self, sentence=printable(self.sentence), evidence=evidence)

    @property
    def title(self) -> str:
        """The cause in a few words."""
        return CAUSES[self.cause].title

    @property
    def next_check(self) -> str:
        """The next step of the operator."""
        return CAUSES[self.cause].next_check

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data for JSON."""
        return {
            "cause": self.cause, "sentence": self.sentence, "is_fault": self.is_fault,
            "confidence": self.confidence, "next_check": self.next_check,
            "evidence": [vars(each) for each in self.evidence],
        }  # fmt: skip


CAUSES = {
    "slow": Cause(
        "slower than expected",
        "run the same command with NCCL_DEBUG=INFO and give its log to `towpath doctor` as well",
    ),
    "sockets": Cause(
        "TCP sockets instead of RDMA",
        "check that `ibstatus` lists active ports, that /dev/infiniband and libibverbs are in the "
        "container, that the plug-in of the network loads, and that NCCL_IB_DISABLE and NCCL_NET "
        "are not set",
    ),
    "gdr_off": Cause(
        "GPUDirect RDMA is off",
        "check `lsmod` for nvidia_peermem or use DMA-BUF, and NCCL_NET_GDR_LEVEL",
    ),
    "p2p_off": Cause(
        "GPUs of a host exchange data through host memory",
        "check NCCL_P2P_DISABLE and NCCL_P2P_LEVEL, the shared memory of the container, and PCIe "
        "ACS with `lspci -vvv` (ACSCtl must not have SrcValid+)",
    ),
    "p2p_disable": Cause(
        "NCCL_P2P_DISABLE switches peer access off",
        "run without NCCL_P2P_DISABLE",
    ),
    "p2p_level": Cause(
        "NCCL_P2P_LEVEL limits peer access",
        "run without NCCL_P2P_LEVEL, or set it to the farthest link of `nvidia-smi topo -m` over "
        "which GPUs should exchange data: NVL, PIX, PXB, PHB or SYS",
    ),
    "adapter_missing": Cause(
        "an adapter is missing",
        "compare `ibstatus` and `ls /sys/class/infiniband` on this host with a good host, and "
        "check NCCL_IB_HCA",
    ),
    "adapter_down": Cause(
        "the port of an adapter is down",
        "check the cable and `ibstat` of this port, and the port of the switch",
    ),
    "adapter_slow": Cause(
        "an adapter is slower than the rest",
        "check the speed that this port negotiated with `ibstatus`, and the cable",
    ),
    "adapter_far": Cause(
        "an adapter is far from every GPU",
        "leave it out with NCCL_IB_HCA if it is a management port",
    ),
    "pcie_link": Cause(
        "a PCIe link is slower than the rest",
        "compare LnkSta with LnkCap of this device in `lspci -vvv`, and reseat the card",
    ),
    "wrong_rail": Cause(
        "adapters of different rails are joined",
        "number the adapters equally on all hosts (NCCL_IB_HCA with a fixed order), and check the "
        "cables",
    ),
    "variable": Cause(
        "a variable restricts NCCL",
        "run without this variable",
    ),
    "version": Cause(
        "hosts run different releases of NCCL",
        "install one release on all hosts (`ldconfig -p | grep nccl` in each container)",
    ),
    "algorithm": Cause(
        "another algorithm, protocol or number of channels than expected",
        "compare with `towpath explain` on the same machine, and remove NCCL_ALGO, NCCL_PROTO and "
        "tuner plug-ins",
    ),
    "slow_rank": Cause(
        "one rank is late in every collective",
        "check clocks and temperature of this GPU (`nvidia-smi -q -d PERFORMANCE,TEMPERATURE`), "
        "and the data loader of this rank",
    ),
    "late_rank": Cause(
        "a rank did not enter a collective that others wait in",
        "print the stacks of this rank (`py-spy dump`), and look for an exception or a branch "
        "that only this rank takes",
    ),
    "dead_rank": Cause(
        "a process does not answer",
        "look for the process on its host, and in the kernel's log (`dmesg`) for Xid and OOM",
    ),
    "mismatch": Cause(
        "ranks called different collectives",
        "compare the calls of the named ranks: order, size and type must be equal",
    ),
    "hang": Cause(
        "a collective did not finish",
        "collect the flight recorder of all ranks (TORCH_NCCL_TRACE_BUFFER_SIZE, "
        "TORCH_NCCL_DUMP_ON_TIMEOUT) and give the files to `towpath doctor`",
    ),
    "network_error": Cause(
        "the network reports errors",
        "check the counters of the named port (`perfquery`, `rdma statistic`) and its cable, and "
        "on RoCE the GID (`show_gids`, NCCL_IB_GID_INDEX) with `ib_write_bw` between the hosts",
    ),
    "gpu_memory": Cause(
        "a GPU has no memory left",
        "check `nvidia-smi` for other processes on this GPU, and reduce the memory of the job "
        "(PyTorch keeps freed memory: set a limit, or NCCL_BUFFSIZE and NCCL_MAX_NCHANNELS lower)",
    ),
    "nvls_memory": Cause(
        "a GPU has no memory left for NVLink SHARP (NVLS)",
        "set NCCL_NVLS_ENABLE=0, or leave more memory free: each communicator takes nvlsTotalSize "
        "of the log, so reduce the number of communicators, or NCCL_BUFFSIZE",
    ),
    "same_gpu": Cause(
        "two ranks use one GPU",
        "check CUDA_VISIBLE_DEVICES and `torch.cuda.set_device(LOCAL_RANK)` of both ranks, and the "
        "number of processes per host",
    ),
    "fabric_manager": Cause(
        "the fabric manager of the NVSwitches is stopped, or was restarted without a reset",
        "check `systemctl status nvidia-fabricmanager` and Fabric in `nvidia-smi -q`, then reset "
        "the GPUs or reboot; NCCL_NVLS_ENABLE=0 avoids NVLS until then",
    ),
    "imex": Cause(
        "NVLinks between hosts are not configured",
        "check `nvidia-imex-ctl -N` and /dev/nvidia-caps-imex-channels in the container",
    ),
    "shared_memory": Cause(
        "/dev/shm is too small",
        "start the container with --shm-size=1g or --ipc=host, and check `df /dev/shm`",
    ),
    "locked_memory": Cause(
        "the limit of locked memory is too low",
        "check `ulimit -l` inside the job (it must be unlimited), and start a container with "
        "--ulimit memlock=-1",
    ),
    "registration": Cause(
        "an adapter refuses the memory of a GPU",
        "check that nvidia_peermem is loaded and has the driver's release (`lsmod`, `dmesg`), or "
        "that DMA-BUF works; try NCCL_IB_PCI_RELAXED_ORDERING=0 with old drivers of adapters, and "
        "NCCL_NET_GDR_LEVEL=LOC, with which adapters register memory of the host only",
    ),
    "interface": Cause(
        "the network interface is wrong",
        "remove NCCL_SOCKET_IFNAME, or set it to an interface that exists on all hosts and reaches "
        "them (`ip -br addr`)",
    ),
    "wrong_data": Cause(
        "results are wrong",
        "repeat on each pair of GPUs to find the GPU or link, and check ECC (`nvidia-smi -q`)",
    ),
    "nvlink_missing": Cause(
        "NVLinks are missing",
        "check `nvidia-smi nvlink -s` on this GPU, and the fabric manager",
    ),
    "nvlink_hidden": Cause(
        "the table hides NVLinks",
        "run `nvidia-smi topo -m` on the host itself, without -p",
    ),
    "nvlink_partial": Cause(
        "NVLinks join only some of the GPUs",
        "expect the bandwidth of NVLink only within these groups of GPUs",
    ),
    "sockets_of_cpu": Cause(
        "GPUs are on different processors",
        "expect less bandwidth between these GPUs than within one processor",
    ),
    "no_gpu": Cause(
        "the topology has no GPU",
        "write a topology on a running job with NCCL_TOPO_DUMP_FILE=FILE",
    ),
    "unconnected": Cause(
        "groups of chips are not joined",
        "join the groups with a cable, or use each group on its own",
    ),
    "records_lost": Cause(
        "records were dropped",
        "enlarge the buffer of the recorder, or dump more often",
    ),
    "unusual": Cause("unusual", "compare with a good host"),
}
