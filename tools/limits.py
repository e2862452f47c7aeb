#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The limits of a function: lines, complexity, parameters. Prints one line per breach.

Usage: tools/limits.py [ROOT]
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import lizard
from tidy import source_files

LINES_MAX = 70
COMPLEXITY_MAX = 15
PARAMETERS_MAX = 5
# A lambda of the bindings takes what the Python function takes, and a macro is not a function;
# OpenSHMEM's specification and CUDA's reference say what their functions take.
WITHOUT_PARAMETER_LIMIT = (
    "src/towpath/bindings/", "src/towpath/shmem/", "src/towpath/virtual_gpu/",
)  # fmt: skip
# Their parameters are those of the functions of the same names in the vendor's documents.
VENDORS_SIGNATURES = {
    "eth_send_bytes_over_channel",
    "noc_multicast_write",
    "eth_send_bytes_over_channel_payload_only",
    "ReadFromDeviceL1",
    "append_fabric_connection_rt_args",
    "append_routing_plane_connection_manager_rt_args",
}
OPTIONS = "python/towpath/cli/options.py"


def breaches(path: str, text: str) -> list[str]:
    """One line per function of a file that is over a limit.

    Args:
        path: The file's path from the root; its suffix tells the language.
        text: Its content.

    Returns:
        The breaches, in the order of the file.
    """
    found = []
    for function in lizard.analyze_file.analyze_source_code(path, text).function_list:
        measures = [
            ("lines", function.end_line - function.start_line + 1, LINES_MAX),
            ("complexity", function.cyclomatic_complexity, COMPLEXITY_MAX),
        ]
        if has_parameter_limit(path, function.name):
            measures.append(("parameters", len(function.full_parameters), PARAMETERS_MAX))
        found += [
            f"{path}:{function.start_line}: {function.name} has {value} {measure}; at most {limit}"
            for measure, value, limit in measures
            if value > limit
        ]
    if path.endswith(".py"):
        found += python_parameters(path, text)
    return found


def has_parameter_limit(path: str, function: str) -> bool:
    """Whether a C++ function has a limit on its parameters; `python_parameters` is for Python."""
    return (
        not path.endswith(".py")
        and not path.startswith(WITHOUT_PARAMETER_LIMIT)
        and function.rpartition("::")[2] not in VENDORS_SIGNATURES
    )


def python_parameters(path: str, text: str) -> list[str]:
    """The breaches of the limit on parameters in a Python file.

    Keyword-only parameters, `self` and `cls` do not count; commands of the command line, whose
    parameters are its options, have no limit.
    """
    return [
        f"{path}:{node.lineno}: {node.name} has {count} parameters; at most {PARAMETERS_MAX}"
        for node in functions_of(ast.parse(text))
        if (count := positional_parameters(node)) > PARAMETERS_MAX
        and not is_command(node, shared_options())
    ]


def functions_of(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def positional_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def is_command(function: ast.FunctionDef | ast.AsyncFunctionDef, options: set[str]) -> bool:
    """Whether typer makes options of the parameters: it is told how in their annotations."""
    annotations = [ast.unparse(arg.annotation) for arg in function.args.args if arg.annotation]
    return any("typer." in text or "advanced(" in text or text in options for text in annotations)


@functools.cache
def shared_options() -> set[str]:
    """The names of options that several commands have."""
    module = ast.parse((Path(__file__).parent.parent / OPTIONS).read_text())
    return {
        target.id
        for node in module.body
        if isinstance(node, ast.Assign)
        and re.search(r"typer\.|advanced\(", ast.unparse(node.value))
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def breaches_of_file(root_and_path: tuple[str, str]) -> list[str]:
    root, path = root_and_path
    return breaches(path, (Path(root) / path).read_text())


def check(root: Path) -> list[str]:
    """The breaches in all sources below a root."""
    paths = [
        (str(root), path)
        for path in source_files(root)
        if Path(path).suffix in (".cpp", ".hpp", ".py") and (root / path).is_file()
    ]
    with ProcessPoolExecutor() as pool:
        return [line for lines in pool.map(breaches_of_file, paths, chunksize=8) for line in lines]


if __name__ == "__main__":
    found = check(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent)
    print("\n".join(found))
    sys.exit(1 if found else 0)
