# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The prose of a file: paragraphs of documents, docstrings and comments, and messages."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Documents that a program writes, and the style guide, which quotes breaches of all rules.
NOT_READ = ("docs/parameters.md", "docs/nvshmem.md", "STYLE.md")
MESSAGE_WORDS = 4
CODE_LINE = re.compile(r"[;{}]\s*$|^\s*#\s*(?:include|define|if|endif)|^\s{3,}\S.*[=(]")
CPP_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
WORD = re.compile(r"[A-Za-z][A-Za-z'’-]+")
PLACEHOLDER = "_"


@dataclass(frozen=True)
class Text:
    """One piece of prose.

    Attributes:
        path: Its file, below the root.
        line: Its first line.
        kind: `paragraph`, `table` (one row), `comment` (docstrings as well) or `message`.
        shown: The text as written.
        words: The text for the rules: code is replaced by placeholders, line breaks are kept.
    """

    path: str
    line: int
    kind: str
    shown: str
    words: str


def texts_of(root: Path, path: str) -> Iterator[Text]:
    """The texts of one file; none for a file that holds no prose."""
    if not (root / path).is_file() or path in NOT_READ:
        return
    if path.endswith(".md"):
        yield from paragraphs(path, (root / path).read_text())
    elif path.startswith("python/towpath/") and path.endswith(".py"):
        yield from python_texts(path, (root / path).read_text())
    elif path.startswith("src/towpath/") and path.endswith((".cpp", ".hpp", ".h")):
        yield from cpp_texts(path, (root / path).read_text())


def without_code(text: str) -> str:
    """Replaces code in backticks and targets of links; line breaks stay."""

    def blank(match: re.Match[str]) -> str:
        return PLACEHOLDER + "\n" * match[0].count("\n")

    text = re.sub(r"(`+)(?:.|\n)+?\1", blank, text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return re.sub(r"https?://\S+|<!--(?:.|\n)*?-->", blank, text)


def paragraphs(path: str, text: str) -> Iterator[Text]:
    """Paragraphs, items, headings and rows of tables of a Markdown document."""
    block: list[str] = []
    first = 1
    is_code = is_hidden = False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fence = line.lstrip().startswith("```")
        is_hidden = is_hidden or line.lstrip().startswith("<!--")
        outside = not (fence or is_code or is_hidden)
        starts = bool(re.match(r"\s*(?:[-*|#>]|\d+\.)\s?", line)) or not line.strip()
        if block and (starts or not outside):
            shown = "\n".join(block)
            kind = "table" if shown.lstrip().startswith("|") else "paragraph"
            yield Text(path, first, kind, shown, without_code(shown))
            block = []
        if outside and line.strip() and not re.fullmatch(r"[\s|:-]+", line):
            first = first if block else number
            block.append(line)
        is_code = is_code != fence
        is_hidden = is_hidden and "-->" not in line


def python_texts(path: str, text: str) -> Iterator[Text]:
    tree = ast.parse(text)
    docstrings = {
        each.value for node in ast.walk(tree) for each in bodies_of(node)
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
    }  # fmt: skip
    parts = {
        part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node) if part is not node
    }  # fmt: skip
    for node in ast.walk(tree):
        value = literal_of(node)
        if not value or node in parts or not isinstance(node, ast.expr):
            continue
        if node in docstrings:
            yield docstring(path, node.lineno, value)
        elif is_message(value):
            words = without_code(value).replace("{}", PLACEHOLDER)
            yield Text(path, node.lineno, "message", value, words)
    yield from python_comments(path, text)


def bodies_of(node: ast.AST) -> list[ast.stmt]:
    body = getattr(node, "body", None)
    return body if isinstance(body, list) else []


def literal_of(node: ast.AST) -> str:
    """The text of a string, with {} for the values of an f-string. Empty for all else."""
    if isinstance(node, ast.JoinedStr):
        return "".join(literal_of(part) or "{}" for part in node.values)
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return node.value if is_text else ""  # type: ignore[attr-defined]


def docstring(path: str, line: int, value: str) -> Text:
    """A docstring without its examples."""
    lines = []
    is_example = False
    for each in value.splitlines():
        is_example = each.lstrip().startswith(">>>") or (is_example and bool(each.strip()))
        lines.append("" if is_example else each.strip())
    return Text(path, line, "comment", value, without_code("\n".join(lines)))


def is_message(value: str) -> bool:
    """Prose, not code: words apart from names, and no program of several lines."""
    code = re.search(r"\n.*[;{}=(]\s*\n|</|/>|^\s*(?:import|from|#include) ", value)
    return not code and len(WORD.findall(without_code(value))) >= MESSAGE_WORDS and " " in value


def python_comments(path: str, text: str) -> Iterator[Text]:
    """Comments; those of adjacent lines are one text."""
    block: list[str] = []
    first = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        shown = token.string.lstrip("#").strip()
        if re.match(r"(?:fmt|type|noqa|ruff|mypy|SPDX|pragma|!)", shown):
            continue
        if block and token.start[0] == first + len(block):
            block.append(shown)
            continue
        yield from comment(path, first, block)
        first, block = token.start[0], [shown]
    yield from comment(path, first, block)


def comment(path: str, line: int, block: list[str]) -> Iterator[Text]:
    shown = "\n".join(block)
    if len(WORD.findall(shown)) >= 2 and not re.match(r"namespace \w+(?:::\w+)*$", shown):
        yield Text(path, line, "comment", shown, without_code(shown))


def cpp_texts(path: str, text: str) -> Iterator[Text]:
    block: list[str] = []
    first = 0
    lines = re.sub(r'R"(\w*)\((?:.|\n)*?\)\1"', lambda m: "\n" * m[0].count("\n"), text)
    for number, line in enumerate(lines.splitlines(), 1):
        code, shown = split_comment(line)
        if shown is None or "SPDX" in line or (
            CODE_LINE.search(shown) and not re.match(r"\s?[A-Z]", shown)
        ):  # fmt: skip
            continue
        if block and number == first + len(block) and not code.strip():
            block.append(shown.strip())
            continue
        yield from comment(path, first, block)
        first, block = number, [shown.strip()]
    yield from comment(path, first, block)
    yield from cpp_messages(path, lines)


def split_comment(line: str) -> tuple[str, str | None]:
    """The code and the comment of a line of C++."""
    code = CPP_STRING.sub(lambda match: "_" * len(match[0]), line)
    start = code.find("//")
    return (line, None) if start < 0 else (line[:start], line[start:].lstrip("/<"))


def cpp_messages(path: str, text: str) -> Iterator[Text]:
    """String literals; adjacent ones are one text."""
    lines = [split_comment(line)[0] for line in text.splitlines()]
    code = "\n".join("" if line.lstrip().startswith("#include") else line for line in lines)
    for match in re.finditer(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', code):
        shown = "".join(CPP_STRING.findall(match[0]))
        if is_message(shown):
            line = code.count("\n", 0, match.start()) + 1
            yield Text(path, line, "message", shown, re.sub(r"\{[^}]*\}", PLACEHOLDER, shown))
