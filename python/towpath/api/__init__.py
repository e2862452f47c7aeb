# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What `import towpath` offers: machines, schedules, runs and their results as plain objects."""
