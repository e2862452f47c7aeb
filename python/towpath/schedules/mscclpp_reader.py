# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Conversion of an execution plan of MSCCL++ to a schedule; use it through `mscclpp_json`."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field

from towpath._core import (
    Access,
    Buffer,
    Collective,
    Holder,
    Operand,
    RankProgram,
    Schedule,
    SignalEnd,
    Step,
    StepType,
    ThreadBlock,
)
from towpath.schedules.json_node import Node, parsed, shown
from towpath.schedules.msccl_xml import (
    BLOCKS_MAX,
    CHANNELS_MAX,
    CHUNKS_MAX,
    NAME_LENGTH_MAX,
    NOTIFICATIONS,
    RENDEZVOUS,
)
from towpath.schedules.mscclpp_words import (
    ALIGNMENT_BYTES,
    BUFFERS,
    BYTES_MAX,
    CHANNELS_PER_OPERATION_MAX,
    COLLECTIVES,
    NAMES,
    NO_LIMIT,
    OPERATIONS_MAX,
    PAIRS,
    PROTOCOLS,
    RANKS_MAX,
    SCRATCH_BYTES,
    SEMAPHORES,
    SHAPES,
    SIGNALLING,
    THREADS,
    letters_of,
)


def read_plan(path: str | os.PathLike[str]) -> Schedule:
    """Reads the schedule of an execution plan, not yet checked by `check_structure`.

    Args:
        path: the JSON file.

    Raises:
        ScheduleFormatError: the file cannot be read, has another format, or exceeds a limit.
    """
    file = str(path)
    return _Plan(Node(parsed(path, file), file)).schedule()


_WORDS = {word: word for word in ("memory", "port", "switch")}


@dataclass
class _Gpu:
    """The objects to which the operations of a GPU refer by number."""

    ends: dict[str, list[tuple[int, int]]]  # memory, port: (peer, which of the channels to it)
    switches: list[tuple[Buffer, tuple[int, ...]]]
    remotes: list[tuple[int, Buffer, list[str]]]
    semaphores: list[int]
    counts: Counter[tuple[str, int]] = field(default_factory=Counter)  # channels to each peer


@dataclass
class _Block:
    """The objects to which the operations of a thread block refer by number."""

    channels: dict[str, list[int]] = field(default_factory=lambda: {w: [] for w in _WORDS})
    remotes: dict[str, list[int]] = field(default_factory=lambda: {w: [] for w in _WORDS})


