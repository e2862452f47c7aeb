# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Damaged MSCCL files load, or end in one sentence with file and place; nothing else.

Mutants are made from a seed and read in a process of their own with a limited address space, so
that a crash, a hang or a file that asks for all memory is seen as such.
"""

from __future__ import annotations

import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path as FilePath

import pytest

from towpath import _core
from towpath.schedule_format.msccl_xml import (
    SIZE_MAX_BYTES,
    ScheduleFormatError,
    dump_schedule,
    load_schedule,
)

ADDRESS_SPACE_BYTES = 1 << 30
SECONDS_PER_MUTANT = 60  # far beyond any honest load; ends what hangs
SENTENCE_LENGTH_MAX = 600
PLACE = re.compile(r"(:[0-9]+|: schedule '.*', rank [0-9]+, .*|: schedule '.*'): .", re.DOTALL)

NUMBERS = [
    "-1", "0", "-2", "255", "256", "65536", "2147483647", "2147483648", "-2147483649",
    "4294967295", "4294967296", "9223372036854775808", "18446744073709551616", "1" * 400, "1e9",
    "0x10", "1.0", "NaN", "", " 1", "1 ", "+1", "1_000", "\u0661", "\uff11", "--1", "true", "None",
    "&#10;", "&#0;", "&amp;", "&undefined;", "\U0001f600",
]  # fmt: skip
WORDS = ["r", "s", "rrs", "rrc", "rrcs", "rcs", "cpy", "re", "nop", "i", "o", "LL", "allgather"]
FRAGMENTS = [
    "text", "<step/>", "<op step='0' type='s'/>", "<gpu>", "</gpu>", "</tb>", "<!-- a comment -->",
    "<!-- -- -->", "<![CDATA[data]]>", "<?instruction?>", "<algo/>", "&lt;", "&bomb;", "\x00",
    "]]>", "<x:step xmlns:x='y'/>", "\u2028", "<", ">", "&", '"',
]  # fmt: skip
DOCUMENT_TYPES = [
    '<!DOCTYPE algo [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(12))
    + "]>",
    '<!DOCTYPE algo SYSTEM "file:///etc/hostname">',
    '<!DOCTYPE algo [<!ENTITY x SYSTEM "file:///etc/hostname">]>',
    '<!DOCTYPE algo [<!ENTITY % p SYSTEM "http://localhost/none"> %p;]>',
    "<!DOCTYPE algo>",
]
ENCODINGS = ["utf-16", "utf-32", "utf-7", "latin-1", "cp037", "shift_jis", "rot13", "idna", "none"]

ATTRIBUTE = re.compile(r'[\w]+="[^"]*"')


def seeds_of_mutants() -> list[str]:
    """Small files of every kind of step, as text."""
    texts = []
    for name, ranks in [("ring_all_reduce", 3), ("two_shot_all_reduce", 3), ("ring_reduce", 2),
                        ("all_pairs_all_gather", 3), ("tree_all_reduce", 4)]:  # fmt: skip
        schedule = _core.make_schedule(name, ranks=ranks, channels=2, chunks_per_channel=2)
        with tempfile.TemporaryFile("w+", encoding="utf-8") as stream:
            dump_schedule(schedule, stream)
            stream.seek(0)
            texts.append(stream.read())
    return texts


def _changed_attribute(text: str, chance: random.Random, change: Callable[[str], str]) -> str:
    """`text` with one attribute replaced by what `change` makes of it."""
    found = chance.choice(list(ATTRIBUTE.finditer(text)) or [None])
    if found is None:
        return text
    return text[: found.start()] + change(found.group()) + text[found.end() :]


def _value_from(values: list[str]) -> Callable[[str, random.Random], str]:
    def mutate(text: str, chance: random.Random) -> str:
        value = chance.choice(values)
        return _changed_attribute(text, chance, lambda old: f'{old.split("=")[0]}="{value}"')

    return mutate


def _delete_attribute(text: str, chance: random.Random) -> str:
    return _changed_attribute(text, chance, lambda old: "")


def _duplicate_attribute(text: str, chance: random.Random) -> str:
    return _changed_attribute(text, chance, lambda old: f"{old} {old}")


def _rename_attribute(text: str, chance: random.Random) -> str:
    return _changed_attribute(text, chance, lambda old: f"x{old}")


def _long_attribute(text: str, chance: random.Random) -> str:
    value = chance.choice("a1<\n") * chance.choice([300, 200_000])
    return _changed_attribute(text, chance, lambda old: f'{old.split("=")[0]}="{value}"')


def _delete_line(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    index = chance.randrange(len(lines))
    return "".join(lines[:index] + lines[index + 1 :])


def _duplicate_line(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    index = chance.randrange(len(lines))
    times = chance.choice([1, 2, 400])
    return "".join(lines[:index] + [lines[index]] * times + lines[index:])


def _swap_lines(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return "".join(lines)


def _truncate(text: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text) + 1)]


def _insert_fragment(text: str, chance: random.Random) -> str:
    index = chance.randrange(len(text) + 1)
    return text[:index] + chance.choice(FRAGMENTS) + text[index:]


def _nest(text: str, chance: random.Random) -> str:
    element = chance.choice(["<algo>", "<gpu>", '<tb id="0">', "<x>"])
    index = chance.choice([0, text.find("<gpu"), text.find("<tb"), text.find("<step")])
    return text[: max(index, 0)] + element * chance.choice([5, 50_000]) + text[max(index, 0) :]


def _declare(text: str, chance: random.Random) -> str:
    return chance.choice(DOCUMENT_TYPES) + text.replace("ring", "&m;", 1)


MUTATIONS: list[Callable[[str, random.Random], str]] = [
    _value_from(NUMBERS), _value_from(NUMBERS), _value_from(WORDS), _value_from(["0", "1", "2"]),
    _delete_attribute, _duplicate_attribute, _rename_attribute, _long_attribute, _delete_line,
    _duplicate_line, _swap_lines, _truncate, _insert_fragment, _nest, _declare,
]  # fmt: skip


def _flip_bytes(content: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 20])):
        if damaged:
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def _encoded(text: str, chance: random.Random) -> bytes:
    """The text with a declared encoding, which it may or may not really have."""
    name = chance.choice(ENCODINGS)
    declared = f'<?xml version="1.0" encoding="{name}"?>' + text
    is_real = chance.random() < 0.5
    try:
        return declared.encode(name if is_real else "utf-8", "replace")
    except (LookupError, UnicodeError, AttributeError):
        return declared.encode("utf-8", "replace")


def mutants(seed: int, count: int) -> Iterator[bytes]:
    """The same `count` damaged files for the same seed."""
    chance = random.Random(seed)
    texts = seeds_of_mutants()
    for _ in range(count):
        text = chance.choice(texts)
        for _ in range(chance.choice([0, 1, 1, 1, 2, 3])):
            text = chance.choice(MUTATIONS)(text, chance) or " "
        kind = chance.random()
        if kind < 0.1:
            yield _encoded(text, chance)
        elif kind < 0.3:
            yield _flip_bytes(text.encode("utf-8", "replace"), chance)
        else:
            yield text.encode("utf-8", "replace")


def complaint_about(content: bytes, folder: FilePath) -> str:
    """What is wrong with the way `content` is read, or nothing."""
    file = folder / "mutant.xml"
    file.write_bytes(content)
    try:
        schedule = load_schedule(file)
    except ScheduleFormatError as error:
        sentence = str(error)
        if not sentence.isprintable():
            return f"not one printable line: {sentence!r}"
        if len(sentence) > SENTENCE_LENGTH_MAX + len(str(file)):
            return f"too long a sentence: {sentence!r}"
        if not sentence.startswith(str(file)) or not PLACE.match(sentence[len(str(file)) :]):
            return f"names no file and place: {sentence!r}"
        return ""
    except Exception as error:  # noqa: BLE001 - any other one is what this looks for
        return f"raises {error!r}"
    dump_schedule(schedule, folder / "again.xml")
    if load_schedule(folder / "again.xml") != schedule:
        return "loads, but is another schedule after export and import"
    return ""


def main(seed: int, count: int) -> int:
    """Reads the mutants; prints the first complaint and returns 1, or how many loaded and 0."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    with tempfile.TemporaryDirectory() as folder:
        for number, content in enumerate(mutants(seed, count)):
            signal.alarm(SECONDS_PER_MUTANT)
            complaint = complaint_about(content, FilePath(folder))
            if complaint:
                print(f"mutant {number} of seed {seed} {complaint}\n{content[:2000]!r}")
                return 1
    print(f"{count} read")
    return 0


