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

// Model records in the order of their arrival.
//
// A track is a row of the timeline (a link, a core, a channel). A name is the label of a record.
// Both are interned once, outside the hot path. The hash covers the records of each track in order,
// even in mode hash_only: equal hashes mean equal runs. The interleaving of different tracks does
// not matter, because it varies with several threads.
class Trace {
 public:
  enum class Mode : std::uint8_t { keep_records, hash_only };
  enum class Kind : std::uint8_t { span, instant, counter };

  struct Record {
    Kind kind;
    TrackId track;
    NameId name;
    Time begin;
    Time end;  // equals begin except for a span
    std::int64_t value;
  };

  explicit Trace(Mode mode = Mode::keep_records) : mode_(mode) {}

  // Equal texts have equal identifiers.
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
  // Moves the records of the other trace, which must keep records, to the end of this one. A source
  // always uses the same destination.
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
    std::vector<std::uint64_t> hashes;  // of a name: its text; of a track: also its records
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
  // A bijection of the word for each hash, so no single difference is lost.
  static void mix(std::uint64_t& hash, std::uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  }

  Mode mode_;
  std::vector<Record> records_;
  Strings tracks_;
  Strings names_;
  // Identifiers in the destination of take(), indexed by the identifiers here.
  std::vector<TrackId> tracks_there_;
  std::vector<NameId> names_there_;
};

}  // namespace towpath::sim