class _Plan:
    """Reads a plan. Channels are numbered when all of them have been read: channels of memory come
    first, then channels of ports, each numbered by the use in signals.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._ranks = 0
        self._groups: dict[tuple[int, ...], int] = {}
        self._memory_channels = 0
        self._port_channels = 0

    def _read_policies(self, schedule: Schedule) -> None:
        if self._node.has("rendezvous"):
            schedule.rendezvous = self._node.word("rendezvous", RENDEZVOUS)
        if self._node.has("notification"):
            schedule.notification = self._node.word("notification", NOTIFICATIONS)

    def schedule(self) -> Schedule:
        node = self._node
        node.names(
            "name collective protocol inplace gpus",
            "reuse_resources num_threads_per_block use_double_scratch_buffer buffer_alignment "
            "min_message_size max_message_size rendezvous notification",
        )
        name = node.at("name").value
        if not isinstance(name, str) or not name.isprintable() or len(name) > NAME_LENGTH_MAX:
            node.at("name").fail(
                f"is {shown(name)}; it must have at most {NAME_LENGTH_MAX} printable characters"
            )
        node.number("num_threads_per_block", 1, THREADS, THREADS)
        node.number("buffer_alignment", ALIGNMENT_BYTES, ALIGNMENT_BYTES, ALIGNMENT_BYTES)
        gpus = node.items("gpus", RANKS_MAX)
        if not gpus:
            node.at("gpus").fail("is empty; it must have one entry for each rank")
        self._ranks = len(gpus)
        in_place = node.flag("inplace")
        most = node.number("max_message_size", 0, BYTES_MAX, 0)
        schedule = Schedule(
            name, node.word("collective", COLLECTIVES), node.word("protocol", PROTOCOLS),
            in_place=in_place, out_of_place=not in_place,
            size_bytes_min=node.number("min_message_size", 0, NO_LIMIT - 1, 0),
            size_bytes_max=0 if most >= NO_LIMIT else most,
        )  # fmt: skip
        self._read_policies(schedule)
        schedule.has_double_scratch = node.flag("use_double_scratch_buffer", False)
        if node.flag("reuse_resources", False):
            schedule.scratch_bytes_max = SCRATCH_BYTES
        described = [self._gpu(gpu, rank) for rank, gpu in enumerate(gpus)]
        groups = sorted({group for gpu in described for _, group in gpu.switches})
        self._groups = {group: number for number, group in enumerate(groups)}
        schedule.groups = [list(group) for group in groups]
        self._count_channels(gpus, described)
        schedule.channels = max(1, self._memory_channels + self._port_channels)
        if schedule.channels > CHANNELS_MAX:
            node.fail(
                f"has {schedule.channels} channels between two GPUs; it must be at most "
                f"{CHANNELS_MAX}"
            )
        schedule.chunks = self._chunks(gpus, schedule.collective)
        schedule.ranks = [
            self._program(gpu, about) for gpu, about in zip(gpus, described, strict=True)
        ]
        return schedule

    def _chunks(self, gpus: list[Node], collective: Collective) -> int:
        """Chunks of the whole array."""
        counts = {
            (gpu.number("input_chunks", 0, CHUNKS_MAX), gpu.number("output_chunks", 0, CHUNKS_MAX))
            for gpu in gpus
        }
        if len(counts) != 1:
            self._node.at("gpus").fail(
                "have different numbers of input or output chunks; they must be equal"
            )
        ((inputs, outputs),) = counts
        if collective == Collective.all_gather:
            chunks = outputs or inputs * self._ranks
        elif collective == Collective.reduce_scatter:
            chunks = inputs or outputs * self._ranks
        else:
            chunks = inputs or outputs
        if not 1 <= chunks <= CHUNKS_MAX:
            self._node.at("gpus").fail(f"cut the array into {chunks} chunks; it must be at least 1")
        return chunks

    # --- what operations refer to ---

    def _gpu(self, node: Node, rank: int) -> _Gpu:
        node.names(
            "id input_chunks output_chunks scratch_chunks threadblocks",
            "channels remote_buffers semaphores",
        )
        if node.number("id", 0, RANKS_MAX) != rank:
            node.at("id").fail(f"is {shown(node.value['id'])}; the next in order is {rank}")
        gpu = _Gpu({"memory": [], "port": []}, [], [], [])
        for channel in node.items("channels", BLOCKS_MAX):
            self._channel(channel, rank, gpu)
        for remote in node.items("remote_buffers", BLOCKS_MAX):
            remote.names("rank type access_channel_types")
            kinds = remote.items("access_channel_types", 2)
            for kind in kinds:
                if kind.value not in ("memory", "port"):
                    kind.fail(f"is {shown(kind.value)}; choose memory or port")
            gpu.remotes.append(
                (
                    self._peer(remote.at("rank"), rank),
                    remote.word("type", BUFFERS),
                    [kind.value for kind in kinds],
                )
            )
        for semaphore in node.items("semaphores", BLOCKS_MAX):
            semaphore.names("init_value")
            gpu.semaphores.append(semaphore.number("init_value", 0, 2**31 - 1))
        return gpu

    def _peer(self, node: Node, rank: int) -> int:
        peer = node.integer(0, self._ranks - 1)
        if peer == rank:
            node.fail(f"is {peer}, the GPU itself; it must be any other GPU")
        return peer

    def _channel(self, node: Node, rank: int, gpu: _Gpu) -> None:
        # Older plans say "buff" for the buffer of a switch channel.
        node.names("channel_type", "connected_to buffer_type buff rank_groups")
        kind = node.word("channel_type", _WORDS)
        if kind != "switch":
            peers = [self._peer(each, rank) for each in node.items("connected_to", BLOCKS_MAX)]
            for peer in peers:
                gpu.ends[kind].append((peer, gpu.counts[kind, peer]))
                gpu.counts[kind, peer] += 1
            if len(gpu.ends[kind]) > BLOCKS_MAX:
                node.fail(f"is one of more than {BLOCKS_MAX} {kind} channels of a GPU, the maximum")
            return
        key = "buffer_type" if node.has("buffer_type") else "buff"
        if not node.has(key):
            node.fail('lacks "buffer_type"')
        buffer = node.word(key, BUFFERS)
        for group in node.items("rank_groups", RANKS_MAX):
            group.names("size ranks")
            ranks = group.numbers("ranks", self._ranks - 1, RANKS_MAX)
            if len(set(ranks)) != len(ranks) or rank not in ranks:
                group.at("ranks").fail(f"must name GPU {rank}, and no GPU twice")
            if group.number("size", 0, RANKS_MAX) != len(ranks):
                group.at("size").fail(f"is {group.value['size']}; there are {len(ranks)} ranks")
            gpu.switches.append((buffer, tuple(sorted(ranks))))

    def _block(self, node: Node, gpu: _Gpu) -> _Block:
        block = _Block()
        limits = {kind: len(ends) for kind, ends in gpu.ends.items()}
        limits["switch"] = len(gpu.switches)
        for channel in node.items("channels", BLOCKS_MAX):
            channel.names("channel_type channel_ids", "buff buffer_type")
            kind = channel.word("channel_type", _WORDS)
            for each in channel.items("channel_ids", BLOCKS_MAX):
                if limits[kind] == 0:
                    each.fail(f"refers to a {kind} channel; the GPU has none")
                block.channels[kind].append(each.integer(0, limits[kind] - 1))
        for reference in node.items("remote_buffer_refs", BLOCKS_MAX):
            reference.names("access_channel_type remote_buffer_ids")
            kind = reference.word("access_channel_type", {w: w for w in ("memory", "port")})
            for each in reference.items("remote_buffer_ids", BLOCKS_MAX):
                if not gpu.remotes:
                    each.fail("refers to a remote buffer; the GPU has none")
                number = each.integer(0, len(gpu.remotes) - 1)
                if kind not in gpu.remotes[number][2]:
                    each.fail(f"is {number}, a remote buffer without access by {kind} channels")
                block.remotes[kind].append(number)
        return block

    def _count_channels(self, gpus: list[Node], described: list[_Gpu]) -> None:
        """The number of channels of each kind that signals between two GPUs use."""
        most = {"memory": 0, "port": 0}
        for gpu, about in zip(gpus, described, strict=True):
            for block_node in gpu.items("threadblocks", BLOCKS_MAX):
                block_node.names("id ops", "channels remote_buffer_refs")
                block = self._block(block_node, about)
                for operation in _all_operations(block_node):
                    name = operation.at("name").value
                    kind = self._channel_kind(operation)
                    uses = name in SIGNALLING or (name in PAIRS and kind == "port")
                    if not uses or kind == "switch":
                        continue
                    for _, which in self._ends(operation, kind, block, about):
                        most[kind] = max(most[kind], which + 1)
        self._memory_channels, self._port_channels = most["memory"], most["port"]

    def _channel_kind(self, operation: Node) -> str:
        if not operation.has("channel_type"):
            return "memory"
        return str(operation.word("channel_type", _WORDS))

    def _ends(self, operation: Node, kind: str, block: _Block, gpu: _Gpu) -> list[tuple[int, int]]:
        """(peer, channel number) for each of an operation's channel_ids."""
        ends = []
        channels = block.channels[kind]
        for each in operation.items("channel_ids", CHANNELS_PER_OPERATION_MAX):
            if not channels:
                each.fail(f"refers to a {kind} channel; the thread block has none")
            ends.append(gpu.ends[kind][channels[each.integer(0, len(channels) - 1)]])
        return ends

    # --- programs ---

    def _program(self, node: Node, gpu: _Gpu) -> RankProgram:
        program = RankProgram(
            input_chunks=node.number("input_chunks", 0, CHUNKS_MAX),
            output_chunks=node.number("output_chunks", 0, CHUNKS_MAX),
            scratch_chunks=node.number("scratch_chunks", 0, CHUNKS_MAX),
        )
        program.semaphores = gpu.semaphores
        blocks = []
        for number, block_node in enumerate(node.items("threadblocks", BLOCKS_MAX)):
            if block_node.number("id", 0, BLOCKS_MAX) != number:
                block_node.at("id").fail(
                    f"is {block_node.value['id']}; the next in order is {number}"
                )
            reader = _Operations(self, gpu, self._block(block_node, gpu))
            reader.read(block_node)
            blocks.append(reader.program)
        program.blocks = blocks
        return program

    def group_number(self, group: tuple[int, ...]) -> int:
        return self._groups[group]

    def ends_of(self, operation: Node, kind: str, block: _Block, gpu: _Gpu) -> list[SignalEnd]:
        first = self._memory_channels if kind == "port" else 0
        return [
            SignalEnd(peer, first + which)
            for peer, which in self._ends(operation, kind, block, gpu)
        ]

    def channel_kind(self, operation: Node) -> str:
        return self._channel_kind(operation)


