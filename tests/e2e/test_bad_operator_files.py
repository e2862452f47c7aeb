# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Spoilt files of operators either are read or end in one sentence."""

import pickle
import random

import pytest

from inside.operators import diagnose
from mutate import check_mutants
from operator_logs import (
    RAS,
    InfoLog,
    dump,
    entry,
    inspector,
    nccl_tests,
    ras_json,
    watchdog,
)
from towpath import ConfigError

TIMES = {1 << 20: 30.0, 1 << 24: 150.0, 1 << 27: 700.0}
FORMATS = {
    "nccl_tests": nccl_tests("all_reduce", TIMES, 1, 4, "a GPU without a machine"),
    "nccl_info": InfoLog(2, gpus=2).text(),
    "inspector": inspector(3, 3, random.Random(1)),
    "ras_text": RAS,
    "ras_json": ras_json({0: 5, 1: 5}),
    "watchdog": watchdog(3, 12, 9),
}


def check(name, seeds, folder):
    path = folder / f"{name}.txt"
    path.write_text(FORMATS[name])
    # Text before the first line of a table and unknown lines are skipped, so most mutants load.
    check_mutants("operator_files:load", [path], seeds, folder, seconds_max=4, place="(?::[0-9]+)?")


@pytest.mark.parametrize("name", FORMATS)
def test_150_spoilt_files_of_each_format(tmp_path, name):
    check(name, range(150), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("part", range(1, 6))
@pytest.mark.parametrize("name", FORMATS)
def test_20_000_spoilt_files_of_each_format(tmp_path, name, part):
    check(name, range(4000 * part, 4000 * (part + 1)), tmp_path)


def spoilt(content, chance):
    """A pickle with changed, missing and added bytes."""
    data = bytearray(content)
    for _ in range(chance.randrange(1, 6)):
        place = chance.randrange(len(data))
        kind = chance.randrange(4)
        if kind == 0:
            data[place] = chance.randrange(256)
        elif kind == 1:
            del data[place : place + chance.randrange(1, 30)]
        elif kind == 2:
            data[place:place] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 9)))
        else:
            data[place:place] = chance.choice(
                [
                    b"cos\nsystem\n(S'true'\ntR.",
                    b"\x93",
                    b"R",
                    b"b",
                    b"\x81",
                    b"i",
                    b"\x82\x01",
                    b".",
                ]
            )
    return bytes(data)


def check_pickles(seeds, folder):
    original = dump(2, [entry(n) for n in range(4)])
    counts = {"read": 0, "refused": 0}
    path = folder / "trace_rank_0"
    for seed in seeds:
        path.write_bytes(spoilt(original, random.Random(seed)))
        try:
            diagnose([path])
            counts["read"] += 1
        except ConfigError as error:
            assert "\n" not in str(error) and len(str(error)) < 2000, (seed, str(error))
            counts["refused"] += 1
    assert all(counts.values()), counts
    assert pickle.loads(original)["version"] == "2.10"


def test_600_spoilt_pickles(tmp_path):
    check_pickles(range(600), tmp_path)


@pytest.mark.long
def test_20_000_spoilt_pickles(tmp_path):
    check_pickles(range(1000, 21_000), tmp_path)
