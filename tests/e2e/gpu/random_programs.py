# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Random programs of thread blocks that send each other data: right ones, and ones with a mistake.

A program is made phase by phase. In a phase one block sends to another, in one of the ways in which
the receiver may learn that the data are there. Each block does its parts of the phases in their
order, so that no right program can stand still.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

END, PUT, PUT_SIGNAL, SIGNAL, FENCE, QUIET, WAIT, READ, WRITE, SLEEP, RESET, BARRIER, \
    PUT_UNREGISTERED, DIVERGE = range(14)  # fmt: skip
EQUAL, GREATER_EQUAL = 0, 5
SET, ADD = 9, 10
SLOT_WORDS = 32
FIELDS = 6

# What the library must call each mistake; None: nobody signals, which is a deadlock.
MISTAKES = {
    "no wait": "unawaited_data",
    "wait for another signal": "unawaited_data",
    "no fence": "unawaited_data",
    "fence, and a third tells": "fence_for_quiet",
    "fence before the source changes": "fence_for_quiet",
    "no quiet before the source changes": "source_changed",
    "signal again at once": "signal_reused",
    "equality overshot": "overshot_wait",
    "unregistered source": "unregistered_buffer",
    "barriers diverge": "divergent_barrier",
    "no signal": None,
}
LONG_NS = 2_000_000  # longer than a program takes: what others do has begun by then


@dataclass(frozen=True)
class Agent:
    """A block of a PE."""

    pe: int
    block: int


@dataclass
class Pair:
    """What goes from one block to another."""

    stage: int = 0  # the last value of its signal
    acknowledged: int = 0  # the last message of which the sender knows that it was read
    sent: int = 0
    fixed: bool = True  # the sender knows that the signal of value 1 was seen and cleared


@dataclass
class Program:
    """Instructions of each block.

    Attributes:
        pes: how many PEs.
        blocks: of each PE.
        code: by PE and block: operation and six fields.
    """

    pes: int
    blocks: int
    code: dict[Agent, list[list[int]]] = field(default_factory=dict)

    @property
    def agents(self) -> list[Agent]:
        """All blocks."""
        return [Agent(pe, block) for pe in range(self.pes) for block in range(self.blocks)]

    def slots(self) -> int:
        """Slots of a PE: for each of its blocks one from each sender and one to each receiver."""
        return self.blocks * 2 * len(self.agents)

    def words(self) -> int:
        """Words of a PE: four of each of its blocks for each other block."""
        return self.blocks * 4 * len(self.agents)


