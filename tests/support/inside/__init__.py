# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The inside of towpath as tests see it: the only place of the tests that imports private modules.

A test enters by `import towpath` or by the command line. A test of a part behind that door takes
the part from here, from the module of its subject. When a part moves, only this folder changes.
"""

from towpath import _core
