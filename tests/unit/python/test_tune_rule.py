# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The rule of `towpath tune`, on tables made up for it."""

import pytest

from inside.tuning import choose, reaches


def test_the_first_that_comes_close_is_chosen_and_not_the_best():
    rates = [10.0, 94.9, 95.0, 100.0, 99.0]
    assert reaches(rates) == [False, False, True, True, True]
    assert choose(rates) == 2


def test_a_rate_that_falls_off_again_no_longer_reaches():
    assert reaches([23.0, 23.2, 23.6, 21.6]) == [True, True, True, False]


def test_a_single_candidate_is_chosen():
    assert choose([0.0]) == 0


def test_without_candidates_there_is_no_choice():
    with pytest.raises(ValueError, match="no candidates to choose from"):
        choose([])