class Generator:
    """Makes one program."""

    def __init__(self, seed: int, mistake: str | None) -> None:
        self.random = random.Random(seed)
        self.mistake = mistake
        pes = self.random.choice([2, 2, 3, 4])
        if mistake == "fence, and a third tells":
            pes = max(pes, 3)
        self.program = Program(pes, self.random.choice([1, 1, 2]))
        self.agents = self.program.agents
        self.program.code = {agent: [] for agent in self.agents}
        self.pairs: dict[tuple[Agent, Agent], Pair] = {}
        self.value = 0

    # --- places -------------------------------------------------------------------------------

    def number(self, agent: Agent) -> int:
        return agent.pe * self.program.blocks + agent.block

    def incoming(self, receiver: Agent, sender: Agent) -> int:
        return receiver.block * 2 * len(self.agents) + self.number(sender)

    def outgoing(self, sender: Agent, receiver: Agent) -> int:
        return (sender.block * 2 + 1) * len(self.agents) + self.number(receiver)

    def word(self, owner: Agent, other: Agent, kind: int) -> int:
        return (owner.block * len(self.agents) + self.number(other)) * 4 + kind

    def add(self, agent: Agent, operation: int, *, peer: int = 0, target: int = 0, source: int = 0,
            word: int = 0, value: int = 0, option: int = 0) -> None:  # fmt: skip
        self.program.code[agent].append([operation, peer, target, source, word, value, option])

    # --- phases -------------------------------------------------------------------------------

    def make(self) -> Program:
        """A program of some phases, with the mistake in the last one."""
        for _ in range(self.random.randint(3, 10)):
            if self.program.blocks == 1 and self.random.random() < 0.1:
                self.barrier()
            else:
                self.phase()
        # It comes last: what others do later may tell a late receiver that the data are there.
        if self.mistake:
            self.spoiled_phase()
        return self.program

    def two(self) -> tuple[Agent, Agent]:
        sender = self.random.choice(self.agents)
        receiver = self.random.choice([each for each in self.agents if each.pe != sender.pe])
        return sender, receiver

    def begin(self, sender: Agent, receiver: Agent) -> tuple[Pair, int]:
        """The sender has new data, once it knows that the last were read."""
        pair = self.pairs.setdefault((sender, receiver), Pair())
        if pair.acknowledged < pair.sent:
            self.add(sender, WAIT, word=self.word(sender, receiver, 1), value=pair.sent,
                     option=GREATER_EQUAL)  # fmt: skip
            pair.acknowledged = pair.sent
        self.value += 100
        self.add(sender, WRITE, target=self.outgoing(sender, receiver), value=self.value)
        pair.sent += 1
        return pair, self.value

    def read(self, receiver: Agent, sender: Agent, value: int, pair: Pair) -> None:
        """The receiver reads, and says so."""
        self.add(receiver, READ, target=self.incoming(receiver, sender), value=value)
        self.add(receiver, SIGNAL, peer=sender.pe, word=self.word(sender, receiver, 1),
                 value=pair.sent, option=SET)  # fmt: skip

    def put(self, sender: Agent, receiver: Agent) -> None:
        self.add(sender, PUT, peer=receiver.pe, target=self.incoming(receiver, sender),
                 source=self.outgoing(sender, receiver))  # fmt: skip

    def put_signal(self, sender: Agent, receiver: Agent, kind: int, value: int) -> None:
        self.add(sender, PUT_SIGNAL, peer=receiver.pe, target=self.incoming(receiver, sender),
                 source=self.outgoing(sender, receiver), word=self.word(receiver, sender, kind),
                 value=value, option=SET)  # fmt: skip

    def signal(self, sender: Agent, receiver: Agent, value: int) -> None:
        self.add(sender, SIGNAL, peer=receiver.pe, word=self.word(receiver, sender, 0),
                 value=value, option=SET)  # fmt: skip

    def wait(self, receiver: Agent, sender: Agent, value: int) -> None:
        self.add(receiver, WAIT, word=self.word(receiver, sender, 0), value=value,
                 option=GREATER_EQUAL)  # fmt: skip

    def phase(self) -> None:
        sender, receiver = self.two()
        pair, value = self.begin(sender, receiver)
        ways = [self.with_signal, self.with_fence, self.with_quiet, self.with_fixed_signal]
        if self.program.pes > 2:
            ways.append(self.by_a_third)
        self.random.choice(ways)(sender, receiver, pair)
        self.read(receiver, sender, value, pair)
        if self.random.random() < 0.3:
            self.add(receiver, SLEEP, value=self.random.randint(100, 20_000))

    def with_signal(self, sender: Agent, receiver: Agent, pair: Pair) -> None:
        pair.stage += 1
        self.put_signal(sender, receiver, 0, pair.stage)
        self.wait(receiver, sender, pair.stage)

    def with_fence(self, sender: Agent, receiver: Agent, pair: Pair) -> None:
        self.put(sender, receiver)
        self.add(sender, FENCE)
        pair.stage += 1
        self.signal(sender, receiver, pair.stage)
        self.wait(receiver, sender, pair.stage)

    def with_quiet(self, sender: Agent, receiver: Agent, pair: Pair) -> None:
        self.put(sender, receiver)
        self.add(sender, QUIET)
        # The source is free again.
        self.add(sender, WRITE, target=self.outgoing(sender, receiver), value=7)
        pair.stage += 1
        self.signal(sender, receiver, pair.stage)
        self.wait(receiver, sender, pair.stage)

    def with_fixed_signal(self, sender: Agent, receiver: Agent, pair: Pair) -> None:
        # begin() has waited until the last message was read, and cleared before that.
        self.put_signal(sender, receiver, 2, 1)
        word = self.word(receiver, sender, 2)
        self.add(receiver, WAIT, word=word, value=1, option=EQUAL)
        self.add(receiver, RESET, word=word)

    def third(self, sender: Agent, receiver: Agent) -> Agent:
        return self.random.choice(
            [each for each in self.agents if each.pe not in (sender.pe, receiver.pe)]
        )

    def by_a_third(self, sender: Agent, receiver: Agent, pair: Pair) -> None:
        third = self.third(sender, receiver)
        self.put(sender, receiver)
        self.add(sender, QUIET)
        for one, other in ((sender, third), (third, receiver)):
            between = self.pairs.setdefault((one, other), Pair())
            between.stage += 1
            self.signal(one, other, between.stage)
            self.wait(other, one, between.stage)

    def barrier(self) -> None:
        for agent in self.agents:
            self.add(agent, BARRIER)

    # --- a mistake ----------------------------------------------------------------------------

    def tell(self, one: Agent, other: Agent) -> None:
        """A signal of a mistake, on a word of its own.

        On the words of right phases an earlier wait that is late may see it, tell a block of the
        sender's PE, and that block's quiet makes the mistake harmless.
        """
        word = self.word(other, one, 3)
        self.add(one, SIGNAL, peer=other.pe, word=word, value=1, option=SET)
        self.add(other, WAIT, word=word, value=1, option=GREATER_EQUAL)

    def spoiled_phase(self) -> None:
        sender, receiver = self.two()
        pair, value = self.begin(sender, receiver)
        source = self.outgoing(sender, receiver)
        mistake = self.mistake
        if mistake == "no wait":
            # On a word of its own: an earlier wait that is late must not see it.
            self.put_signal(sender, receiver, 3, 1)
            self.add(receiver, SLEEP, value=LONG_NS)
        elif mistake == "wait for another signal":
            self.put_signal(sender, receiver, 2, 1)
            self.tell(sender, receiver)
        elif mistake == "no fence":
            self.put(sender, receiver)
            self.tell(sender, receiver)
        elif mistake == "fence, and a third tells":
            third = self.third(sender, receiver)
            self.put(sender, receiver)
            self.add(sender, FENCE)
            self.tell(sender, third)
            self.tell(third, receiver)
        elif mistake in ("fence before the source changes", "no quiet before the source changes"):
            self.put(sender, receiver)
            if mistake.startswith("fence"):
                self.add(sender, FENCE)
            self.add(sender, WRITE, target=source, value=7)
            return
        elif mistake == "signal again at once":
            for _ in range(2):
                self.put_signal(sender, receiver, 2, 1)
            for _ in range(2):
                word = self.word(receiver, sender, 2)
                self.add(receiver, WAIT, word=word, value=1, option=EQUAL)
                self.add(receiver, RESET, word=word)
        elif mistake == "equality overshot":
            word = self.word(receiver, sender, 3)
            for _ in range(2):
                self.add(sender, SIGNAL, peer=receiver.pe, word=word, value=1, option=ADD)
            self.add(receiver, SLEEP, value=LONG_NS)
            self.add(receiver, WAIT, word=word, value=1, option=EQUAL)
        elif mistake == "unregistered source":
            self.add(sender, PUT_UNREGISTERED, peer=receiver.pe,
                     target=self.incoming(receiver, sender))  # fmt: skip
        elif mistake == "barriers diverge":
            self.add(sender, DIVERGE)
        elif mistake == "no signal":
            self.add(receiver, WAIT, word=self.word(receiver, sender, 3), value=1, option=EQUAL)
        self.read(receiver, sender, value, pair)


def program(seed: int, mistake: str | None = None) -> Program:
    """The program of a seed.

    Args:
        seed: the same gives the same program.
        mistake: of MISTAKES; None for a right program.

    Returns:
        Its instructions.
    """
    return Generator(seed, mistake).make()


def run(gpus, program) -> int:
    """Runs a program of the interpreter on loaded PEs; how many elements were wrong."""
    length = 1 + max(len(code) for code in program.code.values())
    width = 1 + FIELDS
    code = gpus.symmetric(program.blocks * length * width, "int64")
    slots = gpus.symmetric(program.slots() * SLOT_WORDS, "int64")
    words = gpus.symmetric(program.words(), "uint64")
    wrong = gpus.symmetric(1, "int64")
    for agent, instructions in program.code.items():
        place = code.on[agent.pe].reshape(program.blocks, length, width)[agent.block]
        if instructions:
            place[: len(instructions)] = instructions
    gpus.launch("interpret", program.blocks, 32, [code, length, slots, words, wrong])
    return sum(int(each[0]) for each in wrong.on)
