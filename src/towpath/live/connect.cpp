// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/connect.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "towpath/transport/shm/shm_transport.hpp"
#ifdef TOWPATH_HAS_UCX
#include "towpath/transport/ucx/ucx_transport.hpp"
#endif

namespace towpath::live {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<transport::LiveTransport> (*connect)(const transport::LiveOptions& options);
};

// The registry: one line per transport.
constexpr Entry kTransports[] = {
    {"shm", transport::shm::connect},
#ifdef TOWPATH_HAS_UCX
    {"ucx", transport::ucx::connect},
#endif
};

}  // namespace

std::vector<std::string_view> names() {
  std::vector<std::string_view> found;
  for (const Entry& entry : kTransports) found.push_back(entry.name);
  return found;
}

std::unique_ptr<transport::LiveTransport> connect(std::string_view name,
                                                  const transport::LiveOptions& options) {
  for (const Entry& entry : kTransports) {
    if (entry.name == name) return entry.connect(options);
  }
  throw std::invalid_argument(fmt::format("there is no live transport '{}'; choose one of {}", name,
                                          fmt::join(names(), ", ")));
}

}  // namespace towpath::live
