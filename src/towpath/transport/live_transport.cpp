// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/live_transport.hpp"

#include <utility>

namespace towpath::transport {

void News::post(Loss loss) {
  const std::lock_guard lock(mutex_);
  if (is_posted_.load(std::memory_order_relaxed)) return;
  loss_ = std::move(loss);
  is_posted_.store(true, std::memory_order_release);
}

std::optional<Loss> News::read() const {
  if (!is_posted_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return loss_;
}

}  // namespace towpath::transport
