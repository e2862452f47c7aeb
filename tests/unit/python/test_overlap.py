# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays that overlap, calls that differ, children that are no ranks: right, or refused."""

import math

import pytest

import overlap_ranks
import towpath
from towpath import ConfigError

pytestmark = pytest.mark.slow  # starts processes

SIZES = (1, 3000, 100_000)


@pytest.fixture(params=["shm", "ucx"])
def transport(request):
    return request.param


@pytest.mark.parametrize("elements", SIZES)
@pytest.mark.parametrize("ranks", [2, 3])
def test_collectives_run_in_place(transport, ranks, elements):
    results = towpath.launch(
        overlap_ranks.in_place, ranks, transport=transport, arguments=(elements, 5)
    )
    assert results == [[]] * ranks


@pytest.mark.parametrize("elements", SIZES)
def test_every_other_overlap_is_refused_and_nothing_is_written(transport, elements):
    for said in towpath.launch(
        overlap_ranks.refused, 3, transport=transport, arguments=(elements,)
    ):
        assert len(said) == 6
        for name, sentence in said.items():
            assert name.split()[-1] in sentence and "its output overlaps its input" in sentence


@pytest.mark.parametrize("name", sorted(overlap_ranks.DIFFERENCES))
def test_calls_that_differ_are_a_disagreement(transport, name):
    errors = towpath.launch(
        overlap_ranks.different, 2, transport=transport, arguments=(name,), timeout_s=5
    )
    kinds = [error and error[0] for error in errors]
    assert "disagreement" in kinds, errors
    # The first rank to notice gives up, and the other one hears of that.
    assert set(kinds) <= {"disagreement", "peer_died"}, errors
    if name == "roots":
        said = " ".join(error[2] for error in errors if error)
        assert "from root 0" in said and "from root 1" in said


@pytest.mark.parametrize("name", overlap_ranks.OF_SENDERS)
def test_the_later_of_two_senders_finds_that_their_roots_differ(transport, name):
    errors = towpath.launch(
        overlap_ranks.different, 2, transport=transport, arguments=(name,), timeout_s=60
    )
    said = [error for error in errors if error]
    assert said and {kind for kind, _, _ in said} <= {"disagreement", "peer_died"}, errors
    assert any("root 0" in text and "root 1" in text for _, _, text in said), errors


@pytest.mark.parametrize("maps", ["1", "0"], ids=["one host", "between hosts"])
def test_a_difference_of_repeated_calls_is_named_before_the_timeout(maps, monkeypatch):
    monkeypatch.setenv("TOWPATH_UCX_SHARED_MEMORY", maps)
    errors = towpath.launch(
        overlap_ranks.kept_plan_differs, 2, transport="ucx", arguments=("sum", "max"), timeout_s=300
    )
    assert [error[1] for error in errors] == [1, 0], errors
    # The first rank to notice leaves with its error, and the other one reports that.
    said = [text for kind, _, text in errors if kind == "disagreement"]
    assert said and all("sum" in each and "max" in each for each in said), errors


def test_a_forked_child_is_no_rank(transport):
    for said, total in towpath.launch(overlap_ranks.forked, 2, transport=transport):
        assert total == 2 and len(said) == 4
        assert all("and is not a rank" in sentence for sentence in said)


@pytest.mark.parametrize("timeout_s", [-1.0, math.nan])
def test_a_timeout_that_is_none_is_refused(timeout_s):
    with pytest.raises(ConfigError, match="timeout"):
        towpath.connect("nobody", 0, 1, timeout_s=timeout_s)


def test_an_unlimited_timeout_is_one():
    with towpath.connect("alone", 0, 1, timeout_s=math.inf) as communicator:
        communicator.barrier()


def test_a_closed_communicator_says_so():
    communicator = towpath.connect("closed", 0, 1)
    communicator.close()
    with pytest.raises(ConfigError, match="closed"):
        communicator.barrier()
