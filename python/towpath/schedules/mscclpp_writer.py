# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Conversion of a schedule to an execution plan of MSCCL++; use it through `mscclpp_json`."""

from __future__ import annotations

from typing import Any, NoReturn

from towpath import _core
from towpath._core import (
    Access,
    Buffer,
    Holder,
    Operand,
    RankProgram,
    Schedule,
    SignalEnd,
    Step,
    StepType,
    ThreadBlock,
)
from towpath.errors import quoted
from towpath.schedules.msccl_xml import ScheduleFormatError
from towpath.schedules.mscclpp_words import (
    ALIGNMENT_BYTES,
    BUFFERS,
    BYTES_MAX,
    COLLECTIVES,
    OPERATIONS_MAX,
    PAIRS,
    PROTOCOLS,
    SCRATCH_BYTES,
    SEMAPHORES,
    SHAPES,
    THREADS,
    letters_of,
    word_of,
)


def plan_of(schedule: Schedule) -> dict[str, Any]:
    """An execution plan as an object for JSON.

    Args:
        schedule: a schedule that has passed `check_structure`.

    Raises:
        ScheduleFormatError: MSCCL++ cannot express the schedule.
    """
    return _Writer(schedule).plan()


_LETTERS = {
    (Holder.own, False): "l", (Holder.own, True): "p", (Holder.peer, False): "r",
    (Holder.peer, True): "k", (Holder.group, False): "g", (Holder.group, True): "q",
}  # fmt: skip
_BUFFER_WORDS = {buffer: word for word, buffer in BUFFERS.items()}


