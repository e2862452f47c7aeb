// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/hazards/errors.hpp"

namespace towpath::tenstorrent {

std::string_view name_of(Hazard hazard) {
  switch (hazard) {
    case Hazard::missing_handshake: return "missing_handshake";
    case Hazard::missing_teardown: return "missing_teardown";
    case Hazard::source_overwritten: return "source_overwritten";
    case Hazard::sync_before_payload: return "sync_before_payload";
    case Hazard::acknowledgement_from_channel_word: return "acknowledgement_from_channel_word";
    case Hazard::semaphore_cleared_after_notification:
      return "semaphore_cleared_after_notification";
    case Hazard::two_workers_on_one_channel: return "two_workers_on_one_channel";
    case Hazard::buffer_not_there: return "buffer_not_there";
    case Hazard::buffer_freed: return "buffer_freed";
    case Hazard::used_before_barrier: return "used_before_barrier";
    case Hazard::reused_before_flushed: return "reused_before_flushed";
    case Hazard::link_down_without_routing: return "link_down_without_routing";
  }
  return "";
}

}  // namespace towpath::tenstorrent
