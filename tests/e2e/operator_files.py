# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A file of an operator that may be spoilt. mutate.py calls `load` and `load_job`."""

from inside.operators import diagnose, job_times, read_job
from inside.pages import doctor_text, job_page, page_text

LINE_LENGTH_MAX = 1000


def load(path):
    """The answer about one file, as it is printed."""
    check(doctor_text(diagnose([path])), path)


def load_job(path):
    """The job of one trace, as it is printed."""
    job = read_job(path)
    check(page_text(job_page(job, job_times(job, []), "")), path)


def check(text, path):
    """What the terminal gets is readable, whatever the file contains."""
    for line in text.splitlines():
        assert line.isprintable(), line[:100]
        assert len(line) < LINE_LENGTH_MAX + len(str(path)), line[:100]
