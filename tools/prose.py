#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the prose rules of STYLE.md over documents, docstrings, comments and messages.

The rules are rule files of Vale (styles/Towpath). This reader supports the three kinds that they
use: existence, substitution and occurrence. Unlike Vale it also reads string literals of at least
four words: errors, help and reports. styles/allowed.json holds the breaches that each file may
still have, by rule. It may only shrink.

Usage: tools/prose.py [--list | --count | --shrink | --sample SEED] [PATH ...]
With --list it prints all breaches, also the allowed ones. With --count it prints them by rule.
With --shrink it lowers the counts of the allow-list to the breaches that are left. With --sample
it draws 20 paragraphs, 40 docstrings and comments and 40 messages for an editor to judge.
"""

from __future__ import annotations

import configparser
import json
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from prose_text import Text, texts_of
from tidy import source_files

ROOT = Path(__file__).parent.parent
ALLOWED = "styles/allowed.json"
Counts = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Rule:
    """A rule file.

    Attributes:
        name: Name of the file without its suffix.
        pattern: Regular expression of a match.
        scopes: Kinds of text that it applies to. `text` is all of them.
        most: Matches that one text may have.
        message: The sentence of a breach, with %s for the match and for the replacement.
        swap: Replacement for each pattern of a substitution.
    """

    name: str
    pattern: re.Pattern[str]
    scopes: tuple[str, ...]
    most: int
    message: str
    swap: dict[str, str]

    def applies_to(self, text: Text) -> bool:
        return "text" in self.scopes or text.kind in self.scopes

    def sentence(self, found: str) -> str:
        if not self.swap:
            return self.message.replace("%s", " ".join(found.split()), 1)
        replacement = next(
            (value for key, value in self.swap.items() if re.fullmatch(key, found, re.IGNORECASE)),
            "",
        )
        return self.message.replace("%s", found, 1).replace("%s", replacement, 1)


@dataclass(frozen=True)
class Breach:
    path: str
    line: int
    rule: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.sentence} ({self.rule})"


def rule_of(path: Path) -> Rule:
    """Reads a rule file. Keys that this reader does not support are an error."""
    keys = yaml.safe_load(path.read_text())
    known = {"extends", "message", "level", "scope", "ignorecase", "nonword"}
    known |= {"tokens", "raw", "swap", "token", "max"}
    unknown = set(keys) - known
    if unknown or keys["extends"] not in ("existence", "substitution", "occurrence"):
        sys.exit(f"{path}: this reader does not support {unknown or keys['extends']}")
    words = [*keys.get("tokens", ()), *keys.get("swap", ())]
    words += [keys["token"]] if "token" in keys else []
    raw = list(keys.get("raw", ()))
    if words:
        any_word = f"(?:{'|'.join(words)})"
        raw.append(any_word if keys.get("nonword") else rf"\b{any_word}\b")
    flags = re.MULTILINE | (re.IGNORECASE if keys.get("ignorecase") else 0)
    scopes = keys.get("scope", "text")
    return Rule(
        path.stem, re.compile("|".join(raw), flags),
        (scopes,) if isinstance(scopes, str) else tuple(scopes),
        keys.get("max", 0), keys["message"], keys.get("swap", {}),
    )  # fmt: skip


def rules_of(root: Path) -> list[Rule]:
    """The rules that .vale.ini names."""
    settings = configparser.ConfigParser()
    settings.read_string("[vale]\n" + (root / ".vale.ini").read_text())
    styles = root / settings["vale"]["stylespath"]
    sections = [name for name in settings.sections() if name != "vale"]
    names = {style for name in sections for style in settings[name]["basedonstyles"].split(", ")}
    return [rule_of(path) for name in sorted(names) for path in sorted((styles / name).iterdir())]


def breaches_of(text: Text, rules: list[Rule]) -> Iterator[Breach]:
    for rule in rules:
        if not rule.applies_to(text):
            continue
        found = list(rule.pattern.finditer(text.words))
        for match in found if len(found) > rule.most else ():
            line = text.line + text.words.count("\n", 0, match.start())
            yield Breach(text.path, line, rule.name, rule.sentence(match[0]))


def all_texts(root: Path, wanted: list[str]) -> list[Text]:
    """The texts of all files, or only of files below the wanted paths."""
    return [
        text for path in source_files(root)
        if not wanted or any(path == each or path.startswith(f"{each}/") for each in wanted)
        for text in texts_of(root, path)
    ]  # fmt: skip


def counted(breaches: list[Breach]) -> Counts:
    counts: dict[str, Counter[str]] = {}
    for breach in breaches:
        counts.setdefault(breach.path, Counter())[breach.rule] += 1
    return {path: dict(sorted(rules.items())) for path, rules in sorted(counts.items())}


def totals(counts: Counts) -> Counter[str]:
    found: Counter[str] = Counter()
    for rules in counts.values():
        found.update(rules)
    return found


def check(root: Path, breaches: list[Breach]) -> list[str]:
    """The breaches above the allow-list. A file that was moved takes its allowance along."""
    allowed = allowed_of((root / ALLOWED).read_text())
    found, limit = counted(breaches), totals(allowed)
    over = {rule for rule, count in totals(found).items() if count > limit[rule]}
    return [
        str(breach) for breach in breaches
        if breach.rule in over
        and found[breach.path][breach.rule] > allowed.get(breach.path, {}).get(breach.rule, 0)
    ]  # fmt: skip


def check_allowed(root: Path) -> list[str]:
    """Rules with a higher total in the allow-list than in the previous commit."""
    command = ["git", "show", f"HEAD~1:{ALLOWED}"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode != 0:
        return []
    before, now = totals(allowed_of(done.stdout)), totals(allowed_of((root / ALLOWED).read_text()))
    return [
        f"{ALLOWED}: {rule} has {count} allowed breaches, {before[rule]} before; edit the new text"
        for rule, count in now.items()
        if count > before[rule] and rule in before
    ]


def allowed_of(text: str) -> Counts:
    found: Counts = json.loads(text)
    return found


def shrunk(allowed: Counts, found: Counts) -> Counts:
    """The breaches that are left, if no rule has more of them than the allow-list."""
    left, limit = totals(found), totals(allowed)
    grown = [rule for rule, count in left.items() if count > limit[rule] and rule in limit]
    if grown:
        sys.exit(f"the text has new breaches of {', '.join(grown)}; edit them first")
    return found


def written(counts: Counts) -> str:
    rows = [f"{json.dumps(path)}: {json.dumps(rules)}" for path, rules in counts.items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def sample(texts: list[Text], seed: int) -> list[str]:
    """Texts for an editor to judge, drawn at random."""
    draw = random.Random(seed)
    lines = []
    for kind, title, number in (
        ("paragraph", "paragraphs of docs", 20),
        ("comment", "docstrings and comments", 40),
        ("message", "messages", 40),
    ):
        pool = [text for text in texts if text.kind == kind and is_sampled(text)]
        drawn = draw.sample(pool, min(number, len(pool)))
        lines.append(f"== {number} of {len(pool)} {title}")
        lines += [
            f"{index}. {text.path}:{text.line}\n   {' '.join(text.shown.split())}"
            for index, text in enumerate(drawn, 1)
        ]
    return lines


def is_sampled(text: Text) -> bool:
    if text.kind == "paragraph":
        return text.path.startswith("docs/") and len(text.words.split()) >= 12
    return text.path.startswith(("python/towpath/", "src/towpath/"))


def main(arguments: list[str]) -> int:
    options = [each for each in arguments if each.startswith("--")]
    wanted = [each.rstrip("/") for each in arguments if not each.startswith("--")]
    if options == ["--sample"]:
        print("\n".join(sample(all_texts(ROOT, wanted[1:]), int(wanted[0]))))
        return 0
    rules = rules_of(ROOT)
    breaches = [b for text in all_texts(ROOT, wanted) for b in breaches_of(text, rules)]
    if options == ["--list"]:
        print("\n".join(map(str, breaches)))
        return 0
    if options == ["--count"]:
        print("\n".join(f"{n:5} {rule}" for rule, n in totals(counted(breaches)).most_common()))
        return 0
    if options == ["--shrink"]:
        allowed = allowed_of((ROOT / ALLOWED).read_text())
        (ROOT / ALLOWED).write_text(written(shrunk(allowed, counted(breaches))))
        return 0
    found = check(ROOT, breaches) + check_allowed(ROOT)
    if found:
        print("\n".join(found) + "\nSTYLE.md has an example for each rule.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
