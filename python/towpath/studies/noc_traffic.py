# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Programs of the cores in the NoC study, as plain data that `run` passes to the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from towpath.studies.sweep import Point

if TYPE_CHECKING:
    from towpath._core import Chip, TrafficResult
    from towpath.specs.chip_spec import ChipSpec

_MESSAGES = 16  # that a receiver sends back, one per period
STALLED_MAX = 3
STALL_COLUMNS, STALL_ROWS = 8, 6  # workers that stalled_vcs_programs needs
STALL_BEGIN_CYCLE = 20_000  # when the stalled flows have filled every buffer on their way
_STREAM_WRITES = 64  # writes of the largest packet, per sender of the flow-control experiment
_MESSAGE_PERIOD_CYCLES = 4096  # rare enough that messages do not queue behind each other
_MESSAGE_BYTES = 4
_DATA_VC, _OWN_VC = 1, 2
# Classes of traffic beside that to L1: to memory that takes less than a link brings, to Ethernet
# tiles, and a second kind of messages to the same core.
TRAFFIC_CLASSES = ("dram", "ethernet", "debug")
_OTHER_CLASS_VC = 3
_CLASS_LINE = 7  # workers in a line that class_streams needs


class Coordinate(NamedTuple):
    """A tile in the coordinates of NoC 0."""

    x: int
    y: int


@dataclass(frozen=True)
class ChipShape:
    """Properties of a chip that the study needs.

    Attributes:
        name: name of the chip.
        width: tiles from left to right.
        height: tiles from top to bottom.
        columns: workers in each row of the logical grid.
        workers: the workers in use, row by row.
        flit_bytes: bytes that a link carries per cycle.
        packet_data_flits_max: maximum number of data flits in addition to the header flit.
        pool_flits: buffer that the VCs of a router's port share.
        pool_flits_per_vc_max: part of it that one VC may use.
        dram: the tiles through which DRAM is reached.
        ethernet: the Ethernet tiles.
    """

    name: str
    width: int
    height: int
    columns: int
    workers: tuple[Coordinate, ...]
    flit_bytes: int
    packet_data_flits_max: int
    pool_flits: int
    pool_flits_per_vc_max: int
    dram: tuple[Coordinate, ...] = ()
    ethernet: tuple[Coordinate, ...] = ()

    @property
    def rows(self) -> int:
        return len(self.workers) // self.columns

    def worker(self, column: int, row: int) -> Coordinate:
        """The worker at a position of the logical grid."""
        return self.workers[row * self.columns + column]

    def cropped(self, columns: int, rows: int) -> ChipShape:
        """The same chip, using only the first columns and rows of workers."""
        kept = tuple(self.worker(x, y) for y, x in product(range(rows), range(columns)))
        return replace(self, columns=columns, workers=kept)

    def hops(self, noc: int, begin: Coordinate, end: Coordinate) -> int:
        """Number of routers on the path, including both ends: NoC 0 goes right and down, NoC 1 up
        and left.
        """
        sign = 1 if noc == 0 else -1
        x, y = sign * (end.x - begin.x) % self.width, sign * (end.y - begin.y) % self.height
        return x + y + 1


def shape_of(spec: ChipSpec) -> ChipShape:
    """The shape of a chip's spec."""
    router = spec.router
    return ChipShape(
        name=spec.name,
        width=spec.grid.width,
        height=spec.grid.height,
        columns=spec.worker_grid()[0],
        workers=tuple(Coordinate(*worker) for worker in spec.workers()),
        flit_bytes=router.flit_bytes.value,
        packet_data_flits_max=router.packet_data_flits_max.value,
        pool_flits=router.pool_flits.value,
        pool_flits_per_vc_max=router.pool_flits_per_vc_max.value,
        dram=tuple(Coordinate(*tile) for group in spec.tiles.dram for tile in group),
        ethernet=tuple(Coordinate(*tile) for tile in spec.tiles.ethernet),
    )


# --- traffic --------------------------------------------------------------------------------------


class Step(NamedTuple):
    """One step of a core: `kind` and the fields of _core.TrafficStep."""

    kind: str
    fields: dict[str, Any]


class Program(NamedTuple):
    """Program of one core; `is_other` marks the second of two classes of traffic."""

    core: Coordinate
    steps: list[Step]
    is_other: bool = False


