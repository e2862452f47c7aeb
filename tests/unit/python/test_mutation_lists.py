# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A mutation whose text is gone tests nothing: each list must fit the sources as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomllib

CHECKOUT = Path(__file__).parents[3]
LISTS = sorted((CHECKOUT / "tests" / "mutations").glob("*.toml"))


@pytest.mark.parametrize("file", LISTS, ids=lambda file: file.stem)
def test_each_mutation_finds_its_text_once(file):
    mutations = tomllib.loads(file.read_text())["mutation"]
    assert mutations
    for mutation in mutations:
        text = (CHECKOUT / mutation["file"]).read_text()
        assert text.count(mutation["find"]) == 1, mutation["id"]


def test_no_two_mutations_share_a_name():
    names = [each["id"] for file in LISTS for each in tomllib.loads(file.read_text())["mutation"]]
    assert len(names) == len(set(names))
