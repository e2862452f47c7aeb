# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Spoils texts in the ways that files get spoilt, and in those that an attacker would try."""

from __future__ import annotations

import random
import re

_ENTITY_BOMB = (
    '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
    '<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;">]>'
)
_ALIAS_BOMB = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{here}: &{here} [*{there}, *{there}, *{there}, *{there}, *{there}, *{there}]\n"
    for there, here in zip("abcdefgh", "bcdefghi")
)
_HOSTILE = (
    "-1",
    "0",
    "1e999",
    "-1e308",
    "9" * 30,
    "9" * 5000,
    "nan",
    ".inf",
    "null",
    "true",
    "''",
    "[]",
    "{}",
    "'text'",
    "2024-01-01",
    "0x10",
    "!!python/object/apply:os.system [ls]",
    "é\u2028\x85",
)


def mutant(text: str, seed: int) -> bytes:
    """`text` with one to three things wrong with it; the same for the same seed."""
    chance = random.Random(seed)
    content = text.encode()
    for _ in range(chance.choice((1, 1, 2, 3))):
        content = chance.choice(_MUTATIONS)(content, chance)
    return content


def _flip_bytes(content: bytes, chance: random.Random) -> bytes:
    spoilt = bytearray(content)
    for _ in range(chance.randint(1, 8) if spoilt else 0):
        spoilt[chance.randrange(len(spoilt))] ^= 1 << chance.randrange(8)
    return bytes(spoilt)


def _insert_bytes(content: bytes, chance: random.Random) -> bytes:
    at = chance.randint(0, len(content))
    return content[:at] + chance.randbytes(chance.randint(1, 8)) + content[at:]


def _truncate(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randint(0, len(content))]


def _change_lines(content: bytes, chance: random.Random) -> bytes:
    lines = content.split(b"\n")
    here, there = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            del lines[here]
        case 1:
            lines.insert(there, lines[here])
        case 2:
            lines[here], lines[there] = lines[there], lines[here]
        case _:
            lines[here : here + 1] = [lines[here]] * chance.choice((2, 50, 2000))
    return b"\n".join(lines)


def _replace_number(content: bytes, chance: random.Random) -> bytes:
    return _replace(rb"[0-9]+(\.[0-9]+)?", content, chance)


def _replace_word(content: bytes, chance: random.Random) -> bytes:
    return _replace(rb"[A-Za-z_]{2,}", content, chance)


def _replace(pattern: bytes, content: bytes, chance: random.Random) -> bytes:
    found = list(re.finditer(pattern, content))
    if not found:
        return content
    match = chance.choice(found)
    return content[: match.start()] + chance.choice(_HOSTILE).encode() + content[match.end() :]


def _swap_words(content: bytes, chance: random.Random) -> bytes:
    found = list(re.finditer(rb"[A-Za-z0-9_.:-]+", content))
    if len(found) < 2:
        return content
    first, second = sorted(chance.sample(found, 2), key=re.Match.start)
    return b"".join(
        (
            content[: first.start()],
            second[0],
            content[first.end() : second.start()],
            first[0],
            content[second.end() :],
        )
    )


def _nest_deeply(content: bytes, chance: random.Random) -> bytes:
    depth = chance.choice((10, 40, 1000, 100_000))
    opening = chance.choice(
        (b"[", b"{", b"{a: ", b"- ", b"<pci>", b'<pci busid="1" class="0x060400">', b"? ")
    )
    at = content.find(b"\n", chance.randint(0, len(content))) + 1
    return content[:at] + opening * depth + content[at:]


def _indent_stairs(content: bytes, chance: random.Random) -> bytes:
    stairs = b"".join(b" " * level + b"a:\n" for level in range(chance.choice((10, 40, 1000))))
    at = content.find(b"\n", chance.randint(0, len(content))) + 1
    return content[:at] + stairs + content[at:]


def _add_bomb(content: bytes, chance: random.Random) -> bytes:
    if chance.random() < 0.5:
        return _ALIAS_BOMB.encode() + content
    used = re.sub(rb'="[^"]*"', b'="&d;"', content, count=1)
    return _ENTITY_BOMB.encode() + used


def _grow(content: bytes, chance: random.Random) -> bytes:
    filler = chance.choice(
        (b"a", b" ", b"\n", b"9", b"\x00", b"- a\n", b"<a/>", b"GPU0 ", b"x: 1\n")
    )
    at = chance.randint(0, len(content))
    return (
        content[:at]
        + filler * (chance.choice((10_000, 1_000_000, 5_000_000)) // len(filler))
        + content[at:]
    )


_MUTATIONS = (
    _flip_bytes,
    _flip_bytes,
    _insert_bytes,
    _truncate,
    _change_lines,
    _change_lines,
    _replace_number,
    _replace_number,
    _replace_word,
    _swap_words,
    _swap_words,
    _nest_deeply,
    _indent_stairs,
    _add_bomb,
    _grow,
)