def is_read(pattern: str) -> bool:
    """True if the pattern reads rather than writes."""
    return "_from_" in pattern


def destinations(shape: ChipShape, pattern: str) -> dict[Coordinate, list[Coordinate]]:
    """The cores that each master writes to or reads from: column by column, in tt-metal's order.

    All to all includes the master itself; one to all does not.
    """
    first, workers = shape.workers[0], sorted(shape.workers)
    kind = pattern.replace("_from_", "_to_")
    if kind == "loopback":
        return {first: [first]}
    if kind == "one_to_one":
        return {first: [shape.worker(min(1, shape.columns - 1), min(1, shape.rows - 1))]}
    if kind == "one_to_all":
        return {first: workers[1:]}
    return {master: workers for master in workers}


def bandwidth_programs(shape: ChipShape, point: Point) -> list[Program]:
    """Every master sends to its destinations one after the other, and then waits for all
    transactions.

    The i-th transaction to a destination uses VC i % vcs. With `turned`, masters start at different
    destinations and VCs: at 9 y + x, as the study proposes.
    """
    kind = "read" if is_read(point["pattern"]) else "write"
    size_bytes, vcs, count = point["size_bytes"], point["vcs"], point["per_destination"]
    programs = []
    for master, targets in destinations(shape, point["pattern"]).items():
        turn = _turn(master) if point["turned"] else 0
        steps: list[Step] = []
        for j in range(len(targets)):
            to = targets[(j + turn) % len(targets)]
            steps += _transactions(kind, to, size_bytes, count=count, first=turn, vcs=vcs)
        steps.append(Step(f"{kind}_barrier", {}))
        programs.append(Program(master, steps))
    return programs


def _turn(core: Coordinate) -> int:
    return 9 * core.y + core.x


def _transactions(
    kind: str, to: Coordinate, size_bytes: int, *, count: int, first: int, vcs: int
) -> list[Step]:
    """`count` transactions, of which the i-th uses VC (first + i) % vcs.

    A step counts its VCs from its own start, so the rest of a round is a separate step.
    """
    begin = first % vcs
    rest = min(count, vcs - begin) if begin else 0
    parts = [(rest, begin, vcs - begin), (count - rest, 0, vcs)]
    return [
        Step(kind, {"to": to, "size_bytes": size_bytes, "count": n, "first_vc": vc, "vcs": round_})
        for n, vc, round_ in parts
        if n
    ]


def flow_control_programs(shape: ChipShape, point: Point) -> list[Program]:
    """Pairs of cores half a row apart: one streams data to the other, which sends back credits.

    Directions alternate from pair to pair, so that credits share links with the data of other
    pairs.
    """
    half = shape.columns // 2
    stream = {
        "size_bytes": shape.packet_data_flits_max * shape.flit_bytes,
        "count": _STREAM_WRITES, "first_vc": _DATA_VC,
    }  # fmt: skip
    vc = _DATA_VC if point["placement"] == "data_vc" else _OWN_VC
    message = {"size_bytes": _MESSAGE_BYTES, "first_vc": vc}
    programs = []
    for row, column in product(range(shape.rows), range(half)):
        left, right = shape.worker(column, row), shape.worker(column + half, row)
        sender, receiver = (left, right) if column % 2 == 0 else (right, left)
        credits = [
            step
            for k in range(_MESSAGES)
            for step in (
                Step("wait_until", {"cycle": k * _MESSAGE_PERIOD_CYCLES}),
                Step(point["message"], {"to": sender, **message}),
            )
        ]
        programs.append(Program(receiver, credits))
        if point["placement"] != "alone":
            data = [Step("write", {"to": receiver, **stream}), Step("write_barrier", {})]
            programs.append(Program(sender, data))
    return programs


def throttle_programs(shape: ChipShape, point: Point) -> list[Program]:
    """All to all, turned, with at most one transaction per interval issued by every core."""
    size_bytes, vcs = point["size_bytes"], point["vcs"]
    programs = []
    for master, targets in destinations(shape, "all_to_all").items():
        turn = _turn(master)
        steps: list[Step] = []
        for k in range(point["per_destination"] * len(targets)):
            to = targets[(k + turn) % len(targets)]
            steps.append(Step("wait_until", {"cycle": k * point["interval_cycles"]}))
            steps += _transactions("write", to, size_bytes, count=1, first=k + turn, vcs=vcs)
        steps.append(Step("write_barrier", {}))
        programs.append(Program(master, steps))
    return programs


