# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Random calls of collectives, and what becomes of each on one rank; test_random_collectives asks.

A call is right, or refused before anything was written. Every rank draws the same calls from a
seed. In some of them one rank, the odd one, calls something else.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, replace

import numpy as np

from inside import _core
from inside.collectives import OPERATIONS, type_bytes
from inside.live import TYPES
from inside.schedules import algorithms_within
from numpy_data import CallData, count_wrong
from towpath import ConfigError, TransportError, connect

COLLECTIVES = ("all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all")
REDUCTIONS = ("all_reduce", "reduce", "reduce_scatter")
ROOTED = ("reduce", "broadcast")
OF_ROWS = ("reduce_scatter", "all_to_all")
LARGEST_BYTES = 100 << 10
PAD = 5  # elements before and after each array, which no call may touch
TIMEOUT_S = 30.0
IN_EVERY = 4  # so many calls, one has an odd rank

# Forms of the arrays, and how often; broadcast has one array only.
FORMS = {
    "apart": 6, "in place": 6, "strided": 3, "reversed": 1, "strided over the output": 1,
    "shifted": 3, "strided output": 1, "output to read": 1, "output of another shape": 1,
}  # fmt: skip
FORMS_OF_BROADCAST = ("in place", "strided output", "output to read")
OF_SAME_SIZE = {
    name: [other for other in TYPES if other != name and type_bytes(other) == type_bytes(name)]
    for name in TYPES
}


@dataclass(frozen=True)
class Call:
    """One rank's call: `elements` of the whole array, in `axes` dimensions."""

    collective: str
    ranks: int
    elements: int
    type_name: str
    operation: str
    root: int
    algorithm: str | None
    form: str
    axes: int

    @property
    def data(self) -> CallData:
        return CallData(self.collective, self.ranks, self.elements, self.type_name,
                        self.operation, self.root)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """What all ranks call, but for the odd one, if there is one."""

    call: Call
    odd_call: Call
    odd: int | None
    what_differs: str

    def of(self, rank: int) -> Call:
        return self.odd_call if rank == self.odd else self.call


@dataclass(frozen=True)
class Outcome:
    """What became of a call: "right", "refused", "told" (an error of the group), or what is wrong.

    `peer` is the rank that an error of the group names.
    """

    verdict: str
    kind: str = ""
    peer: int | None = None
    sentence: str = ""


# --- drawing -------------------------------------------------------------------------------------


def algorithms_of(collective: str, ranks: int, has_memory: bool) -> list[str]:
    """Those that such a group runs."""
    reaches = [_core.Reach.fifo] + [_core.Reach.memory] * has_memory
    on_grids = {each.name for each in _core.algorithms() if each.needs_grid}
    found = []
    for name in algorithms_within(collective, reaches):
        try:
            _core.make_schedule(name, ranks=ranks)
        except ConfigError:
            continue
        if name not in on_grids:
            found.append(name)
    return found


def drawn_elements(chance: random.Random, ranks: int, type_name: str) -> int:
    most = LARGEST_BYTES // type_bytes(type_name) // ranks
    part = chance.choice([0, 1, chance.randint(2, 70), chance.randint(2, 700), *[
        chance.randint(1, most)] * 4])  # fmt: skip
    return part * ranks


def drawn_call(chance: random.Random, ranks: int, has_memory: bool) -> Call:
    collective = chance.choice(COLLECTIVES)
    type_name = chance.choice(list(TYPES))
    if collective == "broadcast":
        form = chance.choices(FORMS_OF_BROADCAST, [8, 1, 1])[0]
    else:
        form = chance.choices(list(FORMS), list(FORMS.values()))[0]
    elements = drawn_elements(chance, ranks, type_name)
    if elements <= ranks and form in ("shifted", "strided over the output"):
        form = "apart"  # a single element is contiguous, and lies in one rank's own place
    algorithms = [None, chance.choice(algorithms_of(collective, ranks, has_memory))]
    return Call(
        collective, ranks, elements, type_name,
        chance.choice(OPERATIONS) if collective in REDUCTIONS else "sum",
        chance.randrange(ranks) if collective in ROOTED else 0,
        chance.choices(algorithms, [3, 1])[0], form, chance.randint(1, 3),
    )  # fmt: skip


def other(chance: random.Random, words, one):
    return chance.choice([each for each in words if each != one])


