# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The index of statements, its rules and runs, and the samples cut from the documents."""

from towpath.reproduce import (
    documents,
    ethernet_machines,
    execution,
    guide_samples,
    worklog_kernels,
    worklog_times,
)
from towpath.reproduce.documents import NEEDS, CannotRun, document
from towpath.reproduce.execution import execute, perform
from towpath.reproduce.rules import Verdict, holds, judge
from towpath.reproduce.runs import RUNS
from towpath.reproduce.statements import TITLES, Statement, statements
