// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/niu/request.hpp"

#include <fmt/format.h>

namespace towpath::noc {

std::string_view name_of(RequestKind kind) {
  switch (kind) {
    case RequestKind::read: return "read";
    case RequestKind::write: return "write";
    case RequestKind::inline_write: return "inline write";
    case RequestKind::atomic_increment: return "atomic increment";
  }
  return "request";
}

std::string describe(const Request& request) {
  const machine::Coordinate at = request.remote.tile;
  std::string text = std::string(name_of(request.kind));
  if (moves_data(request.kind)) text += fmt::format(" of {} bytes", request.size_bytes);
  text += request.kind == RequestKind::read ? " from" : " to";
  if (!request.is_multicast) return text + fmt::format(" ({}, {})", at.x, at.y);
  return text + fmt::format(" the rectangle ({}, {}) to ({}, {})", at.x, at.y, request.last_tile.x,
                            request.last_tile.y);
}

}  // namespace towpath::noc
