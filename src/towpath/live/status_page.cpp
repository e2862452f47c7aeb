// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/status_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "towpath/base/index.hpp"

namespace towpath::live {

using transport::kNoPeer;
using transport::TransportError;

namespace {

// Sufficient for a rank of another host, unless the network is very slow.
constexpr Time kAnswerWithin = Time::from_seconds(0.5);

}  // namespace

StatusPage::StatusPage(transport::LiveTransport& transport)
    : transport_(transport),
      memory_(transport.allocate(kBytes)),
      words_(reinterpret_cast<std::uint64_t*>(transport.data(memory_))),
      left_(transport.allocate_signals(signals(transport.ranks()))) {
  for (std::size_t word = 0; word < kWords; ++word) publish(word, 0);
}

// Calls of one name often follow each other.
void StatusPage::publish_name(const std::string& name) {
  name_ = name;
  Name padded{};
  name.copy(padded.data(), padded.size() - 1);
  std::array<std::uint64_t, kNameWords> words;
  std::memcpy(words.data(), padded.data(), sizeof(words));
  for (std::size_t i = 0; i < words.size(); ++i) {
    publish(offsetof(Entry, name) / 8 + i, words[i]);
  }
}

std::uint64_t StatusPage::load(int rank, std::size_t word) const {
  return transport_.load(rank, memory_ + word * sizeof(std::uint64_t));
}

StatusPage::Made StatusPage::load_call(int rank, std::uint64_t number) const {
  std::array<std::uint64_t, sizeof(Made) / 8> words;
  const std::size_t first = offsetof(Entry, last) / 8 + number % kLast * words.size();
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = load(rank, first + i);
  return std::bit_cast<Made>(words);
}

bool StatusPage::Made::may_meet(const Made& other) const {
  Made same = other;
  if (is_uneven(static_cast<Kind>(kind))) same.size_bytes = size_bytes;
  return *this == same;
}

bool StatusPage::makes_another_call(int rank) const {
  const std::size_t begun = offsetof(Entry, begun) / 8;
  if (!transport_.is_addressable(rank) || load(rank, begun) != begun_) return false;
  const Made there = load_call(rank, begun_);
  // A rank that has started further calls in the meantime may have replaced this one.
  if (load(rank, begun) != begun_) return false;
  return !load_call(transport_.rank(), begun_).may_meet(there);
}

StatusPage::Entry StatusPage::read(int rank) const {
  std::array<std::uint64_t, kWords> words;
  if (transport_.is_addressable(rank)) {
    for (std::size_t i = 0; i < kWords; ++i) words[i] = load(rank, i);
  } else {
    transport_.get(rank, memory_, words.data(), sizeof(words), kAnswerWithin);
  }
  Entry entry;
  std::memcpy(&entry, words.data(), sizeof(entry));
  entry.name.back() = '\0';
  return entry;
}

// Word by word, because other ranks may read at the same time. The words of two calls may then be
// mixed.
std::uint64_t StatusPage::begin(const Request& request) {
  if (request.name != name_) publish_name(request.name);
  ++begun_;
  const Made made{size_of(request), request.element, request.peer,
                  static_cast<std::uint64_t>(request.kind)};
  const auto words = std::bit_cast<std::array<std::uint64_t, sizeof(Made) / 8>>(made);
  const std::size_t first = offsetof(Entry, last) / 8 + begun_ % kLast * words.size();
  for (std::size_t i = 0; i < words.size(); ++i) publish(first + i, words[i]);
  publish(offsetof(Entry, begun) / 8, begun_);
  return begun_;
}

// After all puts of this rank.
void StatusPage::leave() {
  transport_.fence();
  leaving_.resize(index(transport_.ranks()));
  for (int rank = 0; rank < transport_.ranks(); ++rank) {
    transport::Move& move = leaving_[index(rank)];
    move.peer = rank;
    move.has_signal = true;
    move.signal = left_ + static_cast<transport::Signal>(transport_.rank());
    move.signal_value = 1;
    move.signal_operation = transport::SignalOperation::set;
    transport_.start(move);
  }
}

// A rank answers immediately, inside or outside a call.
std::optional<StatusPage::Entry> StatusPage::ask(int rank) const {
  try {
    return read(rank);
  } catch (const TransportError& error) {
    if (error.kind() != TransportError::Kind::timeout) throw;
    return std::nullopt;
  }
}

std::string StatusPage::describe_call(int rank) const {
  const std::optional<Entry> entry = ask(rank);
  if (!entry) return "something else";
  const Made& call = entry->call(entry->begun);
  return title_of(entry->name.data(), static_cast<Kind>(call.kind), call.size_bytes, call.peer);
}

bool StatusPage::is_in_step_with(int rank) const {
  const std::optional<Entry> entry = ask(rank);
  return entry && entry->begun == begun_;
}

std::string StatusPage::difference(int rank) const {
  const std::optional<Entry> entry = ask(rank);
  if (!entry) return "";
  const Entry own = read(transport_.rank());
  const std::uint64_t end = std::min(own.begun, entry->begun);
  const std::uint64_t newest = std::max(own.begun, entry->begun);
  const std::uint64_t begin = newest > kLast ? newest - kLast + 1 : 1;
  for (std::uint64_t number = begin; number <= end; ++number) {
    const Made& here = own.call(number);
    const Made& there = entry->call(number);
    if (here.may_meet(there)) continue;
    const auto described = [](const Made& call) {
      const auto kind = static_cast<Kind>(call.kind);
      return title_of(name_of(kind), kind, call.size_bytes, call.peer);
    };
    const bool is_hidden = described(here) == described(there);
    return fmt::format("call {} is {} on rank {}, but {}{} on rank {}", number, described(here),
                       transport_.rank(), described(there),
                       is_hidden ? " with another type or operation" : "", rank);
  }
  return "";
}

std::string StatusPage::describe(int rank, const std::optional<Entry>& entry) const {
  std::string line = fmt::format("\n  rank {}: ", rank);
  if (!entry) {
    line += "does not answer";
  } else if (entry->begun == 0) {
    line += "no collective yet";
  } else {
    line += fmt::format("{} {} number {} of {} bytes", entry->begun > entry->ended ? "in" : "after",
                        entry->name.data(), entry->begun, entry->call(entry->begun).size_bytes);
  }
  return has_left(rank) ? line + "; it has left the group" : line;
}

// The last rank first. Among ranks that have started the same number of calls, one that has ended
// them is elsewhere in its program while the others wait. A rank that does not answer is behind all
// others.
StatusPage::Report StatusPage::report() const {
  using Place = std::pair<std::uint64_t, bool>;
  struct Line {
    Place place;
    int rank;
    std::string text;
  };
  std::vector<Line> lines;
  for (int rank = 0; rank < transport_.ranks(); ++rank) {
    const std::optional<Entry> entry = ask(rank);
    const Place place = entry ? Place(entry->begun + 1, entry->begun > entry->ended) : Place();
    lines.push_back({place, rank, describe(rank, entry)});
  }
  std::ranges::stable_sort(lines, {}, &Line::place);
  const bool differs = lines.front().place.first < lines.back().place.first;
  Report report{differs ? lines.front().rank : kNoPeer, ""};
  for (const Line& line : lines) report.lines += line.text;
  return report;
}

}  // namespace towpath::live