class _Numbers:
    """Numbers objects in the order of their first use."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}

    def of(self, thing: Any) -> int:
        return self.known.setdefault(thing, len(self.known))


class _Writer:
    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._ranks = schedule.ranks
        self._groups = schedule.groups
        self._check()
        ports = [end.channel for end in self._ends(is_port=True)]
        self._first_port = min(ports, default=_core.CHANNELS_MAX)
        memory = [end.channel for end in self._ends(is_port=False)]
        if max(memory, default=-1) >= self._first_port:
            self._fail(
                "it mixes channels for signals through memory and through ports; MSCCL++ does "
                "not support this"
            )
        self._memory_channels = max(memory, default=-1) + 1
        self._port_channels = max(ports, default=-1) + 1 - self._first_port if ports else 0

    def _fail(self, problem: str) -> NoReturn:
        raise ScheduleFormatError(f"schedule {quoted(self._schedule.name)}: {problem}")

    def _ends(self, *, is_port: bool) -> list[SignalEnd]:
        return [
            end
            for program in self._ranks
            for block in program.blocks
            for access in block.accesses
            if access.is_port == is_port
            for end in access.ends
        ]

    def _check(self) -> None:
        schedule = self._schedule
        if schedule.protocol not in PROTOCOLS.values():
            self._fail(
                f"its protocol is {_core.name_of(schedule.protocol)}; it must be Simple or LL"
            )
        if schedule.in_place and schedule.out_of_place:
            self._fail(
                "it runs in place and out of place; a plan of MSCCL++ supports only one of them"
            )
        if schedule.scratch_bytes_max not in (0, SCRATCH_BYTES):
            self._fail(f"its scratch limit must be {SCRATCH_BYTES} bytes")
        if schedule.root != 0:
            self._fail(f"its root is rank {schedule.root}; MSCCL++ supports only rank 0")
        for rank, program in enumerate(self._ranks):
            for number, block in enumerate(program.blocks):
                self._check_block(rank, number, block)

    def _check_block(self, rank: int, number: int, block: ThreadBlock) -> None:
        steps = block.steps
        if len(steps) > OPERATIONS_MAX:
            self._fail(
                f"rank {rank}, thread block {number} has {len(steps)} steps; MSCCL++ supports "
                f"at most {OPERATIONS_MAX}"
            )
        local = (StepType.copy, StepType.reduce, StepType.nop)
        for index, step in enumerate(steps):
            at = f"rank {rank}, thread block {number}, step {index}"
            if step.type not in local and not _core.is_one_sided(step.type):
                self._fail(f"{at}: it is a {step.type.name}; MSCCL++ has no FIFOs")
            if step.publishes or step.depends_on_block != _core.NONE:
                self._fail(f"{at}: it is ordered by a dependency; MSCCL++ has semaphores for that")

    def plan(self) -> dict[str, Any]:
        schedule = self._schedule
        return {
            "name": schedule.name,
            "collective": word_of(COLLECTIVES, schedule.collective),
            "protocol": word_of(PROTOCOLS, schedule.protocol),
            "inplace": schedule.in_place,
            "reuse_resources": schedule.scratch_bytes_max > 0,
            "gpus": [self._gpu(rank, program) for rank, program in enumerate(self._ranks)],
            "num_threads_per_block": THREADS,
            "use_double_scratch_buffer": schedule.has_double_scratch,
            "buffer_alignment": ALIGNMENT_BYTES,
            "min_message_size": schedule.size_bytes_min,
            "max_message_size": schedule.size_bytes_max or BYTES_MAX,
            **self._synchronization(),
        }

    def _synchronization(self) -> dict[str, str]:
        """Checks that fields unknown to MSCCL++ have their defaults."""
        schedule = self._schedule
        fields = {}
        if schedule.rendezvous != _core.Rendezvous.all:
            fields["rendezvous"] = _core.name_of(schedule.rendezvous)
        if schedule.notification != _core.Notification.trailing:
            fields["notification"] = _core.name_of(schedule.notification)
        return fields

    def _gpu(self, rank: int, program: RankProgram) -> dict[str, Any]:
        gpu = _GpuWriter(self._groups, self._first_port)
        peers = [peer for peer in range(len(self._ranks)) if peer != rank]
        for kind, count in (("memory", self._memory_channels), ("port", self._port_channels)):
            for which in range(count):
                for peer in peers:
                    gpu.ends[kind].of((peer, which))
        blocks = [gpu.block(number, block) for number, block in enumerate(program.blocks)]
        channels: list[dict[str, Any]] = []
        for kind in ("memory", "port"):
            connected = [peer for peer, _ in gpu.ends[kind].known]
            if connected:
                channels.append({"channel_type": kind, "connected_to": connected})
        for buffer, group in gpu.switches.known:
            ranks = list(self._groups[group])
            channels.append(
                {
                    "channel_type": "switch",
                    "buffer_type": buffer,
                    "rank_groups": [{"size": len(ranks), "ranks": ranks}],
                }
            )
        chunks = self._schedule.chunks
        return {
            "id": rank,
            "input_chunks": program.input_chunks,
            "output_chunks": program.output_chunks,
            "scratch_chunks": program.scratch_chunks,
            "threadblocks": blocks,
            "channels": channels,
            "remote_buffers": [
                {"rank": peer, "type": buffer, "access_channel_types": [kind]}
                for peer, buffer, kind in gpu.remotes.known
            ],
            "semaphores": [{"init_value": held} for held in program.semaphores],
        } | ({} if program.input_chunks or program.output_chunks else {"input_chunks": chunks})


class _GpuWriter:
    """The objects to which a GPU's operations refer, numbered as they are written."""

    def __init__(self, groups: list[list[int]], first_port: int) -> None:
        self.ends = {"memory": _Numbers(), "port": _Numbers()}
        self.switches = _Numbers()
        self.remotes = _Numbers()
        self._groups = groups
        self._first_port = first_port
        self._block_ends = {"memory": _Numbers(), "port": _Numbers()}
        self._block_switches = _Numbers()
        self._block_remotes = {"memory": _Numbers(), "port": _Numbers()}

    def block(self, number: int, block: ThreadBlock) -> dict[str, Any]:
        self._block_ends = {"memory": _Numbers(), "port": _Numbers()}
        self._block_switches = _Numbers()
        self._block_remotes = {"memory": _Numbers(), "port": _Numbers()}
        steps, accesses = block.steps, block.accesses
        operations: list[dict[str, Any]] = []
        pipeline: list[dict[str, Any]] = []
        left = 0
        for step in steps:
            access = accesses[step.source_chunk] if _core.is_one_sided(step.type) else None
            operation = self._operation(step, access)
            (pipeline if left > 0 else operations).append(operation)
            left -= 1
            if step.type == StepType.pipeline:
                pipeline = operation["ops"]
                left = step.count
        channels = [
            {"channel_type": kind, "channel_ids": list(ends.known)}
            for kind, ends in self._block_ends.items()
            if ends.known
        ]
        if self._block_switches.known:
            ids = list(self._block_switches.known)
            channels.append({"channel_type": "switch", "channel_ids": ids})
        references = [
            {"access_channel_type": kind, "remote_buffer_ids": list(remotes.known)}
            for kind, remotes in self._block_remotes.items()
            if remotes.known
        ]
        return {
            "id": number, "ops": operations, "channels": channels,
            "remote_buffer_refs": references,
        }  # fmt: skip

    def _operation(self, step: Step, access: Access | None) -> dict[str, Any]:
        if access is None:
            return self._local(step)
        match step.type:
            case StepType.signal | StepType.wait | StepType.flush:
                name = ("rlx" if access.is_relaxed else "") + step.type.name
                return {"name": name} | self._channels(access)
            case StepType.acquire | StepType.release:
                name = word_of(SEMAPHORES, step.type)
                return {"name": name, "semaphore_ids": access.semaphores}
            case StepType.barrier:
                return {
                    "name": "barrier", "barrier_id": access.barrier,
                    "num_threadblocks": access.barrier_blocks,
                }  # fmt: skip
            case StepType.pipeline:
                context = {"unit_size": access.unit_bytes, "num_chunks": access.chunks}
                return {"name": "pipeline", "iter_context": context, "ops": []}
        return self._move(step, access)

    def _channels(self, access: Access) -> dict[str, Any]:
        kind = "port" if access.is_port else "memory"
        ids = [self._end(kind, end) for end in access.ends]
        return {"channel_ids": ids, "channel_type": kind}

    def _end(self, kind: str, end: SignalEnd) -> int:
        which = end.channel - (self._first_port if kind == "port" else 0)
        return self._block_ends[kind].of(self.ends[kind].of((end.peer, which)))

    @staticmethod
    def _local(step: Step) -> dict[str, Any]:
        if step.type == StepType.nop:
            return {"name": "nop"}

        def buffer(which: Buffer, chunk: int) -> dict[str, Any]:
            return {"type": _BUFFER_WORDS[which], "index": chunk, "size": step.count}

        source = buffer(step.source, step.source_chunk)
        to = buffer(step.destination, step.destination_chunk)
        if step.type == StepType.copy:
            return {"name": "copy", "src_buff": [source], "dst_buff": [to]}
        return {"name": "re", "src_buff": [to, source], "dst_buff": [to], "reduce_op": "sum"}

    def _move(self, step: Step, access: Access) -> dict[str, Any]:
        name = _name_of(access)
        kind = "port" if access.is_port else "memory"
        if any(each.holder == Holder.group for each in (*access.sources, *access.destinations)):
            kind = "switch"
        operation: dict[str, Any] = {
            "name": name,
            "src_buff": [self._buffer(each, step.count, kind) for each in access.sources],
            "dst_buff": [self._buffer(each, step.count, kind) for each in access.destinations],
        }
        if not name.startswith(("copy", "cpkt", "upkt", "re")) or name in ("res", "respkt"):
            operation["channel_type"] = kind
        if access.is_port:
            operation |= self._channels(access)
        if access.parts > 1:
            operation["tbg_info"] = {"tb_id": access.part, "tbg_size": access.parts}
        if len(access.sources) > 1 or name == "glres":
            operation["reduce_op"] = "sum"
        return operation

    def _buffer(self, operand: Operand, count: int, kind: str) -> dict[str, Any]:
        word = _BUFFER_WORDS[operand.buffer]
        place = {"index": operand.chunk, "size": count}
        if operand.holder == Holder.own:
            return {"type": word} | place
        if operand.holder == Holder.group:
            which = self.switches.of((word, operand.number))
            return {"switch_channel_id": self._block_switches.of(which)} | place
        which = self.remotes.of((operand.number, word, kind))
        return {"buffer_id": self._block_remotes[kind].of(which)} | place


def _name_of(access: Access) -> str:
    """The operation that loads, combines and stores in this way."""
    if access.signals:
        return "pwsf" if access.flushes else "pws"
    sources = "".join(_LETTERS[each.holder, each.is_packet] for each in access.sources)
    stores = "".join(_LETTERS[each.holder, each.is_packet] for each in access.destinations)
    if access.is_port and (sources, stores) == ("p", "k"):
        return "ppkt"
    for names in (PAIRS, SHAPES):
        for name, (source, destination) in names.items():
            if letters_of(source, len(sources)) == sources and (
                letters_of(destination, len(stores)) == stores
            ):
                return name
    raise ScheduleFormatError(
        f"a step combines {len(sources)} sources into {len(stores)} destinations, for which "
        "MSCCL++ has no operation"
    )