class Stream(NamedTuple):
    """Data from one core to one tile."""

    core: Coordinate
    to: Coordinate
    is_other: bool


def class_streams(shape: ChipShape, noc: int, other: str) -> list[Stream]:
    """Five streams over the same links: three of class `other`, and between them two to L1.

    All streams follow one line of workers, a row or a column. The other class goes to its tile at
    the end, or with "debug" to the last worker. The two go to workers near the end, or with "debug"
    to the same worker. Empty if the chip has no such line.
    """
    tiles = {"dram": shape.dram, "ethernet": shape.ethernet, "debug": shape.workers}[other]
    for tile, axis in product(tiles, ("y", "x")):
        line = [w for w in shape.workers if getattr(w, axis) == getattr(tile, axis)]
        line.sort(key=lambda worker: -shape.hops(noc, worker, tile))
        if len(line) < _CLASS_LINE:
            continue
        ends = (tile, tile) if other == "debug" else (line[-1], line[-2])
        return [
            *(Stream(line[2 * k], tile, True) for k in range(3)),
            *(Stream(line[2 * k + 1], ends[k], False) for k in range(2)),
        ]
    return []


def class_programs(shape: ChipShape, point: Point) -> list[Program]:
    """The streams of class_streams(), all on one VC or with the other class on a separate VC."""
    other_vc = _OTHER_CLASS_VC if point["placement"] == "own_vc" else _DATA_VC
    packet = {
        "size_bytes": shape.packet_data_flits_max * shape.flit_bytes, "count": _STREAM_WRITES,
    }  # fmt: skip
    programs = []
    for core, to, is_other in class_streams(shape, point["noc"], point["other"]):
        stream = {"to": to, "first_vc": other_vc if is_other else _DATA_VC, **packet}
        steps = [Step("write", stream), Step("write_barrier", {})]
        programs.append(Program(core, steps, is_other))
    return programs


def stalled_vcs_programs(shape: ChipShape, point: Point) -> list[Program]:
    """A flow along a row of NoC 0, which shares its links with flows that are nearly stalled.

    Stalled flow k, on VC k, follows the row and turns down a separate column. There one core per
    row joins it, on the same VC and toward one destination. At each junction the flows get half of
    the rate each, so the flow with the longest path gets little. The last flow, on the last VC,
    leaves the row before the others turn. Its program is the first. The `rows` of the point is the
    length of the columns, and `joins` the number of cores that join each flow in the row: each of
    them halves the rate of the stalled flows.
    """
    last_row = point["rows"] - 1
    turn = STALL_COLUMNS - STALLED_MAX + STALLED_MAX * point.get("joins", 0)
    packet = {"size_bytes": shape.packet_data_flits_max * shape.flit_bytes}
    barrier = Step("write_barrier", {})

    def writes(to: Coordinate, vc: int, count: int) -> Step:
        return Step("write", {"to": to, "first_vc": vc, "count": count, **packet})

    free = [
        Step("wait_until", {"cycle": STALL_BEGIN_CYCLE}),
        writes(shape.worker(4, 0), STALLED_MAX, 16),
        barrier,
    ]
    programs = [Program(shape.worker(3, 0), free)]
    for k in range(point["stalled"]):
        to = shape.worker(turn + k, last_row)
        programs.append(Program(shape.worker(k, 0), [writes(to, k, 64), barrier]))
        in_row = [
            shape.worker(column + k, 0)
            for column in range(STALL_COLUMNS - STALLED_MAX, turn, STALLED_MAX)
        ]
        in_column = [shape.worker(turn + k, row) for row in range(1, last_row)]
        programs += [Program(core, [writes(to, k, 256), barrier]) for core in (*in_row, *in_column)]
    return programs


def run(
    chip: Chip, programs: Sequence[Program], noc: int, seed: int, *, with_requests: bool
) -> TrafficResult:
    """The simulator's result for programs on one NoC, with the times of all requests if
    requested.
    """
    from towpath import _core

    made = [
        _core.TrafficProgram(
            core=program.core,
            noc=noc,
            steps=[_core.TrafficStep(step.kind, **step.fields) for step in program.steps],
        )
        for program in programs
    ]
    return _core.run_traffic(chip, made, seed=seed, records_requests=with_requests)
