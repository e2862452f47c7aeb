# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""MSCCL's XML: the `algo` / `gpu` / `tb` / `step` files that its tools write and its executor runs.

Import and export apply the limits of that executor to a file (Azure/msccl-executor-nccl,
src/include/msccl/msccl_struct.h and src/misc/msccl/msccl_parser.cc), so a file that passes here
also runs there. docs/schedule.md has the mapping as a table.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from io import StringIO
from typing import IO, NamedTuple
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler
from xml.sax.saxutils import escape

from defusedxml import DefusedXmlException
from defusedxml.expatreader import DefusedExpatParser

from towpath import _core
from towpath._core import Buffer, Collective, RankProgram, Schedule, Step, StepType, ThreadBlock
from towpath.errors import ConfigError, quoted
from towpath.files import write_text

SIZE_MAX_BYTES = 64 * 1024 * 1024
RANKS_MAX = 65_536
CHANNELS_MAX: int = _core.CHANNELS_MAX
BLOCKS_MAX = 32 * CHANNELS_MAX
PEERS_PER_CHANNEL_MAX = 32
STEPS_MAX = 256  # microsoft/msccl, src/include/msccl/msccl_struct.h
COUNT_MAX = 71
CHUNKS_MAX = 2**15  # the executor keeps chunk numbers in 16 signed bits,
DEPENDENCY_BLOCK_MAX = 127  # and the thread block of a dependency in 8
NAME_LENGTH_MAX = 255

_BYTES_MAX = 2**63 - 1
_READ_BYTES = 1024 * 1024
_INTEGER = re.compile(r"-?[0-9]{1,20}\Z", re.ASCII)

_COLLECTIVES = {
    "allreduce": Collective.all_reduce,
    "allgather": Collective.all_gather,
    "reducescatter": Collective.reduce_scatter,
    "reduce_scatter": Collective.reduce_scatter,  # so microsoft/msccl reads it, too
    "broadcast": Collective.broadcast,
    "reduce": Collective.reduce,
    "alltoall": Collective.all_to_all,
    # Our additions.
    "gather": Collective.gather,
    "scatter": Collective.scatter,
    "alltoallv": Collective.all_to_all_v,
    "sendrecv": Collective.send_recv,
    "barrier": Collective.barrier,
}
_PROTOCOLS = {name: _core.protocol_from(name) for name in _core.PROTOCOLS}
_BUFFERS = {"i": Buffer.input, "o": Buffer.output, "s": Buffer.scratch}
_STEP_TYPES = {
    "s": StepType.send,
    "r": StepType.receive,
    "rcs": StepType.receive_copy_send,
    "rrs": StepType.receive_reduce_send,
    "rrc": StepType.receive_reduce_copy,
    "rrcs": StepType.receive_reduce_copy_send,
    "cpy": StepType.copy,
    "re": StepType.reduce,
    "nop": StepType.nop,
}
_BOOLEANS = {"0": False, "1": True}
RENDEZVOUS = {_core.name_of(each): each for each in _core.Rendezvous}
NOTIFICATIONS = {_core.name_of(each): each for each in _core.Notification}


class _Element(NamedTuple):
    parent: str | None
    required: frozenset[str]
    optional: frozenset[str] = frozenset()


_ELEMENTS = {
    "algo": _Element(
        None,
        frozenset("name proto nchannels nchunksperloop ngpus coll".split()),
        # The last line is what some tools write and no executor reads.
        frozenset("inplace outofplace minBytes maxBytes root pattern".split())
        | frozenset("rendezvous notification".split())
        | frozenset("redop nthreadblocks maxcount".split()),
    ),
    "gpu": _Element("algo", frozenset("id i_chunks o_chunks s_chunks".split())),
    "tb": _Element("gpu", frozenset("id send recv chan".split())),
    "step": _Element(
        "tb",
        frozenset("s type srcbuf srcoff dstbuf dstoff cnt depid deps hasdep".split()),
    ),
}


