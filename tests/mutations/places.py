# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Places in a source at which an operator of mutation applies.

A place is named by a function, an operator and an ordinal: the second `boundary` of `Port::busy`.
Text, comments, formatting and names of locals are no part of that, so that their change breaks no
mutation. tree-sitter provides the syntax trees.

A function's name is as it is written where it is defined, with its classes and without namespaces:
`Port::busy`, `Sweep.run`. Functions of one name in one file count as one, in their order. A
constant outside functions has a name, too, and so has a member with an initializer. Lambdas and
local classes belong to the function that they are in.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tree_sitter_cpp
import tree_sitter_python
from tree_sitter import Language, Node, Parser, Tree

OPERATORS = {
    "negate": "a condition, a comparison, an operand of a logical operator, true, false: inverted",
    "always": "a condition, a comparison or an operand of a logical operator: true",
    "never": "the same: false",
    "boundary": "< and <= exchanged, > and >= exchanged",
    "relation": "< and > exchanged, <= and >= exchanged, == and != exchanged",
    "arithmetic": "+ and - exchanged, * and /, << and >>, & and |; also in ++ and +=; % becomes *",
    "drop-left": "a binary operator, std::min or std::max without its first operand; += becomes =",
    "drop-right": "the same without its second operand",
    "swap": "two operands, two arguments or two members of a list: exchanged",
    "limit-up": "the right-hand side of <, <=, > or >=: one more",
    "limit-down": "the right-hand side of <, <=, > or >=: one less",
    "min-max": "min and max exchanged",
    "increment": "a number: one more",
    "decrement": "a number: one less",
    "default": "an initializer, a new value, an argument or a returned value: {}",
    "unwrap": "a function of one argument or a sign: the operand itself",
    "drop-element": "an argument or a member of a list: nothing",
    "drop-statement": "a statement: nothing",
    "once": "a while loop: an if",
    "relax": "a memory order: relaxed",
}

COMPARISONS = {"<", "<=", ">", ">=", "==", "!="}
LOGICAL = {"&&", "||", "and", "or"}
BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
RELATION = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "!=", "!=": "=="}
ARITHMETIC = {
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "%": "*",
    "<<": ">>",
    ">>": "<<",
    "&": "|",
    "|": "&",
}
ARITHMETIC |= {f"{one}=": f"{other}=" for one, other in ARITHMETIC.items()} | {
    "++": "--",
    "--": "++",
}
_NUMBER = re.compile(r"(0[xX][\da-fA-F']+|0b[01']+|[\d'_]*\.?[\d'_]*(?:[eE][+-]?\d+)?)(\w*)")
MIN_MAX = {"min": "max", "max": "min"}

BINARY = {"binary_expression", "binary_operator", "boolean_operator", "comparison_operator"}
COMPOUND = {"assignment_expression", "augmented_assignment"}
DECIDING = {
    "if_statement", "while_statement", "for_statement", "do_statement", "conditional_expression",
    "elif_clause", "if_clause",
}  # fmt: skip
STATEMENTS = {
    "expression_statement", "return_statement", "if_statement", "for_statement", "for_range_loop",
    "while_statement", "break_statement", "continue_statement", "raise_statement",
}  # fmt: skip
LISTS = {"argument_list", "initializer_list", "expression_list", "tuple", "list"}


@dataclass(frozen=True)
class Place:
    """A place and what the operator makes of it; offsets are those of the source's bytes."""

    begin: int
    end: int
    replacement: bytes


