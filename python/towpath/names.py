# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Matching of names: other spellings are accepted, and near misses get a suggestion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from towpath.errors import ConfigError, quoted

_SIMILARITY_LEAST = 0.6


def chosen(what: str, text: str, allowed: Iterable[str], spellings: Mapping[str, str]) -> str:
    """The name that a text selects. Case is ignored, and words may be joined by - or _.

    Args:
        what: name of the option or field for the error: "--dtype".
        text: the given text.
        allowed: the valid names.
        spellings: other spellings of some of them.

    Returns:
        One of `allowed`.

    Raises:
        ConfigError: the text does not match any name; the error lists all names and suggests the
        nearest.

    >>> chosen("protocol", "simple", ["Simple", "LL"], {})
    'Simple'
    """
    names = list(allowed)
    known = {comparable(word): name for word, name in spellings.items()}
    known.update((comparable(name), name) for name in names)
    if comparable(text) in known:
        return known[comparable(text)]
    raise unknown(f"{what} is", text, names, [*names, *spellings])


def unknown(
    problem: str, text: str, allowed: Iterable[str], words: Iterable[str] | None = None
) -> ConfigError:
    """The error for an unknown name.

    Args:
        problem: the words before the text: "there is no machine".
        text: the given text.
        allowed: the names that the error lists, in this order.
        words: the candidates for the suggestion; by default the allowed names.

    >>> str(unknown("--op is", "summ", ["sum", "max"]))
    "--op is 'summ'; did you mean 'sum'? Choose one of sum, max"
    """
    names = list(allowed)
    near = nearest(text, names if words is None else words)
    question = f"did you mean {quoted(near)}? Choose" if near else "choose"
    return ConfigError(f"{problem} {quoted(text)}; {question} one of {', '.join(names)}")


def nearest(text: str, words: Iterable[str]) -> str | None:
    """The most similar word; None if no word is similar.

    >>> nearest("dgx-h10", ["ring", "dgx-h100"])
    'dgx-h100'
    """
    from difflib import get_close_matches

    by_key = {comparable(word): word for word in words}
    found = get_close_matches(comparable(text), by_key, 1, _SIMILARITY_LEAST)
    return by_key[found[0]] if found else None


def comparable(word: str) -> str:
    """A name without case, hyphens and underscores: equal for all its spellings."""
    return word.strip().lower().replace("-", "").replace("_", "")
