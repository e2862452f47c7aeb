# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A mutation without a place tests nothing: each list must fit the sources as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomllib

from places import OPERATORS, Source

CHECKOUT = Path(__file__).parents[3]
LISTS = sorted((CHECKOUT / "tests" / "mutations").glob("*.toml"))

CPP = """
class Queue {
 public:
  bool is_full() const { return count_ >= limit_; }
  void push(int item);

 private:
  int count_ = 0;
};

// Waits until there is room.
void Queue::push(int item) {
  const int next = std::min(count_ + 1, limit_);
  while (!flush()) wait();  // the last one still counts
  if (item > 0 && next < 0x10) store(item, next);
}
"""
# The same behaviour, formatted, named and explained in another way.
REWRITTEN = """
class Queue {
 public:
  bool is_full() const
  {
    return count_ >= limit_;  // never above
  }
  void push(int value);

 private:
  int count_ = 0;
};

void Queue::push(int value) {
  /* one more, if there is room */
  const int following = std::min(count_ + 1,
                                 limit_);
  while (!flush()) wait();
  if (value > 0 &&
      following < 0x10) store(value, following);
}
"""
PYTHON = '''
class Queue:
    def push(self, item):
        """Adds an item."""
        if self.count >= self.limit:
            raise ValueError(item)
        self.items.append(-item)
'''


def mutants(text: str, suffix: str = ".cpp") -> list[str]:
    """Every mutant of a source, without its spaces."""
    source = Source.of(text, suffix)
    return [
        "".join(source.mutant(function, operator, at + 1).split())
        for function in source.functions()
        for operator in OPERATORS
        for at in range(len(source.places(function, operator)))
    ]


def changed(function: str, operator: str, at: int = 1) -> tuple[str, str]:
    """The place of a mutation of CPP and its replacement."""
    source = Source.of(CPP, ".cpp")
    place = source.places(function, operator)[at - 1]
    return source.text[place.begin : place.end].decode(), place.replacement.decode()


@pytest.mark.parametrize("file", LISTS, ids=lambda file: file.stem)
def test_each_mutation_finds_its_place(file):
    mutations = tomllib.loads(file.read_text())["mutation"]
    assert mutations
    for mutation in mutations:
        source = Source.read(CHECKOUT / mutation["file"])
        text = source.text.decode()
        at = mutation.get("at", 1)
        assert source.mutant(mutation["function"], mutation["operator"], at) != text, mutation["id"]


def test_no_two_mutations_share_a_name():
    names = [each["id"] for file in LISTS for each in tomllib.loads(file.read_text())["mutation"]]
    assert len(names) == len(set(names))


def test_no_two_mutations_are_the_same():
    entries = [each for file in LISTS for each in tomllib.loads(file.read_text())["mutation"]]
    keys = [(each["file"], each["function"], each["operator"], each.get("at")) for each in entries]
    assert len(keys) == len(set(keys)), [key for key in keys if keys.count(key) > 1]


@pytest.mark.parametrize(
    ("function", "operator", "at", "before", "after"),
    [
        ("Queue::is_full", "boundary", 1, ">=", ">"),
        ("Queue::is_full", "limit-down", 1, "limit_", "(limit_) - 1"),
        ("Queue::count_", "increment", 1, "0", "1"),
        ("Queue::push", "min-max", 1, "std::min", "std::max"),
        ("Queue::push", "drop-left", 1, "std::min(count_ + 1, limit_)", "limit_"),
        ("Queue::push", "negate", 1, "!flush()", "!(!flush())"),
        ("Queue::push", "always", 3, "item > 0 && next < 0x10", "true"),
        ("Queue::push", "decrement", 3, "0x10", "15"),
        ("Queue::push", "drop-statement", 2, "wait();", "{}"),
        ("Queue::push", "swap", 6, "item, next", "next, item"),
        ("Queue::push", "once", 1, "while", "if"),
    ],
)
def test_an_operator_changes_its_place(function, operator, at, before, after):
    assert changed(function, operator, at) == (before, after)


def test_comments_formatting_and_names_of_locals_move_no_place():
    renamed = CPP.replace("item", "value").replace("next", "following")
    assert [drop_comments(each) for each in mutants(REWRITTEN)] == [
        drop_comments(each) for each in mutants(renamed)
    ]


def drop_comments(mutant: str) -> str:
    for comment in (
        "//Waitsuntilthereisroom.", "//thelastonestillcounts", "//neverabove",
        "/*onemore,ifthereisroom*/",
    ):  # fmt: skip
        mutant = mutant.replace(comment, "")
    return mutant


def test_python_has_the_same_operators():
    source = Source.of(PYTHON, ".py")
    assert "if (not (self.count >= self.limit)):" in source.mutant("Queue.push", "negate")
    assert "if self.count > self.limit:" in source.mutant("Queue.push", "boundary")
    assert "append(item)" in source.mutant("Queue.push", "unwrap", 3)
    assert "pass" in source.mutant("Queue.push", "drop-statement")


def test_a_place_that_is_not_there_is_an_error():
    source = Source.of(CPP, ".cpp")
    with pytest.raises(IndexError, match=r"^once applies in 1 places of Queue::push$"):
        source.mutant("Queue::push", "once", 2)
    with pytest.raises(KeyError):
        source.mutant("Queue::pop", "once")
    with pytest.raises(KeyError):
        source.mutant("Queue::push", "improve")