@dataclass(frozen=True)
class Source:
    """A source file with its syntax tree."""

    text: bytes
    tree: Tree
    is_python: bool

    @classmethod
    def of(cls, text: str, suffix: str) -> Source:
        language = _language(suffix == ".py")
        encoded = text.encode()
        return cls(encoded, Parser(language).parse(encoded), suffix == ".py")

    @classmethod
    def read(cls, file: Path) -> Source:
        return cls.of(file.read_text(encoding="utf-8"), file.suffix)

    def functions(self) -> dict[str, list[Node]]:
        """The definitions of each name, in their order."""
        found: dict[str, list[Node]] = {}
        for name, node in _definitions(self.tree.root_node, ()):
            found.setdefault((".".join if self.is_python else "::".join)(name), []).append(node)
        return found

    def places(self, function: str, operator: str) -> list[Place]:
        """Where the operator applies in the function, in the order of the text.

        Raises:
            KeyError: there is no such function or no such operator.
        """
        found = _PLACES[operator]
        places = {
            place: None
            for definition in self.functions()[function]
            for node in _walk(definition)
            for place in found(self, node)
        }
        return sorted(places, key=lambda place: (place.begin, place.end, place.replacement))

    def mutant(self, function: str, operator: str, at: int = 1) -> str:
        """The source with one mutation.

        Raises:
            KeyError: there is no such function or no such operator.
            IndexError: the operator does not apply in so many places.
        """
        places = self.places(function, operator)
        if not 0 < at <= len(places):
            raise IndexError(f"{operator} applies in {len(places)} places of {function}")
        place = places[at - 1]
        return (self.text[: place.begin] + place.replacement + self.text[place.end :]).decode()


@functools.cache
def _language(is_python: bool) -> Language:
    return Language((tree_sitter_python if is_python else tree_sitter_cpp).language())


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _walk(child)


# --- names ---


def _definitions(node: Node, scope: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node]]:
    for child in node.children:
        name = _defined_name(child)
        if child.type in ("class_specifier", "struct_specifier", "class_definition"):
            inner = child.child_by_field_name("name")
            yield from _definitions(child, (*scope, _text(inner)) if inner else scope)
        elif name is not None:
            yield (*scope, name), child
        else:
            yield from _definitions(child, scope)


def _defined_name(node: Node) -> str | None:
    """The name that a node defines, or None if it is no function, constant or member."""
    if node.type == "function_definition":
        declarator = node.child_by_field_name("declarator")
        if declarator is None:  # Python
            return _text(node.child_by_field_name("name"))
        while declarator.type != "function_declarator":
            inner = declarator.child_by_field_name("declarator") or _named_child(declarator)
            if inner is None:
                return _text(declarator)
            declarator = inner
        return _text(declarator.child_by_field_name("declarator"))
    if node.type in ("declaration", "field_declaration"):
        for child in node.children:
            if child.type == "init_declarator":
                return _plain_name(child.child_by_field_name("declarator"))
        if node.child_by_field_name("default_value") is not None:
            return _plain_name(node.child_by_field_name("declarator"))
    if node.type == "assignment":
        return _text(node.child_by_field_name("left"))
    return None


def _plain_name(declarator: Node | None) -> str:
    """The name in a declarator of a pointer, a reference or an array."""
    return re.sub(r"^[*& ]+|\[.*$", "", _text(declarator))


def _named_child(node: Node) -> Node | None:
    return node.named_children[0] if node.named_children else None


def _text(node: Node | None) -> str:
    return "" if node is None or node.text is None else node.text.decode()


# --- operators ---


def _stripped(node: Node) -> Node:
    """The expression inside parentheses."""
    while node.type == "parenthesized_expression" and len(node.named_children) == 1:
        node = node.named_children[0]
    return node


def _operator(node: Node) -> Node | None:
    if node.type == "comparison_operator":  # Python; a chain of comparisons has several
        operators = node.children_by_field_name("operators")
        return operators[0] if len(operators) == 1 else None
    return node.child_by_field_name("operator")


def _operands(node: Node) -> tuple[Node, Node] | None:
    """The operands of a binary operator or of std::min and std::max."""
    if node.type in BINARY:
        return _pair(node)
    if node.type in ("call_expression", "call") and _callee(node) in MIN_MAX:
        return _pair(node.child_by_field_name("arguments"))
    return None


def _callee(node: Node) -> str:
    name = _text(node.child_by_field_name("function"))
    return name.split("<")[0].rpartition("::")[2]


