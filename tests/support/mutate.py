# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Spoils files in the ways that files get spoilt, and in those that an attacker would try.

`mutant` makes one spoilt text. `check_mutants` reads many of them in a process of its own, with
little memory and a clock, so that a crash, a hang or a file that asks for all memory is seen as
such; this file is that process, too.
"""

from __future__ import annotations

import importlib
import json
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

MEMORY_MAX_BYTES = 1 << 30
MUTANT_GROWTH_MAX_BYTES = 1 << 26  # far beyond what is read, and the spoiler has that memory, too
HANGS_AFTER_SECONDS = 600  # of the clock: a busy machine gives a process little of it
SENTENCE_LENGTH_MAX = 600

# --- one spoilt text ------------------------------------------------------------------------------

_NUMBERS = (
    "-1", "0", "1", "2", "-2", "255", "256", "65536", "2147483647", "2147483648", "-2147483649",
    "4294967295", "4294967296", "9223372036854775808", "18446744073709551616", "9" * 30,
    "9" * 5000, "1e9", "1e999", "-1e308", "0x10", "1.0", "nan", "NaN", ".inf", "", " 1", "1 ", "+1",
    "1_000", "\u0661", "\uff11", "--1",
)  # fmt: skip
_WORDS = (
    "null", "true", "None", "''", "[]", "{}", "'text'", "2024-01-01", "é\u2028\x85", "\U0001f600",
    "!!python/object/apply:os.system [ls]", "&#10;", "&#0;", "&amp;", "&undefined;", "a" * 300,
    "a" * 200_000, "<" * 300, "\n" * 300, "r", "s", "rrs", "rrc", "rrcs", "rcs", "cpy", "re", "nop",
    "i", "o", "LL", "allgather",
)  # fmt: skip
_FRAGMENTS = (
    "text", "<step/>", "<op step='0' type='s'/>", "<gpu>", "</gpu>", "</tb>", "<!-- a comment -->",
    "<!-- -- -->", "<![CDATA[data]]>", "<?instruction?>", "<algo/>", "&lt;", "&d;", "\x00", "]]>",
    "<x:step xmlns:x='y'/>", "\u2028", "<", ">", "&", '"', "'", ",", ":", "#", "\t", "\r", "---\n",
)  # fmt: skip
_DOCUMENT_TYPES = (
    '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {here} "{f"&{there};" * 10}">' for there, here in ("ab", "bc", "cd"))
    + "]>",
    '<!DOCTYPE x SYSTEM "file:///etc/hostname">',
    '<!DOCTYPE x [<!ENTITY d SYSTEM "file:///etc/hostname">]>',
    '<!DOCTYPE x [<!ENTITY % p SYSTEM "http://localhost/none"> %p;]>',
    "<!DOCTYPE x>",
)
_ALIAS_BOMB = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{here}: &{here} [*{there}, *{there}, *{there}, *{there}, *{there}, *{there}]\n"
    for there, here in ("ab", "bc", "cd", "de", "ef", "fg", "gh", "hi")
)
_ENCODINGS = ("utf-16", "utf-32", "utf-7", "latin-1", "cp037", "shift_jis", "rot13", "idna", "none")
_OPENINGS = (
    "[", "{", "{a: ", "- ", "? ", "<x>", "<algo>", "<gpu>", '<tb id="0">', "<pci>",
    '<pci busid="1" class="0x060400">',
)  # fmt: skip
_FILLERS = ("a", " ", "\n", "9", "\x00", "- a\n", "<a/>", "GPU0 ", "x: 1\n", ",", '"')


def mutant(text: str | bytes, seed: int) -> bytes:
    """`text` with one to three things wrong with it; the same for the same seed."""
    chance = random.Random(seed)
    content = text.encode() if isinstance(text, str) else text
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        content = chance.choice(_MUTATIONS)(content, chance)
    return content


def _flip_bytes(content: bytes, chance: random.Random) -> bytes:
    spoilt = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 8, 20)) if spoilt else 0):
        spoilt[chance.randrange(len(spoilt))] ^= 1 << chance.randrange(8)
    return bytes(spoilt)


def _insert(content: bytes, chance: random.Random, inserted: bytes) -> bytes:
    at = chance.randint(0, len(content))
    return content[:at] + inserted + content[at:]


def _insert_bytes(content: bytes, chance: random.Random) -> bytes:
    return _insert(content, chance, chance.randbytes(chance.randint(1, 8)))


def _insert_fragment(content: bytes, chance: random.Random) -> bytes:
    return _insert(content, chance, chance.choice(_FRAGMENTS).encode())


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
            times = chance.choice((2, 50, 400, 2000))
            times = min(times, 2 + MUTANT_GROWTH_MAX_BYTES // (len(lines[here]) + 1))
            lines[here : here + 1] = [lines[here]] * times
    return b"\n".join(lines)


def _replace(
    pattern: bytes, content: bytes, chance: random.Random, change: Callable[[bytes], bytes]
) -> bytes:
    """`content` with one match of `pattern` replaced by what `change` makes of it."""
    found = list(re.finditer(pattern, content))
    if not found:
        return content
    match = chance.choice(found)
    return content[: match.start()] + change(match[0]) + content[match.end() :]


def _replace_number(content: bytes, chance: random.Random) -> bytes:
    number = chance.choice(_NUMBERS).encode()
    return _replace(rb"[0-9]+(\.[0-9]+)?", content, chance, lambda old: number)


def _replace_word(content: bytes, chance: random.Random) -> bytes:
    word = chance.choice(_WORDS).encode()
    return _replace(rb"\b[A-Za-z_]{2,60}\b", content, chance, lambda old: word)


_ATTRIBUTE = rb'\b\w{1,60}="[^"]*"'


def _replace_value(content: bytes, chance: random.Random) -> bytes:
    value = chance.choice(_NUMBERS + _WORDS).encode()
    return _replace(
        _ATTRIBUTE, content, chance, lambda old: old.split(b"=")[0] + b'="' + value + b'"'
    )


def _spoil_attribute(content: bytes, chance: random.Random) -> bytes:
    changes = (lambda old: b"", lambda old: old + b" " + old, lambda old: b"x" + old)
    return _replace(_ATTRIBUTE, content, chance, chance.choice(changes))


def _swap_words(content: bytes, chance: random.Random) -> bytes:
    found = list(re.finditer(rb"[A-Za-z0-9_.:-]+", content))
    if len(found) < 2:
        return content
    first, second = sorted(chance.sample(found, 2), key=re.Match.start)
    between = content[first.end() : second.start()]
    return content[: first.start()] + second[0] + between + first[0] + content[second.end() :]


def _at_line(content: bytes, chance: random.Random, inserted: bytes) -> bytes:
    at = content.find(b"\n", chance.randint(0, len(content))) + 1
    return content[:at] + inserted + content[at:]


def _nest_deeply(content: bytes, chance: random.Random) -> bytes:
    depth = chance.choice((5, 10, 40, 1000, 100_000))
    return _at_line(content, chance, chance.choice(_OPENINGS).encode() * depth)


def _indent_stairs(content: bytes, chance: random.Random) -> bytes:
    levels = range(chance.choice((10, 40, 1000)))
    return _at_line(content, chance, b"".join(b" " * level + b"a:\n" for level in levels))


def _add_bomb(content: bytes, chance: random.Random) -> bytes:
    if chance.random() < 0.3:
        return _ALIAS_BOMB.encode() + content
    used = re.sub(rb'="[^"]*"', b'="&d;"', content, count=1)
    return chance.choice(_DOCUMENT_TYPES).encode() + used


def _declare_encoding(content: bytes, chance: random.Random) -> bytes:
    """An encoding that the file may or may not really have."""
    name = chance.choice(_ENCODINGS)
    declared = f'<?xml version="1.0" encoding="{name}"?>' + content.decode(errors="replace")
    try:
        return declared.encode(name if chance.random() < 0.5 else "utf-8", "replace")
    except (LookupError, UnicodeError, AttributeError):
        return declared.encode("utf-8", "replace")


def _grow(content: bytes, chance: random.Random) -> bytes:
    filler = chance.choice(_FILLERS).encode()
    size_bytes = chance.choice((10_000, 1_000_000, 5_000_000))
    return _insert(content, chance, filler * (size_bytes // len(filler)))


_MUTATIONS = (
    _flip_bytes, _flip_bytes, _insert_bytes, _insert_fragment, _truncate, _change_lines,
    _change_lines, _replace_number, _replace_number, _replace_word, _replace_value, _replace_value,
    _spoil_attribute, _swap_words, _swap_words, _nest_deeply, _indent_stairs, _add_bomb,
    _declare_encoding, _grow,
)  # fmt: skip


# --- many of them, read ---------------------------------------------------------------------------


def check_mutants(
    reader: str,
    originals: list[Path],
    seeds: range,
    folder: Path,
    *,
    seconds_max: float,
    place: str = ":[0-9]+",
) -> dict[str, int]:
    """Reads a mutant per seed; how many loaded, and how many were refused.

    Args:
        reader: "module:function", which takes a path and raises ConfigError.
        originals: what is spoilt, in turn.
        seeds: each makes one mutant.
        folder: for the files.
        seconds_max: of processor time for one, so that a busy machine changes nothing.
        place: what a refusal must say between the file's name and the problem.
    """
    command = [sys.executable, __file__, reader, str(seeds.start), str(seeds.stop), str(folder)]
    run = subprocess.run(
        [*command, *map(str, originals)], capture_output=True, text=True, check=False
    )
    results = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 0, (results[-1:], run.returncode, run.stderr[-2000:])
    assert [seed for seed, *_ in results] == list(seeds)
    where = re.compile(re.escape(str(folder / "mutant")) + f"({place}): .")
    counts = {"loaded": 0, "refused": 0}
    for seed, kind, sentence, seconds in results:
        assert kind in counts, (seed, sentence)
        assert seconds < seconds_max, (seed, seconds, sentence)
        if kind == "refused":
            assert where.match(sentence) and sentence.isprintable(), (seed, sentence)
            assert len(sentence) <= SENTENCE_LENGTH_MAX + len(str(folder)), (seed, sentence)
        counts[kind] += 1
    assert all(counts.values()), "mutants that all do the same test nothing"
    print(f"{reader}: {counts}, slowest {max(row[3] for row in results):.2f} s")
    return counts


def _read_all(reader: str, first: str, last: str, folder: str, *originals: str) -> None:
    from towpath import ConfigError

    module, function = reader.split(":")
    tests = Path(__file__).parents[1]
    sys.path += [str(tests), str(tests / "e2e")]
    read = getattr(importlib.import_module(module), function)
    texts = [Path(name).read_bytes() for name in originals]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX_BYTES, MEMORY_MAX_BYTES))
    file = Path(folder) / "mutant"
    for seed in range(int(first), int(last)):
        file.write_bytes(mutant(texts[seed % len(texts)], seed))
        signal.alarm(HANGS_AFTER_SECONDS)
        begin = time.process_time()
        try:
            read(file)
            kind, sentence = "loaded", ""
        except ConfigError as error:
            kind, sentence = "refused", str(error)
        except BaseException as error:  # noqa: BLE001 - any other one is what this looks for
            kind, sentence = "failed", repr(error)[:300]
        print(json.dumps([seed, kind, sentence, time.process_time() - begin]), flush=True)


if __name__ == "__main__":
    _read_all(*sys.argv[1:])
