// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/trace.hpp"

namespace towpath::sim {

namespace {

constexpr std::uint64_t kSeed = 0x243f6a8885a308d3;

}  // namespace

TrackId Trace::track(std::string_view text) { return TrackId{intern(tracks_, text)}; }

NameId Trace::name(std::string_view text) { return NameId{intern(names_, text)}; }

std::uint32_t Trace::intern(Strings& strings, std::string_view text) {
  if (const auto found = strings.identifiers.find(text); found != strings.identifiers.end()) {
    return found->second;
  }
  const auto identifier = static_cast<std::uint32_t>(strings.texts.size());
  strings.texts.emplace_back(text);
  strings.identifiers.emplace(text, identifier);
  std::uint64_t& hash = strings.hashes.emplace_back(kSeed);
  mix(hash, text.size());
  for (const char c : text) mix(hash, static_cast<unsigned char>(c));
  return identifier;
}

std::uint64_t Trace::hash() const {
  std::uint64_t hash = kSeed;
  for (const auto& [text, identifier] : tracks_.identifiers) mix(hash, tracks_.hashes[identifier]);
  return hash;
}

void Trace::take(Trace& other) {
  const auto& tracks = other.tracks();
  const auto& names = other.names();
  while (other.tracks_there_.size() < tracks.size()) {
    other.tracks_there_.push_back(track(tracks[other.tracks_there_.size()]));
  }
  while (other.names_there_.size() < names.size()) {
    other.names_there_.push_back(name(names[other.names_there_.size()]));
  }
  for (Record record : other.records_) {
    record.track = other.tracks_there_[static_cast<std::size_t>(record.track)];
    record.name = other.names_there_[static_cast<std::size_t>(record.name)];
    add(record);
  }
  other.records_.clear();
}

}  // namespace towpath::sim