def _pair(node: Node | None) -> tuple[Node, Node] | None:
    if node is None:
        return None
    elements = _elements(node)
    return (elements[0], elements[1]) if len(elements) == 2 else None


def _conditions(node: Node) -> Iterator[Node]:
    """What a node uses as true or false, if it is a node that does."""
    if node.type in DECIDING:
        condition = _condition_of(node)
        if condition is not None and condition.type != "declaration":
            yield condition
    elif node.type in BINARY:
        sign = _text(_operator(node))
        if sign in COMPARISONS or sign in LOGICAL:
            yield node
        if sign in LOGICAL:
            yield from _elements(node)
    elif _is_not(node):
        yield node


def _condition_of(node: Node) -> Node | None:
    condition = node.child_by_field_name("condition")
    if condition is not None and condition.type == "condition_clause":
        return condition.child_by_field_name("value")
    if node.type == "if_clause":  # of a comprehension
        return node.named_children[0]
    if node.type == "conditional_expression" and condition is None:  # Python
        return node.named_children[1]
    return condition


def _elements(node: Node) -> list[Node]:
    return [child for child in node.named_children if child.type != "comment"]


def _is_not(node: Node) -> bool:
    is_exclamation = _text(node.child_by_field_name("operator")) == "!"
    return node.type == "not_operator" or (node.type == "unary_expression" and is_exclamation)


def _as(node: Node, replacement: str) -> Place:
    return Place(node.start_byte, node.end_byte, replacement.encode())


def _negate(source: Source, node: Node) -> Iterator[Place]:
    inverted = {"true": "false", "false": "true", "True": "False", "False": "True"}
    if node.type in ("true", "false"):
        yield _as(node, inverted[_text(node)])
    for condition in map(_stripped, _conditions(node)):
        if condition.type not in ("true", "false"):
            yield _as(condition, f"{'(not ' if source.is_python else '!'}({_text(condition)})"
                      + (")" if source.is_python else ""))  # fmt: skip


def _always(source: Source, node: Node) -> Iterator[Place]:
    word = "True" if source.is_python else "true"
    return (_as(_stripped(condition), word) for condition in _conditions(node))


def _never(source: Source, node: Node) -> Iterator[Place]:
    word = "False" if source.is_python else "false"
    return (_as(_stripped(condition), word) for condition in _conditions(node))


def _exchanged(node: Node, signs: dict[str, str]) -> Iterator[Place]:
    sign = _operator(node) if node.type in BINARY | COMPOUND | {"update_expression"} else None
    if sign is not None and _text(sign) in signs:
        yield _as(sign, signs[_text(sign)])


def _boundary(source: Source, node: Node) -> Iterator[Place]:
    return _exchanged(node, BOUNDARY)


def _relation(source: Source, node: Node) -> Iterator[Place]:
    return _exchanged(node, RELATION)


def _arithmetic(source: Source, node: Node) -> Iterator[Place]:
    return _exchanged(node, ARITHMETIC)


def _drop_left(source: Source, node: Node) -> Iterator[Place]:
    if node.type in COMPOUND and (sign := _operator(node)) is not None and _text(sign) != "=":
        yield _as(sign, "=")
    elif (pair := _operands(node)) and _text(_operator(node)) not in COMPARISONS:
        yield _as(node, _text(pair[1]))


def _drop_right(source: Source, node: Node) -> Iterator[Place]:
    if (pair := _operands(node)) and _text(_operator(node)) not in COMPARISONS:
        yield _as(node, _text(pair[0]))


def _swap(source: Source, node: Node) -> Iterator[Place]:
    pair = _operands(node) if node.type in BINARY else None
    pair = pair or (_pair(node) if node.type in LISTS else None)
    if pair:
        between = source.text[pair[0].end_byte : pair[1].start_byte].decode()
        swapped = f"{_text(pair[1])}{between}{_text(pair[0])}"
        yield Place(pair[0].start_byte, pair[1].end_byte, swapped.encode())