class ScheduleFormatError(ConfigError):
    """A file that is not a schedule, or a schedule that the format cannot express."""


def load_schedule(path: str | os.PathLike[str], result: str | None = None) -> Schedule:
    """Loads the schedule of an MSCCL XML file, checked by `check_structure`.

    Args:
        path: the file.
        result: the collective that a file with coll="custom" computes; rejected for any other file.

    Raises:
        ScheduleFormatError: the file cannot be read, has another format, or exceeds a limit; one
        sentence with file and line, or with rank, thread block and step.
    """
    file = str(path)
    reader = _Reader(file, result)
    parser = DefusedExpatParser(forbid_dtd=True)
    parser.setContentHandler(reader)
    reader.setDocumentLocator(parser)  # feed(), unlike parse(), does not
    try:
        _feed(parser, path, file)
        schedule = reader.schedule()
        _core.check_structure(schedule)
    except ScheduleFormatError:
        raise
    except SAXParseException as error:
        problem = f"is not valid XML: {error.getMessage()}"
        raise ScheduleFormatError(problem, file=file, line=error.getLineNumber() or 1) from None
    except DefusedXmlException:
        problem = "declares a document type or an entity; neither is read"
        raise ScheduleFormatError(problem, file=file, line=reader.line()) from None
    except _core.ScheduleError as error:
        raise ScheduleFormatError(str(error), file=file) from None
    except (LookupError, ValueError) as error:  # what expat's decoder finds in the text
        problem = f"is not text in an encoding that is read: {quoted(str(error))}"
        raise ScheduleFormatError(problem, file=file, line=reader.line()) from None
    return schedule


def dump_schedule(schedule: Schedule, target: str | os.PathLike[str] | IO[str]) -> None:
    """Writes a schedule as MSCCL XML to a path or a text stream.

    Loading the result gives an equal schedule.

    Raises:
        ScheduleFormatError: MSCCL cannot express the schedule; one sentence with the limit, and no
        file is written. ScheduleError: it does not pass `check_structure`.
    """
    _core.check_structure(schedule)
    ranks = schedule.ranks
    _check_fits(schedule, ranks)
    if not isinstance(target, (str, os.PathLike)):
        _write(schedule, ranks, target)
        return
    text = StringIO()
    _write(schedule, ranks, text)
    write_text(target, text.getvalue())


# --- import ---------------------------------------------------------------------------------------


def _feed(parser: DefusedExpatParser, path: str | os.PathLike[str], file: str) -> None:
    size_bytes = 0
    try:
        stream = open(path, "rb")
    except (OSError, ValueError) as error:
        raise _unreadable(error, file) from None
    with stream:
        while True:
            try:
                piece = stream.read(_READ_BYTES)
            except OSError as error:
                raise _unreadable(error, file) from None
            if not piece:
                break
            if size_bytes == 0 and piece.lstrip()[:1] in (b"{", b"["):
                problem = (
                    "is JSON, such as an execution plan of MSCCL++; schedules are read as MSCCL XML"
                )
                raise ScheduleFormatError(problem, file=file, line=1)
            size_bytes += len(piece)
            if size_bytes > SIZE_MAX_BYTES:
                problem = f"is too large; at most {SIZE_MAX_BYTES} bytes are read"
                raise ScheduleFormatError(problem, file=file, line=1)
            parser.feed(piece)
    parser.close()


def _unreadable(error: Exception, file: str) -> ScheduleFormatError:
    reason = getattr(error, "strerror", None) or error
    return ScheduleFormatError(f"cannot be read: {reason}", file=file, line=1)


