# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Configurations of NCCL's tuner plugin: one line per range of sizes with its candidate.

The format is that of NVIDIA's example plugin (NVIDIA/nccl, plugins/tuner/example, commit 5067397c):
collective, minimum and maximum bytes, algorithm, protocol, channels, nodes, ranks, and optionally
the pipelined operations and a flag for registered buffers. -1 matches any value, and # begins a
comment. The first matching line applies. The plugin does not report errors: it reads an unknown
word as all-reduce, ring or Simple. Here such a word is an error.
"""

from __future__ import annotations

from dataclasses import dataclass

from towpath.collectives.nccl.communicator import ALGORITHMS, CHANNELS_MAX, PROTOCOLS
from towpath.errors import ConfigError, quoted
from towpath.specs.input_file import read_text

COLLECTIVES = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "reduce_scatter": "reducescatter",
    "broadcast": "broadcast",
    "reduce": "reduce",
}
COLUMNS = "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks"
_FIELDS_LEAST, _FIELDS_MOST = 8, 10
_LINES_MAX = 10_000
_BYTES_MAX = (1 << 63) - 1
_RANKS_MAX = 1 << 20


@dataclass(frozen=True)
class TunerLine:
    """The candidate for a range of sizes; -1 matches any value, and as `channels` leaves the number
    to the plugin.
    """

    collective: str
    least_bytes: int
    most_bytes: int
    algorithm: str
    protocol: str
    channels: int = -1
    nodes: int = -1
    ranks: int = -1
    operations: int = -1
    registered: int = -1

    def text(self) -> str:
        """The line in the file, without the last two fields if they match any value."""
        fields = [
            COLLECTIVES[self.collective], self.least_bytes, self.most_bytes, self.algorithm,
            self.protocol.lower(), self.channels, self.nodes, self.ranks,
        ]  # fmt: skip
        if (self.operations, self.registered) != (-1, -1):
            fields += [self.operations, self.registered]
        return ",".join(map(str, fields))

    def fits(self, collective: str, size_bytes: int, nodes: int, ranks: int) -> bool:
        """True if the line matches this call: one operation on buffers that are not registered."""
        return (
            self.collective == collective
            and self.least_bytes <= size_bytes <= self.most_bytes
            and self.nodes in (-1, nodes)
            and self.ranks in (-1, ranks)
            and self.operations in (-1, 1)
            and self.registered in (-1, 0)
        )


def load_tuner(file: str) -> tuple[TunerLine, ...]:
    """The lines of a file.

    Raises:
        ConfigError: the file cannot be read, or a line is wrong.
    """
    return parse_tuner(read_text(file), file)


def parse_tuner(text: str, file: str) -> tuple[TunerLine, ...]:
    """The lines of a text.

    Args:
        text: the file's content.
        file: name of the file, for errors.

    Raises:
        ConfigError: a line is wrong.
    """
    found: list[TunerLine] = []
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip()
        if not content or content.startswith("#"):
            continue
        if len(found) == _LINES_MAX:
            raise ConfigError(
                f"has more than {_LINES_MAX} lines, the maximum", file=file, line=number
            )
        found.append(_line([field.strip() for field in content.split(",")], file, number))
    if not found:
        raise ConfigError("has no line of a tuner configuration", file=file)
    return tuple(found)


def _line(fields: list[str], file: str, number: int) -> TunerLine:
    if not _FIELDS_LEAST <= len(fields) <= _FIELDS_MOST:
        raise ConfigError(
            f"has {len(fields)} fields; it must have {_FIELDS_LEAST} to {_FIELDS_MOST}: {COLUMNS}",
            file=file, line=number,
        )  # fmt: skip

    def word(position: int, what: str, known: dict[str, str]) -> str:
        if fields[position] not in known:
            allowed = ", ".join(known)
            problem = f"is {quoted(fields[position])}; choose one of {allowed}"
            raise ConfigError(f"{what} {problem}", file=file, line=number)
        return known[fields[position]]

    def whole(position: int, what: str, least: int, most: int) -> int:
        if position >= len(fields):
            return -1
        text = fields[position]
        digits = text.removeprefix("-")
        is_number = digits.isascii() and digits.isdigit() and len(digits) <= 19
        if not is_number or not least <= int(text) <= most:
            problem = f"{what} is {quoted(text)}; it must be {least} to {most}"
            raise ConfigError(problem, file=file, line=number)
        return int(text)

    line = TunerLine(
        collective=word(0, "collective_type", {text: one for one, text in COLLECTIVES.items()}),
        least_bytes=whole(1, "min_bytes", 0, _BYTES_MAX),
        most_bytes=whole(2, "max_bytes", 0, _BYTES_MAX),
        algorithm=word(3, "algorithm", {one: one for one in ALGORITHMS}),
        protocol=word(4, "protocol", {one.lower(): one for one in PROTOCOLS}),
        channels=whole(5, "channels", -1, CHANNELS_MAX),
        nodes=whole(6, "nNodes", -1, _RANKS_MAX),
        ranks=whole(7, "nRanks", -1, _RANKS_MAX),
        operations=whole(8, "numPipeOps", -1, _RANKS_MAX),
        registered=whole(9, "regBuff", -1, 1),
    )
    if line.least_bytes > line.most_bytes:
        raise ConfigError(
            f"has min_bytes={line.least_bytes} above max_bytes={line.most_bytes}",
            file=file, line=number,
        )  # fmt: skip
    if line.channels == 0:
        raise ConfigError(f"channels is 0; it must be 1 to {CHANNELS_MAX}, or -1", file=file,
                          line=number)  # fmt: skip
    return line
