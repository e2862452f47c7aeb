// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/errors.hpp"

namespace towpath::gpu {

const char* name_of(Hazard hazard) {
  switch (hazard) {
    case Hazard::source_changed: return "source_changed";
    case Hazard::unawaited_data: return "unawaited_data";
    case Hazard::fence_for_quiet: return "fence_for_quiet";
    case Hazard::signal_reused: return "signal_reused";
    case Hazard::overshot_wait: return "overshot_wait";
    case Hazard::unregistered_buffer: return "unregistered_buffer";
    case Hazard::divergent_barrier: return "divergent_barrier";
    case Hazard::mismatched_allocation: return "mismatched_allocation";
  }
  return "";
}

}  // namespace towpath::gpu
