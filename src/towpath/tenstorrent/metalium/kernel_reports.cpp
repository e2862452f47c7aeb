// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/metalium/kernel_reports.hpp"

#include <algorithm>
#include <utility>

namespace towpath::tenstorrent::metalium {

KernelLog::From KernelReports::from() const {
  const KernelConfig& config = core_.config();
  return {std::max(0, config.chip), config.core, config.name};
}

void KernelReports::print(std::string_view text) {
  if (log_ == nullptr) return;
  for (const char character : text) {
    if (character == '\n') {
      log_->lines.push_back({from(), std::exchange(line_, {})});
    } else {
      line_ += character;
    }
  }
}

void KernelReports::end() {
  if (!line_.empty()) print("\n");
}

void KernelReports::zone(const char* name, bool begins) {
  if (log_ == nullptr) return;
  if (begins) {
    open_zones_.push_back({from(), name, core_.cycle(), 0});
    return;
  }
  KernelLog::Zone zone = std::move(open_zones_.back());
  open_zones_.pop_back();
  zone.end = core_.cycle();
  log_->zones.push_back(std::move(zone));
}

void KernelReports::record(const char* name, std::uint64_t value) {
  if (log_ != nullptr) log_->values.push_back({from(), name, value});
}

}  // namespace towpath::tenstorrent::metalium
