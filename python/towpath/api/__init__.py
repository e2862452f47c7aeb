# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Public interface of `import towpath`: machines, schedules, runs and their results as objects."""