def _all_operations(block: Node) -> list[Node]:
    """The operations of a thread block and of its pipelines, each with a valid name."""
    found = []
    for operation in block.items("ops", OPERATIONS_MAX):
        _check_name(operation)
        found.append(operation)
        if operation.value["name"] == "pipeline":
            for inner in operation.items("ops", OPERATIONS_MAX):
                _check_name(inner)
                found.append(inner)
    if len(found) > OPERATIONS_MAX:
        block.at("ops").fail(
            f"have {len(found)} operations; there must be at most {OPERATIONS_MAX}"
        )
    return found


def _check_name(operation: Node) -> None:
    if not isinstance(operation.value, dict) or "name" not in operation.value:
        operation.fail('is not an operation: it lacks "name"')
    operation.word("name", dict.fromkeys(NAMES))


def _check_kind(operation: Node, name: str, kind: str) -> None:
    """Checks that the operation uses such channels, and sums."""
    if operation.value.get("reduce_op", "sum") != "sum":
        operation.at("reduce_op").fail(
            f"is {shown(operation.value['reduce_op'])}; MSCCL++'s executor supports only sum"
        )
    if name in ("pws", "pwsf") and kind != "port":
        operation.fail(f"is a {name} over {kind} channels; it must use port channels")
    if kind == "port" and name not in (*PAIRS, "rppkt"):
        operation.fail(f"is a {name} over port channels; it must use memory channels")


