# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m towpath`: the command `towpath` of this interpreter."""

from towpath.cli.entry import main

if __name__ == "__main__":
    main()
