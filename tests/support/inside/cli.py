# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The command line: its application for typer, its list of collectives, and how it writes files."""

from towpath.cli import export, kernel, main
from towpath.cli.groups import COLLECTIVES
from towpath.cli.new import write_kernel_project
from towpath.cli.output_file import command_line, deliver, json_text, page_output, results_folder
