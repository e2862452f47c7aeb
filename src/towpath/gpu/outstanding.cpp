// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/outstanding.hpp"

#include <utility>

namespace towpath::gpu {

void Outstanding::visible(std::uint64_t number) {
  outstanding_.erase(number);
  const std::uint64_t oldest = outstanding_.empty() ? UINT64_MAX : *outstanding_.begin();
  std::vector<std::function<void()>> ready;
  std::erase_if(waits_, [&](Wait& wait) {
    if (wait.until >= oldest) return false;
    ready.push_back(std::move(wait.then));
    return true;
  });
  for (const auto& then : ready) then();
}

void Outstanding::when_quiet(std::function<void()> then) {
  if (outstanding_.empty()) return then();
  waits_.push_back({last_, std::move(then)});
}

}  // namespace towpath::gpu
