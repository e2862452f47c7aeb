// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "towpath/base/units.hpp"

namespace towpath::sim {

enum class TrackId : std::uint32_t {};
enum class NameId : std::uint32_t {};

// What happened, in the order in which the models told it.
//
// A track is a line of the timeline (a link, a core, a channel), a name what is written on it.
// Both are interned once, before the hot path. The hash covers the records of every track, in
// order, whether records are kept or not: equal hashes mean equal runs. It does not depend on which
// of two tracks was told of first, which is chance where several threads run one simulation.
class Trace {
 public:
  enum class Mode : std::uint8_t { keep_records, hash_only };
  enum class Kind : std::uint8_t { span, instant, counter };

  struct Record {
    Kind kind;
    TrackId track;
    NameId name;
    Time begin;
    Time end;  // equals begin unless it is a span
    std::int64_t value;
  };

  explicit Trace(Mode mode = Mode::keep_records) : mode_(mode) {}

  // The same text gives the same identifier.
  TrackId track(std::string_view text);
  NameId name(std::string_view text);

  void span(TrackId track, NameId name, Time begin, Time end, std::int64_t value = 0) {
    add({Kind::span, track, name, begin, end, value});
  }
  void instant(TrackId track, NameId name, Time time, std::int64_t value = 0) {
    add({Kind::instant, track, name, time, time, value});
  }
  void counter(TrackId track, NameId name, Time time, std::int64_t value) {
    add({Kind::counter, track, name, time, time, value});
  }

  std::uint64_t hash() const;
  // Moves the records of another trace, which keeps them, to the end of this one; always to the
  // same one.
  void take(Trace& other);

  // Empty in mode hash_only.
  const std::vector<Record>& records() const { return records_; }
  // Indexed by identifier.
  const std::vector<std::string>& tracks() const { return tracks_.texts; }
  const std::vector<std::string>& names() const { return names_.texts; }

 private:
  struct Strings {
    std::map<std::string, std::uint32_t, std::less<>> identifiers;
    std::vector<std::string> texts;
    std::vector<std::uint64_t> hashes;  // of names: of the text; of tracks: of all records, too
  };

  static std::uint32_t intern(Strings& strings, std::string_view text);
  void add(const Record& record) {
    std::uint64_t& hash = tracks_.hashes[static_cast<std::size_t>(record.track)];
    mix(hash, names_.hashes[static_cast<std::size_t>(record.name)] +
                  static_cast<std::uint64_t>(record.kind));
    mix(hash, static_cast<std::uint64_t>(record.begin.ps()));
    mix(hash, static_cast<std::uint64_t>(record.end.ps()));
    mix(hash, static_cast<std::uint64_t>(record.value));
    if (mode_ == Mode::keep_records) records_.push_back(record);
  }
  // A bijection of the word for each hash, so no single difference is ever lost.
  static void mix(std::uint64_t& hash, std::uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  }

  Mode mode_;
  std::vector<Record> records_;
  Strings tracks_;
  Strings names_;
  // In the trace that takes the records of this one, by identifier here.
  std::vector<TrackId> tracks_there_;
  std::vector<NameId> names_there_;
};

}  // namespace towpath::sim