class _Reader(ContentHandler):
    """Builds the schedule while it reads the elements. An unknown element ends the reading
    immediately, so elements never nest deeper than `step`.
    """

    def __init__(self, file: str, result: str | None) -> None:
        super().__init__()
        self._file = file
        self._result = result
        self._locator = None
        self._open: list[str] = []
        self._attributes: Mapping[str, str] = {}
        self._schedule: Schedule | None = None
        self._rank_count = 0
        self._ranks: list[RankProgram] = []
        self._blocks: list[ThreadBlock] = []
        self._steps: list[Step] = []
        self._peers: Counter[tuple[str, int]] = Counter()
        self._has_nop_chain = False

    def schedule(self) -> Schedule:
        if self._schedule is None:  # without a byte, expat does not even miss its root element
            raise self._error("is empty; it must have an <algo>")
        self._schedule.ranks = self._ranks
        return self._schedule

    def line(self) -> int:
        return (self._locator.getLineNumber() if self._locator else None) or 1

    def setDocumentLocator(self, locator) -> None:  # noqa: N802
        self._locator = locator

    def characters(self, content: str) -> None:
        if content.strip():
            raise self._error(
                f"contains the text {quoted(content.strip())} between its elements; remove it"
            )

    def startElement(self, name: str, attrs) -> None:  # noqa: N802
        element = _ELEMENTS.get(name)
        parent = self._open[-1] if self._open else None
        if name == "op":
            raise self._error("has an <op>, the form of newer MSCCL tools; use <step>")
        if element is None or element.parent != parent:
            place = f"inside <{parent}>" if parent else "as the outermost element"
            allowed = next((f"<{n}>" for n, e in _ELEMENTS.items() if e.parent == parent), "absent")
            raise self._error(f"has the element {quoted(name)} {place}; it must be {allowed}")
        self._attributes = dict(attrs.items())
        names = self._attributes.keys()
        for attribute in sorted(names - element.required - element.optional):
            allowed = ", ".join(sorted(element.required | element.optional))
            raise self._error(
                f"has the attribute {quoted(attribute)} on <{name}>; choose one of {allowed}"
            )
        for attribute in sorted(element.required - names):
            raise self._error(f"has no attribute {quoted(attribute)} on <{name}>")
        self._open.append(name)
        getattr(self, f"_start_{name}")()

    def endElement(self, name: str) -> None:  # noqa: N802
        self._open.pop()
        if name == "algo" and len(self._ranks) != self._rank_count:
            raise self._error(f"has {len(self._ranks)} <gpu>, but ngpus is {self._rank_count}")
        if name == "gpu":
            self._ranks[-1].blocks = self._blocks
        if name == "tb":
            if self._has_nop_chain:
                raise self._error(
                    "ends a thread block with a nop; a step with a dependency must follow it"
                )
            self._blocks[-1].steps = self._steps

    def _start_algo(self) -> None:
        name = self._attributes["name"]
        if not name.isprintable() or len(name) > NAME_LENGTH_MAX:
            raise self._error(
                f"has the name {quoted(name)}; it must have at most {NAME_LENGTH_MAX} "
                "printable characters"
            )
        in_place = self._word("inplace", _BOOLEANS, "0")
        self._rank_count = self._integer("ngpus", 1, RANKS_MAX)
        self._schedule = Schedule(
            name,
            self._collective(),
            self._word("proto", _PROTOCOLS),
            channels=self._integer("nchannels", 1, CHANNELS_MAX),
            chunks=self._integer("nchunksperloop", 1, CHUNKS_MAX),
            root=self._integer("root", 0, self._rank_count - 1, "0"),
            in_place=in_place,
            out_of_place=self._word("outofplace", _BOOLEANS, "0" if in_place else "1"),
            size_bytes_min=self._integer("minBytes", 0, _BYTES_MAX, "0"),
            size_bytes_max=self._integer("maxBytes", 0, _BYTES_MAX, "0"),
            pattern=self._pattern(),
        )
        self._schedule.rendezvous = self._word("rendezvous", RENDEZVOUS, "all")
        self._schedule.notification = self._word("notification", NOTIFICATIONS, "trailing")

    def _collective(self) -> Collective:
        """The collective of the file: the word of `coll`, or the caller's declaration for
        "custom".
        """
        if self._attributes["coll"] != "custom":
            if self._result is not None:
                raise self._error(
                    f"has coll={quoted(self._attributes['coll'])}; --result applies only to "
                    "coll='custom'"
                )
            found: Collective = self._word("coll", _COLLECTIVES)
            return found
        if self._result is None:
            raise self._error(
                "has coll='custom', which does not define a result; add --result NAME, such as "
                "--result all_reduce"
            )
        declared = _core.collective_from(self._result)
        assert declared is not None  # callers have checked the name
        return declared

    def _start_gpu(self) -> None:
        self._next("id", len(self._ranks), self._rank_count)
        self._ranks.append(
            RankProgram(
                input_chunks=self._integer("i_chunks", 0, CHUNKS_MAX),
                output_chunks=self._integer("o_chunks", 0, CHUNKS_MAX),
                scratch_chunks=self._integer("s_chunks", 0, CHUNKS_MAX),
            )
        )
        self._blocks = []
        self._peers.clear()

    def _start_tb(self) -> None:
        self._next("id", len(self._blocks), BLOCKS_MAX)
        rank = len(self._ranks) - 1
        channel = self._integer("chan", 0, CHANNELS_MAX - 1)
        for attribute in ("send", "recv"):
            peer = self._integer(attribute, -1, self._rank_count - 1)
            if peer == rank:
                raise self._error(
                    f"has {attribute}={quoted(str(peer))} on gpu {rank}; it must be any other "
                    "gpu, or -1"
                )
            if peer == -1:
                continue
            self._peers[attribute, channel] += 1
            if self._peers[attribute, channel] > PEERS_PER_CHANNEL_MAX:
                raise self._error(
                    f"has more than {PEERS_PER_CHANNEL_MAX} <tb> with a {attribute} "
                    f"peer on channel {channel} of gpu {rank}"
                )
        self._blocks.append(
            ThreadBlock(int(self._attributes["send"]), int(self._attributes["recv"]), channel)
        )
        self._steps = []
        self._has_nop_chain = False

    def _start_step(self) -> None:
        self._next("s", len(self._steps), STEPS_MAX)
        step_type = self._word("type", _STEP_TYPES)
        publishes = self._word("hasdep", _BOOLEANS)
        depends_on_block = self._integer("depid", -1, DEPENDENCY_BLOCK_MAX)
        depends_on_step = self._integer("deps", -1, STEPS_MAX - 1)
        if depends_on_block == -1:
            depends_on_step = -1
        if step_type == StepType.nop:
            self._has_nop_chain |= depends_on_block != -1
            if publishes:
                raise self._error(
                    "has a nop with hasdep='1'; MSCCL does not raise a flag for a nop"
                )
        elif self._has_nop_chain:
            if depends_on_block == -1:
                raise self._error(
                    "has a step with depid='-1' after a nop; the step that ends a "
                    "chain of nops must have a dependency itself"
                )
            self._has_nop_chain = False
        self._steps.append(
            Step(
                step_type,
                self._word("srcbuf", _BUFFERS),
                self._chunk("srcoff", _core.reads_source(step_type)),
                self._word("dstbuf", _BUFFERS),
                self._chunk("dstoff", _core.writes_destination(step_type)),
                self._integer("cnt", 0 if step_type == StepType.nop else 1, COUNT_MAX),
                publishes,
                depends_on_block,
                depends_on_step,
            )
        )

    def _chunk(self, attribute: str, is_used: bool) -> int:
        """The number of a chunk; -1 means none if the step ignores it."""
        return max(0, self._integer(attribute, 0 if is_used else -1, CHUNKS_MAX - 1))

    def _next(self, attribute: str, expected: int, count_max: int) -> None:
        if expected >= count_max:
            raise self._error(f"has more than {count_max} <{self._open[-1]}> in a row")
        number = self._integer(attribute, 0, count_max - 1)
        if number != expected:
            raise self._error(
                f"has {attribute}='{number}' on <{self._open[-1]}>; the next in order is {expected}"
            )

    def _integer(self, attribute: str, low: int, high: int, default: str | None = None) -> int:
        text = self._attributes.get(attribute, default or "")
        if _INTEGER.match(text) and low <= (number := int(text)) <= high:
            return number
        raise self._error(
            f"has {attribute}={quoted(text)} on <{self._open[-1]}>; it must be {low} to {high}"
        )

    def _pattern(self) -> list[int]:
        """Numbers separated by single spaces; check_structure checks their bounds."""
        words = self._attributes.get("pattern", "").split()
        wrong = [word for word in words if not re.fullmatch("[0-9]{1,5}", word, re.ASCII)]
        if wrong:
            raise self._error(
                f"has {quoted(wrong[0])} in pattern; it must have numbers from 0 to 99999"
            )
        return [int(word) for word in words]

    def _word(self, attribute: str, words: Mapping, default: str | None = None):
        text = self._attributes.get(attribute, default)
        if text in words:
            return words[text]
        raise self._error(
            f"has {attribute}={quoted(text)} on <{self._open[-1]}>; choose one of "
            f"{', '.join(words)}"
        )

    def _error(self, problem: str) -> ScheduleFormatError:
        return ScheduleFormatError(problem, file=self._file, line=self.line())