def run_mutants(seed: int, count: int) -> None:
    command = [sys.executable, __file__, str(seed), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout == f"{count} read\n"


def test_300_damaged_files_load_or_are_refused_in_one_sentence():
    run_mutants(seed=1, count=300)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 9))
def test_7000_damaged_files_load_or_are_refused_in_one_sentence(seed):
    run_mutants(seed=seed, count=1000)


def test_mutants_are_the_same_for_the_same_seed():
    assert list(mutants(5, 50)) == list(mutants(5, 50))
    assert list(mutants(5, 50)) != list(mutants(6, 50))


def test_mutants_both_load_and_fail(tmp_path):
    file = tmp_path / "mutant.xml"
    loaded = 0
    for content in mutants(1, 100):
        file.write_bytes(content)
        try:
            load_schedule(file)
            loaded += 1
        except ScheduleFormatError:
            pass
    assert 5 <= loaded <= 60


@pytest.mark.parametrize("fragment", [b'a="', b"<!--", b" ", b"<gpu>"])
def test_file_larger_than_the_limit_is_refused(fragment, tmp_path):
    file = tmp_path / "large.xml"
    file.write_bytes((b"<algo " + fragment).ljust(SIZE_MAX_BYTES + 1, b"a"))
    with pytest.raises(ScheduleFormatError) as caught:
        load_schedule(file)
    assert re.match(r"[^\n]*large\.xml:1: [^\n]*\Z", str(caught.value))


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe", b"<", b"<algo/>", b"\x00" * 100])
def test_nearly_empty_file_is_refused(content, tmp_path):
    assert complaint_about(content, tmp_path) == ""
    with pytest.raises(ScheduleFormatError):
        load_schedule(tmp_path / "mutant.xml")


def test_directory_is_refused(tmp_path):
    with pytest.raises(ScheduleFormatError, match="cannot be read: Is a directory"):
        load_schedule(tmp_path)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
