# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A program of a release that does not answer, and the sentence about it."""

import pytest

import towpath
from conftest import refusal
from inside.nccl import Assumptions, NcclBuild, Question, decide, host_facts, host_of


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("kill -ALRM $$", "NCCL 2.30.7 does not decide: it does not end in 120 s"),
        ("kill -SEGV $$", "NCCL 2.30.7 does not decide: it ended early"),
        ("echo 'towpath: no memory' >&2; exit 1", "NCCL 2.30.7 does not decide: no memory"),
    ],
)
def test_the_end_of_a_program_has_its_reason(tmp_path, script, sentence):
    program = tmp_path / "decide"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    found = host_facts(towpath.load("dgx-h100").spec, 8, Assumptions("hopper", "intel"))
    host = host_of(found.topology, found.generation, found.cpu)
    question = Question(host, 1, [("all_reduce", 1 << 20)])
    assert refusal(decide, NcclBuild("2.30.7", program), question) == sentence