# --- export ---------------------------------------------------------------------------------------


def _check_fits(schedule: Schedule, ranks: list[RankProgram]) -> None:
    place = f"schedule {quoted(schedule.name)}"
    if not schedule.name.isprintable() or len(schedule.name) > NAME_LENGTH_MAX:
        raise ScheduleFormatError(
            f"{place}: its name must have at most {NAME_LENGTH_MAX} printable characters, as "
            "MSCCL needs"
        )
    if schedule.has_half_blocks:
        raise ScheduleFormatError(
            f"{place}: its thread blocks have half of the threads of a block, which MSCCL does not "
            "have; save all_pairs_all_to_all"
        )
    _check_at_most(place, "ranks", len(ranks), RANKS_MAX)
    _check_at_most(place, "channels", schedule.channels, CHANNELS_MAX)
    _check_at_most(place, "chunks", schedule.chunks, CHUNKS_MAX)
    _check_at_most(place, "bytes", schedule.size_bytes_min, _BYTES_MAX)
    _check_at_most(place, "bytes", schedule.size_bytes_max, _BYTES_MAX)
    for rank, program in enumerate(ranks):
        _check_program(f"{place}, rank {rank}", program)


def _check_program(place: str, program: RankProgram) -> None:
    declared = (program.input_chunks, program.output_chunks, program.scratch_chunks)
    _check_at_most(place, "chunks in a buffer", max(declared), CHUNKS_MAX)
    blocks = program.blocks
    _check_at_most(place, "thread blocks", len(blocks), BLOCKS_MAX)
    senders = Counter(block.channel for block in blocks if block.send_peer != _core.NONE)
    receivers = Counter(block.channel for block in blocks if block.receive_peer != _core.NONE)
    for peers in (senders, receivers):
        most = max(peers.values(), default=0)
        _check_at_most(place, "peers on a channel", most, PEERS_PER_CHANNEL_MAX)
    for number, block in enumerate(blocks):
        _check_block(f"{place}, thread block {number}", block.steps)


