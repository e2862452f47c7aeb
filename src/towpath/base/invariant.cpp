// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/base/invariant.hpp"

namespace towpath {

void throw_invariant_error(const std::string& sentence) { throw InvariantError(sentence); }

}  // namespace towpath
