// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/trace.hpp"

namespace towpath::sim {

TrackId Trace::track(std::string_view text) { return TrackId{intern(tracks_, text)}; }

NameId Trace::name(std::string_view text) { return NameId{intern(names_, text)}; }

std::uint32_t Trace::intern(Strings& strings, std::string_view text) {
  if (const auto found = strings.identifiers.find(text); found != strings.identifiers.end()) {
    return found->second;
  }
  const auto identifier = static_cast<std::uint32_t>(strings.texts.size());
  strings.texts.emplace_back(text);
  strings.identifiers.emplace(text, identifier);
  mix(text.size());
  for (const char c : text) mix(static_cast<unsigned char>(c));
  return identifier;
}

}  // namespace towpath::sim
