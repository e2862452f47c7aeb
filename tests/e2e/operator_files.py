# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A file of an operator that may be spoilt. mutate.py calls `load` and `load_job`."""

from inside.operators import diagnose, read_job


def load(path):
    """The answer about one file."""
    return diagnose([path])


def load_job(path):
    """The job of one trace."""
    return read_job(path)
