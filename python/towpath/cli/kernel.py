# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath kernel`: kernels in their own source form. The suffix of a file selects its machine and
options. Each suffix has a module with a command `run`.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated, Any

import typer

from towpath.cli import groups
from towpath.errors import ConfigError

# By suffix: the module with the command, and what its kernels are.
COMMANDS = {
    ".cpp": ("towpath.cli.kernel_metalium", "a kernel of TT-Metalium, on the cores of chips"),
    ".cu": ("towpath.cli.kernel_gpu", "a CUDA program with NVSHMEM, on GPUs"),
}

app = groups.group("Run CUDA and TT-Metalium kernels on described machines.")


def _command_of(file: str) -> Any:
    return typer.main.get_command(importlib.import_module(COMMANDS[Path(file).suffix][0]).app)


class _Run(groups.CommandOfFile):
    def of_file(self, words: list[str]) -> Any:
        found = next((word for word in words if _is_kernel(word)), None)
        return None if found is None else _command_of(found)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keeps the `--` before a program's own arguments, which the file's command parses."""
        if "--" in args:
            place = args.index("--")
            args = [*args[:place], "--", *args[place:]]
        return super().parse_args(ctx, args)


@app.command(
    "run", cls=_Run, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def run(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="the kernel's source; its suffix says its kind")],
) -> None:
    """Compile a kernel and run it on a described machine.

    The options depend on the file: `towpath kernel run X.cu --help` lists those of CUDA programs,
    `towpath kernel run X.cpp --help` those of TT-Metalium kernels.
    """
    # Options are not known yet, so that the first word may be one of them.
    words = [str(file), *context.args]
    found = next((word for word in words if _is_kernel(word)), None)
    if found is None:
        known = "; ".join(f"*{suffix} is {what}" for suffix, (_, what) in COMMANDS.items())
        raise ConfigError(f"'{file}' does not have the suffix of a kernel; {known}")
    words.remove(found)
    status = _command_of(found).main(
        [found, *words],
        prog_name="towpath kernel run",
        standalone_mode=False,
        obj=context.obj,
    )
    if status:  # a command's own exit, which is returned where it does not stand alone
        raise typer.Exit(status)


def _is_kernel(word: str) -> bool:
    return not word.startswith("-") and Path(word).suffix in COMMANDS