def _min_max(source: Source, node: Node) -> Iterator[Place]:
    if node.type in ("call_expression", "call") and _callee(node) in MIN_MAX:
        function = node.child_by_field_name("function")
        written = _text(function)
        yield _as(function, written.replace(_callee(node), MIN_MAX[_callee(node)], 1))


def _limit(node: Node, step: str) -> Iterator[Place]:
    if node.type in BINARY and _text(_operator(node)) in BOUNDARY and (pair := _operands(node)):
        yield _as(pair[1], f"({_text(pair[1])}) {step} 1")


def _limit_up(source: Source, node: Node) -> Iterator[Place]:
    return _limit(node, "+")


def _limit_down(source: Source, node: Node) -> Iterator[Place]:
    return _limit(node, "-")


def _number(node: Node, step: int) -> Iterator[Place]:
    written = node.type in ("number_literal", "integer", "float") and _NUMBER.fullmatch(_text(node))
    if not written:
        return
    digits, suffix = written.groups()
    digits = digits.replace("'", "")
    is_whole = digits.startswith(("0x", "0X", "0b")) or digits.replace("_", "").isdigit()
    value = int(digits, 0) + step if is_whole else float(digits) + step
    yield _as(node, f"{value}{suffix}" if value >= 0 else f"({value}{suffix})")


def _increment(source: Source, node: Node) -> Iterator[Place]:
    return _number(node, 1)


def _decrement(source: Source, node: Node) -> Iterator[Place]:
    return _number(node, -1)


def _default(source: Source, node: Node) -> Iterator[Place]:
    values: list[Node | None] = []
    if node.type == "init_declarator":
        values = [node.child_by_field_name("value")]
    elif node.type == "assignment_expression" and _text(_operator(node)) == "=":
        values = [node.child_by_field_name("right")]
    elif node.type in ("argument_list", "initializer_list", "return_statement"):
        values = [*_elements(node)]
    for value in values:
        if value is not None and _text(value) != "{}" and not source.is_python:
            yield _as(value, "{}")


def _unwrap(source: Source, node: Node) -> Iterator[Place]:
    if node.type in ("call_expression", "call"):
        arguments = node.child_by_field_name("arguments")
        if arguments is not None and len(arguments.named_children) == 1:
            yield _as(node, f"({_text(arguments.named_children[0])})")
    elif node.type in ("unary_expression", "unary_operator") and not _is_not(node):
        yield _as(node, _text(node.child_by_field_name("argument")))


def _drop_element(source: Source, node: Node) -> Iterator[Place]:
    if node.type not in LISTS:
        return
    elements = _elements(node)
    for index, element in enumerate(elements):
        if index > 0:
            yield Place(elements[index - 1].end_byte, element.end_byte, b"")
        else:
            end = elements[1].start_byte if len(elements) > 1 else element.end_byte
            yield Place(element.start_byte, end, b"")


def _drop_statement(source: Source, node: Node) -> Iterator[Place]:
    is_docstring = _named_child(node) is not None and node.named_children[0].type == "string"
    if node.type in STATEMENTS and not is_docstring:
        yield _as(node, "pass" if source.is_python else "{}")


def _once(source: Source, node: Node) -> Iterator[Place]:
    if node.type == "while_statement":
        yield _as(node.children[0], "if")


def _relax(source: Source, node: Node) -> Iterator[Place]:
    if node.type == "qualified_identifier" and _text(node).startswith("std::memory_order_"):
        yield _as(node, "std::memory_order_relaxed")


_PLACES = {
    "negate": _negate,
    "always": _always,
    "never": _never,
    "boundary": _boundary,
    "relation": _relation,
    "arithmetic": _arithmetic,
    "drop-left": _drop_left,
    "drop-right": _drop_right,
    "swap": _swap,
    "min-max": _min_max,
    "limit-up": _limit_up,
    "limit-down": _limit_down,
    "increment": _increment,
    "decrement": _decrement,
    "default": _default,
    "unwrap": _unwrap,
    "drop-element": _drop_element,
    "drop-statement": _drop_statement,
    "once": _once,
    "relax": _relax,
}