def _check_block(place: str, steps: list[Step]) -> None:
    _check_at_most(place, "steps", len(steps), STEPS_MAX)
    has_nop_chain = False
    for number, step in enumerate(steps):
        at = f"{place}, step {number}"
        if _core.is_one_sided(step.type):
            raise ScheduleFormatError(
                f"{at}: it is a {_core.name_of(step.type)}, which MSCCL does not have; save "
                "one-sided steps as MSCCL++ JSON"
            )
        _check_at_most(at, "chunks at once", step.count, COUNT_MAX)
        _check_at_most(
            at, "as a chunk", max(step.source_chunk, step.destination_chunk), CHUNKS_MAX - 1
        )
        _check_at_most(
            at, "as the thread block it depends on", step.depends_on_block, DEPENDENCY_BLOCK_MAX
        )
        if step.type != StepType.nop:
            if has_nop_chain and step.depends_on_block == _core.NONE:
                raise ScheduleFormatError(
                    f"{at}: it follows a nop and must itself have a dependency, as MSCCL needs"
                )
            has_nop_chain = False
        elif step.publishes:
            raise ScheduleFormatError(
                f"{at}: it is a nop that publishes; MSCCL does not raise a flag for a nop"
            )
        else:
            has_nop_chain |= step.depends_on_block != _core.NONE
    if has_nop_chain:
        raise ScheduleFormatError(f"{place}: it ends with a nop; MSCCL needs a step after it")


