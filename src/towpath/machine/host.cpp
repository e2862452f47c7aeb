// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/host.hpp"

#include <utility>

#include "towpath/machine/checks.hpp"

namespace towpath::machine {

std::shared_ptr<const Host> build_host(Host host) {
  const Checks checks(fmt::format("host '{}'", host.name));
  for_each_block(host, [&](const char* name, Needed, const auto& block, const auto& table) {
    checks.block(name, block, table);
  });
  const HostMemoryParameters& memory = host.memory;
  if (memory.hugepage_bytes <= memory.page_bytes) {
    checks.fail_at("memory.hugepage_bytes", "is {}; it must be more than {}, the page_bytes",
                   memory.hugepage_bytes, memory.page_bytes);
  }
  return std::make_shared<const Host>(std::move(host));
}

}  // namespace towpath::machine
