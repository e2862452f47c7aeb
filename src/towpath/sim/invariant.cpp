// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/invariant.hpp"

namespace towpath::sim {

void throw_invariant_error(const std::string& sentence) { throw InvariantError(sentence); }

}  // namespace towpath::sim
