# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Names as people type them."""

import pytest

from conftest import refusal
from inside import _core
from inside.collectives import operation_named, type_named
from inside.live import TYPES
from inside.machines import names
from inside.schedules import ScheduleSource, algorithm_named, collective_named, protocol_named


@pytest.mark.parametrize(
    "text", ["all_reduce", "all-reduce", "AllReduce", "allreduce", "ALL_REDUCE"]
)
def test_a_collective_in_any_spelling(text):
    assert collective_named(text) == "all_reduce"


@pytest.mark.parametrize(
    ("text", "protocol"), [("simple", "Simple"), ("ll", "LL"), ("Ll128", "LL128"), ("LL", "LL")]
)
def test_a_protocol_in_any_case(text, protocol):
    assert protocol_named(text) == protocol
    assert ScheduleSource(ranks=2, protocol=text).schedule().protocol.name == protocol.lower()


def test_an_algorithm_without_the_collective_it_is_for():
    assert algorithm_named("ring", "broadcast") == "ring_broadcast"
    assert algorithm_named("one-shot", "all_reduce") == "one_shot_all_reduce"
    assert ScheduleSource(ranks=4, algorithm="Tree").schedule().name == "tree_all_reduce"


def test_every_name_is_its_own_spelling():
    for collective in _core.Collective:
        assert collective_named(collective.name) == collective.name
        for algorithm in _core.algorithm_names(collective):
            assert algorithm_named(algorithm, collective.name) == algorithm
    assert [type_named(name) for name in TYPES] == list(TYPES)


@pytest.mark.parametrize(
    ("text", "type_name"),
    [("half", "float16"), ("fp32", "float32"), ("bf16", "bfloat16"), ("double", "float64")],
)
def test_a_type_as_others_call_it(text, type_name):
    assert type_named(text) == type_name


def test_an_operation_as_others_call_it():
    assert [operation_named(text) for text in ("SUM", "mean", "product")] == ["sum", "avg", "prod"]


def test_a_near_miss_is_suggested_and_every_name_listed():
    sentence = refusal(algorithm_named, "rign", "all_reduce", "--algorithm")
    assert sentence.startswith(
        "--algorithm is 'rign'; did you mean 'ring'? Choose one of ring_all_"
    )
    for algorithm in _core.algorithm_names(_core.Collective.all_reduce):
        assert algorithm in sentence
    assert "did you mean 'all_gather'?" in refusal(collective_named, "all_gahter")


def test_what_is_like_no_name_gets_the_list_only():
    sentence = refusal(type_named, "\n", "--dtype")
    assert sentence == rf"--dtype is '\n'; choose one of {', '.join(TYPES)}"
    assert names.nearest("xyzzy", ["ring", "dgx-h100"]) is None