def _check_at_most(place: str, noun: str, value: int, limit: int) -> None:
    if value > limit:
        raise ScheduleFormatError(f"{place}: it has {value} {noun}; MSCCL supports at most {limit}")


def _write(schedule: Schedule, ranks: list[RankProgram], stream: IO[str]) -> None:
    name = escape(schedule.name, {'"': "&quot;"})
    # Attributes that MSCCL does not have, and its reader skips.
    more = f' root="{schedule.root}"' if schedule.root else ""
    if schedule.pattern:
        more += f' pattern="{" ".join(map(str, schedule.pattern))}"'
    if schedule.rendezvous != _core.Rendezvous.all:
        more += f' rendezvous="{_core.name_of(schedule.rendezvous)}"'
    if schedule.notification != _core.Notification.trailing:
        more += f' notification="{_core.name_of(schedule.notification)}"'
    stream.write(
        f'<algo name="{name}" proto="{_core.name_of(schedule.protocol)}" '
        f'nchannels="{schedule.channels}" nchunksperloop="{schedule.chunks}" '
        f'ngpus="{len(ranks)}" coll="{_key(_COLLECTIVES, schedule.collective)}" '
        f'inplace="{int(schedule.in_place)}" outofplace="{int(schedule.out_of_place)}" '
        f'minBytes="{schedule.size_bytes_min}" maxBytes="{schedule.size_bytes_max}"{more}>\n'
    )
    for rank, program in enumerate(ranks):
        stream.write(
            f'  <gpu id="{rank}" i_chunks="{program.input_chunks}" '
            f'o_chunks="{program.output_chunks}" s_chunks="{program.scratch_chunks}">\n'
        )
        for number, block in enumerate(program.blocks):
            stream.write(
                f'    <tb id="{number}" send="{block.send_peer}" recv="{block.receive_peer}" '
                f'chan="{block.channel}">\n'
            )
            stream.writelines(_step_text(index, step) for index, step in enumerate(block.steps))
            stream.write("    </tb>\n")
        stream.write("  </gpu>\n")
    stream.write("</algo>\n")


def _step_text(index: int, step: Step) -> str:
    return (
        f'      <step s="{index}" type="{_key(_STEP_TYPES, step.type)}" '
        f'srcbuf="{_key(_BUFFERS, step.source)}" srcoff="{step.source_chunk}" '
        f'dstbuf="{_key(_BUFFERS, step.destination)}" dstoff="{step.destination_chunk}" '
        f'cnt="{step.count}" depid="{step.depends_on_block}" deps="{step.depends_on_step}" '
        f'hasdep="{int(step.publishes)}"/>\n'
    )


def _key(words: Mapping, value: object) -> str:
    return next(word for word, meaning in words.items() if meaning == value)