def changes_of(chance: random.Random, call: Call, has_memory: bool) -> dict[str, Call]:
    """What this call can differ in, with a call that does."""
    more = call.ranks * chance.choice([1, 2, 16])
    alike = OF_SAME_SIZE[call.type_name] or list(TYPES)
    names = [None, *algorithms_of(call.collective, call.ranks, has_memory)]
    moved = other(chance, [each for each in COLLECTIVES if each != "broadcast"], call.collective)
    form = "apart" if call.form in FORMS_OF_BROADCAST else call.form
    changes = {
        "size": replace(call, elements=call.elements + more),
        "type": replace(call, type_name=other(chance, alike, call.type_name)),
        "collective": replace(call, collective=moved, form=form, algorithm=None, root=0),
        "algorithm": replace(call, algorithm=other(chance, names, call.algorithm)),
    }
    if call.collective in REDUCTIONS:
        operation = other(chance, OPERATIONS, call.operation)
        changes["operation"] = replace(call, operation=operation)
    if call.collective in ROOTED:
        changes["root"] = replace(call, root=other(chance, range(call.ranks), call.root))
    if call.elements:
        changes["none"] = replace(call, elements=0)
        changes["refusal"] = replace(call, form="strided output")
    if call.collective != "broadcast" and call.elements > call.ranks:
        changes["form"] = replace(call, form=other(chance, list(FORMS)[:5], call.form))
    return changes


def drawn_case(seed: str, ranks: int, has_memory: bool) -> Case:
    chance = random.Random(seed)
    call = drawn_call(chance, ranks, has_memory)
    if chance.randrange(IN_EVERY):
        return Case(call, call, None, "nothing")
    # A group that refuses a call hears nothing of what differs in it.
    plain = "in place" if call.collective == "broadcast" else chance.choice(list(FORMS)[:3])
    call = replace(call, form=plain)
    what, odd_call = chance.choice(list(changes_of(chance, call, has_memory).items()))
    return Case(call, odd_call, chance.randrange(ranks), what)


# --- one rank's arrays ---------------------------------------------------------------------------