class _Operations:
    """The steps of one thread block."""

    def __init__(self, plan: _Plan, gpu: _Gpu, block: _Block) -> None:
        self.program = ThreadBlock()
        self._plan = plan
        self._gpu = gpu
        self._block = block

    def read(self, node: Node) -> None:
        for operation in node.items("ops", OPERATIONS_MAX):
            self._read(operation, is_in_pipeline=False)

    def _read(self, operation: Node, *, is_in_pipeline: bool) -> None:
        name = operation.value["name"]
        if name == "nop":
            operation.names("name")
            self.program.add_step(Step(StepType.nop))
        elif name in SIGNALLING:
            self._read_signalling(operation, name)
        elif name in SEMAPHORES:
            operation.names("name semaphore_ids")
            access = Access()
            access.semaphores = [
                each.integer(0, max(0, len(self._gpu.semaphores) - 1))
                for each in operation.items("semaphore_ids", CHANNELS_PER_OPERATION_MAX)
            ]
            self.program.add_access(SEMAPHORES[name], access)
        elif name == "barrier":
            operation.names("name barrier_id num_threadblocks")
            access = Access()
            access.barrier = operation.number("barrier_id", 0, BLOCKS_MAX)
            access.barrier_blocks = operation.number("num_threadblocks", 1, BLOCKS_MAX)
            self.program.add_access(StepType.barrier, access)
        elif name == "pipeline":
            self._read_pipeline(operation, is_in_pipeline)
        else:
            self._read_move(operation, name, is_in_pipeline)

    def _read_signalling(self, operation: Node, name: str) -> None:
        operation.names("name channel_ids", "channel_type")
        kind = self._plan.channel_kind(operation)
        if kind == "switch" or (name == "flush" and kind != "port"):
            operation.at("channel_type").fail(f"is {kind}, which does not support {name}")
        access = Access()
        access.ends = self._plan.ends_of(operation, kind, self._block, self._gpu)
        access.is_relaxed = name.startswith("rlx")
        access.is_port = kind == "port"
        self.program.add_access(SIGNALLING[name], access)

    def _read_pipeline(self, operation: Node, is_in_pipeline: bool) -> None:
        if is_in_pipeline:
            operation.fail("is a pipeline inside another one; use any other operation")
        operation.names("name iter_context ops")
        context = operation.at("iter_context")
        context.names("unit_size num_chunks")
        inner = operation.items("ops", OPERATIONS_MAX)
        access = Access()
        access.unit_bytes = context.number("unit_size", 1, 2**32 - 1)
        access.chunks = context.number("num_chunks", 1, CHUNKS_MAX)
        place = len(self.program.steps)
        self.program.add_access(StepType.pipeline, access, 1)
        for each in inner:
            self._read(each, is_in_pipeline=True)
        # How many steps it has is known only now.
        steps = self.program.steps
        steps[place].count = len(steps) - place - 1
        self.program.steps = steps

    def _read_move(self, operation: Node, name: str, is_in_pipeline: bool) -> None:
        operation.names("name src_buff dst_buff", "channel_type channel_ids tbg_info reduce_op")
        kind = self._plan.channel_kind(operation)
        _check_kind(operation, name, kind)
        sources = operation.items("src_buff", CHUNKS_MAX)
        destinations = operation.items("dst_buff", CHUNKS_MAX)
        ends: list[SignalEnd] = []
        if kind == "port":
            ends = self._plan.ends_of(operation, kind, self._block, self._gpu)
            if len(ends) != len(destinations):
                operation.fail(f"has {len(ends)} channels for {len(destinations)} destinations")
        if name not in PAIRS:
            self._add(operation, (sources, destinations), ends, is_in_pipeline=is_in_pipeline)
            return
        if len(sources) != len(destinations) or not sources:
            operation.fail(
                f"has {len(sources)} sources for {len(destinations)} destinations; it must "
                "have one of each, or several pairs"
            )
        for i, (source, to) in enumerate(zip(sources, destinations, strict=True)):
            pair = ([source], [to])
            self._add(operation, pair, ends[i : i + 1], is_in_pipeline=is_in_pipeline)

    def _add(
        self,
        operation: Node,
        buffers: tuple[list[Node], list[Node]],
        ends: list[SignalEnd],
        *,
        is_in_pipeline: bool,
    ) -> None:
        name = operation.value["name"]
        kind = self._plan.channel_kind(operation)
        shape = PAIRS.get(name) or SHAPES[name]
        if kind == "port" and name == "ppkt":
            shape = ("p", "k")  # an adapter copies packets as they are
        access = Access()
        access.sources = self._operands(operation, "source", shape[0], buffers[0], kind)
        access.destinations = self._operands(operation, "destination", shape[1], buffers[1], kind)
        sizes = {each.number("size", 1, CHUNKS_MAX) for each in (*buffers[0], *buffers[1])}
        if len(sizes) != 1:
            operation.fail(f"has buffers of {sorted(sizes)} chunks; all must have the same size")
        access.is_port = kind == "port"
        access.ends = ends
        access.signals = name in ("pws", "pwsf")
        access.flushes = name == "pwsf"
        if operation.has("tbg_info"):
            info = operation.at("tbg_info")
            info.names("tb_id tbg_size")
            access.parts = info.number("tbg_size", 1, 64)
            access.part = info.number("tb_id", 0, access.parts - 1)
        count = sizes.pop()
        local = None if is_in_pipeline or access.parts > 1 else _local_step(access, count)
        if local is not None:
            self.program.add_step(local)
        else:
            self.program.add_access(StepType.direct, access, count)

    def _operands(
        self, operation: Node, role: str, shape: str, buffers: list[Node], kind: str
    ) -> list[Operand]:
        letters = letters_of(shape, len(buffers))
        if letters is None:
            few = len(shape.rstrip("*")) - shape.count("*")
            allowed = f"at least {few}" if "*" in shape else str(len(shape))
            operation.fail(f"has {len(buffers)} {role}s; it must have {allowed}")
        return [
            self._operand(node, letter, kind) for node, letter in zip(buffers, letters, strict=True)
        ]

    def _operand(self, node: Node, letter: str, kind: str) -> Operand:
        if letter in "lp":
            node.names("type index size")
            chunk = node.number("index", 0, CHUNKS_MAX)
            return Operand(Holder.own, node.word("type", BUFFERS), chunk, is_packet=letter == "p")
        if letter in "gq":
            node.names("switch_channel_id index size")
            known = self._block.channels["switch"]
            if not known:
                node.fail("is behind a switch, but the thread block has no switch channel")
            which = known[node.number("switch_channel_id", 0, len(known) - 1)]
            buffer, group = self._gpu.switches[which]
            number = self._plan.group_number(group)
            chunk = node.number("index", 0, CHUNKS_MAX)
            return Operand(Holder.group, buffer, chunk, number, letter == "q")
        node.names("buffer_id index size")
        remotes = self._block.remotes["port" if kind == "port" else "memory"]
        if not remotes:
            node.fail("is in a remote buffer, but the thread block refers to none")
        number = remotes[node.number("buffer_id", 0, len(remotes) - 1)]
        peer, buffer, _ = self._gpu.remotes[number]
        chunk = node.number("index", 0, CHUNKS_MAX)
        return Operand(Holder.peer, buffer, chunk, peer, letter == "k")


def _local_step(access: Access, count: int) -> Step | None:
    """The equivalent step of MSCCL within the rank's own buffers, if there is one."""
    operands = [*access.sources, *access.destinations]
    if any(operand.holder != Holder.own or operand.is_packet for operand in operands):
        return None
    if len(access.destinations) != 1 or len(access.sources) > 2:
        return None
    to = access.destinations[0]
    if len(access.sources) == 2 and access.sources[0] != to:
        return None
    source = access.sources[-1]
    step_type = StepType.copy if len(access.sources) == 1 else StepType.reduce
    return Step(step_type, source.buffer, source.chunk, to.buffer, to.chunk, count)