def address_of(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


class Arrays:
    """The input and the output of a call, in memory that is compared afterwards."""

    def __init__(self, call: Call, rank: int) -> None:
        self.call = call
        self.kind = TYPES[call.type_name]
        self.memories: list[np.ndarray] = []
        given = call.data.input_of(rank) if call.elements else np.empty(0, self.kind)
        self.expected = call.data.expected_of(rank) if call.elements else None
        count = call.elements
        if call.collective == "reduce_scatter":
            count //= call.ranks
        if call.collective == "broadcast" and rank != call.root:
            given = self._pattern(len(given))
        self.given = given.reshape(self._shape(len(given), call.collective in OF_ROWS))
        if call.collective in ("all_to_all", "all_gather"):
            out_shape = self._shape(count, True)
        elif call.collective == "reduce_scatter":
            out_shape = self.given.shape[1:]
        else:
            out_shape = self.given.shape
        if call.collective == "all_gather":
            self.given = given.reshape(out_shape[1:])
        self.array: np.ndarray
        self.out: np.ndarray
        self._make(out_shape, rank)
        self.is_refused = self._is_refused(rank)
        self.before = [memory.copy() for memory in self.memories]

    def _pattern(self, count: int) -> np.ndarray:
        return np.resize(np.frombuffer(bytes(range(60, 123)) * 8, self.kind), count)

    def _memory(self, count: int) -> np.ndarray:
        """So many elements between others, all of a pattern."""
        memory = self._pattern(count + 2 * PAD)
        self.memories.append(memory)
        return memory[PAD : PAD + count]

    def _shape(self, count: int, has_rows: bool) -> tuple[int, ...]:
        shape = (self.call.ranks,) if has_rows else ()
        rest = count // self.call.ranks if has_rows else count
        for divisor in (2, 3)[: self.call.axes - 1]:
            if rest % divisor == 0:
                shape += (divisor,)
                rest //= divisor
        return (*shape, rest)

    def _new(self, values: np.ndarray) -> np.ndarray:
        array = self._memory(values.size).reshape(values.shape)
        array[...] = values
        return array

    def _empty(self, shape: tuple[int, ...]) -> np.ndarray:
        return self._memory(int(np.prod(shape))).reshape(shape)

    def _make(self, out_shape: tuple[int, ...], rank: int) -> None:
        form, given = self.call.form, self.given
        if self.call.collective == "broadcast" or form == "in place":
            self._make_in_place(out_shape, rank, form)
        elif form == "strided over the output":
            memory = self._memory(max(2 * given.size, int(np.prod(out_shape))))
            self.array = memory[: 2 * given.size].reshape((*given.shape, 2))[..., 0]
            self.array[...] = given
            self.out = memory[: int(np.prod(out_shape))].reshape(out_shape)
        elif form == "shifted":
            count = int(np.prod(out_shape))
            memory = self._memory(max(count, given.size) + 1)
            self.array = memory[1 : given.size + 1].reshape(given.shape)
            self.array[...] = given
            self.out = memory[:count].reshape(out_shape)
        else:
            self.array = self._input(form)
            self.out = self._output(form, out_shape)

    def _input(self, form: str) -> np.ndarray:
        if form == "strided":
            return np.repeat(self._new(self.given)[..., None], 2, axis=-1)[..., 0]
        if form == "reversed":
            return np.ascontiguousarray(self.given[..., ::-1])[..., ::-1]
        return self._new(self.given)

    def _output(self, form: str, shape: tuple[int, ...]) -> np.ndarray:
        if form == "strided output":
            return self._empty((*shape, 2))[..., 0]
        out = self._empty((*shape[:-1], shape[-1] + (form == "output of another shape")))
        out.flags.writeable = form != "output to read"
        return out

    def _make_in_place(self, out_shape: tuple[int, ...], rank: int, form: str) -> None:
        if self.call.collective == "all_gather":
            self.out = self._empty(out_shape)
            self.array = self.out[rank]
            self.array[...] = self.given
            return
        self.array = self._new(self.given)
        self.out = self.array[rank] if self.call.collective == "reduce_scatter" else self.array
        if form == "strided output":
            self.array = self.out = self._empty((*out_shape, 2))[..., 0]
        if form == "output to read":
            self.array.flags.writeable = False

    def _is_refused(self, rank: int) -> bool:
        if self.call.form in ("output to read", "output of another shape"):
            return True
        # An input that is not contiguous is copied first.
        is_copied = not self.array.flags.c_contiguous
        return not self.out.flags.c_contiguous or (not is_copied and self._overlap_wrongly(rank))

    def _overlap_wrongly(self, rank: int) -> bool:
        array, out = self.array, self.out
        if not np.shares_memory(array, out):
            return False
        if self.call.collective == "all_gather":
            out = out[rank]
        if self.call.collective == "reduce_scatter":
            array = array[rank]
        return address_of(array) != address_of(out)

    def ask(self, group) -> None:
        call = self.call
        options = {"algorithm": call.algorithm}
        if call.type_name == "bfloat16":
            options["dtype"] = "bfloat16"
        if call.collective in ROOTED:
            options["root"] = call.root
        if call.collective in REDUCTIONS:
            options["op"] = call.operation
        if call.collective != "broadcast":
            options["out"] = self.out
        getattr(group, call.collective)(self.array, **options)

    def is_untouched(self) -> bool:
        return all(
            np.array_equal(now.view(np.uint8), before.view(np.uint8))
            for now, before in zip(self.memories, self.before, strict=True)
        )

    def is_right(self) -> bool:
        """The result is, and nothing else has changed."""
        if self.expected is not None and count_wrong(
            np.ascontiguousarray(self.out).reshape(-1), self.expected, self.call.type_name
        ):
            return False
        for now, before in zip(self.memories, self.before, strict=True):
            first = address_of(self.out) - address_of(now)
            now, before = now.view(np.uint8).copy(), before.view(np.uint8).copy()
            for each in (now, before):
                each[max(first, 0) : max(first + self.out.nbytes, 0)] = 0
            if not np.array_equal(now, before):
                return False
        return True


# --- one rank ------------------------------------------------------------------------------------


def outcome_of(group, arrays: Arrays) -> Outcome:
    """Calls, and looks at the memory."""
    try:
        arrays.ask(group)
    except TransportError as error:
        verdict = "told" if arrays.is_untouched() else "told, but written"
        return Outcome(verdict, error.kind, error.peer, str(error))
    except ConfigError as error:
        if not arrays.is_refused:
            return Outcome("refused without a need", sentence=str(error))
        return Outcome("refused" if arrays.is_untouched() else "refused, but written",
                       sentence=str(error))  # fmt: skip
    if arrays.is_refused:
        return Outcome("not refused")
    return Outcome("right" if arrays.is_right() else "wrong")


def told_later(group, outcome: Outcome) -> Outcome:
    """A rank that only sends may learn in its next call that another one called something else."""
    if outcome.verdict not in ("right", "refused"):
        return outcome
    try:
        # The first one may end on a rank that the two that differ have nothing to do with.
        for _ in range(2):
            group.barrier()
    except TransportError as error:
        return replace(outcome, kind=error.kind, peer=error.peer, sentence=str(error))
    return outcome


def run(referee, transport: str, has_memory: bool, seed: str, calls: int) -> list[Outcome]:
    """What became of each call on this rank. `referee` is another group, which stays."""
    rank, ranks = referee.rank, referee.ranks
    outcomes: list[Outcome] = []
    group = None
    groups = 0
    for number in range(calls):
        if group is None:
            name = f"random-{os.environ['TOWPATH_JOB']}-{groups}"
            group = connect(name, rank, ranks, transport=transport, timeout_s=TIMEOUT_S)
            groups += 1
        case = drawn_case(f"{seed}-{number}", ranks, has_memory)
        outcome = outcome_of(group, Arrays(case.of(rank), rank))
        # Who refuses its call alone leaves; who was told leaves as well.
        if case.odd is not None and not (outcome.verdict == "refused" and rank == case.odd):
            outcome = told_later(group, outcome)
        has_ended = bool(outcome.kind) or case.what_differs == "refusal"
        if has_ended:
            group.close()
        outcomes.append(outcome)
        ended = referee.all_reduce(np.array([has_ended], np.int32), "max")
        if ended[0]:
            group.close()
            group = None
    if group is not None:
        group.close()
    return outcomes
