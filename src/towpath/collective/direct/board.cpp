// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/direct/board.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

namespace towpath::collective::direct {

using transport::kNoPeer;

namespace {

std::uint64_t total(const std::vector<Span>& spans) {
  std::uint64_t bytes = 0;
  for (const Span& span : spans) bytes += span.size_bytes;
  return bytes;
}

}  // namespace

std::uint64_t size_of(const Request& request) {
  const std::uint64_t sent = total(request.inputs);
  return sent > 0 ? sent : total(request.outputs);
}

Board::Board(transport::LiveTransport& transport)
    : transport_(transport), memory_(transport.allocate(kBytes)) {
  publish();
}

// Word by word, because others may read at this time; the words of two calls may then be mixed.
void Board::publish() {
  std::array<std::uint64_t, kWords> words;
  std::memcpy(words.data(), &own_, sizeof(own_));
  auto* const places = reinterpret_cast<std::uint64_t*>(transport_.data(memory_));
  for (std::size_t i = 0; i < kWords; ++i) {
    std::atomic_ref(places[i]).store(words[i], std::memory_order_release);
  }
}

Board::Entry Board::read(int rank) const {
  std::array<std::uint64_t, kWords> words;
  for (std::size_t i = 0; i < kWords; ++i) {
    words[i] = transport_.load(rank, memory_ + i * sizeof(std::uint64_t));
  }
  Entry entry;
  std::memcpy(&entry, words.data(), sizeof(entry));
  entry.name.back() = '\0';
  return entry;
}

void Board::begin(const Request& request, std::uint64_t sequence) {
  const std::size_t size = request.name.copy(own_.name.data(), own_.name.size() - 1);
  own_.name[size] = '\0';
  own_.size_bytes = size_of(request);
  own_.begun = sequence;
  publish();
}

void Board::end() {
  own_.ended = own_.begun;
  publish();
}

void Board::leave() {
  own_.has_left = 1;
  publish();
}

// The last first: of those that began as many, one that has ended them is elsewhere in its program,
// while the others wait.
std::vector<std::pair<int, Board::Entry>> Board::sorted() const {
  std::vector<std::pair<int, Entry>> entries;
  for (int rank = 0; rank < transport_.ranks(); ++rank) entries.emplace_back(rank, read(rank));
  std::stable_sort(entries.begin(), entries.end(), [](const auto& left, const auto& right) {
    const bool waits_left = left.second.begun > left.second.ended;
    const bool waits_right = right.second.begun > right.second.ended;
    return std::pair(left.second.begun, waits_left) < std::pair(right.second.begun, waits_right);
  });
  return entries;
}

int Board::straggler() const {
  const auto entries = sorted();
  const bool differs = entries.front().second.begun < entries.back().second.begun;
  return differs ? entries.front().first : kNoPeer;
}

std::string Board::wish_of(int rank) const {
  const Entry entry = read(rank);
  return fmt::format("{} of {} bytes", entry.name.data(), entry.size_bytes);
}

std::string Board::report() const {
  std::string lines;
  for (const auto& [rank, entry] : sorted()) {
    const bool waits = entry.begun > entry.ended;
    lines += fmt::format("\n  rank {}: ", rank);
    if (entry.begun == 0) {
      lines += "no collective yet";
    } else {
      lines += fmt::format("{} {} number {} of {} bytes", waits ? "in" : "after", entry.name.data(),
                           entry.begun, entry.size_bytes);
    }
    if (entry.has_left != 0) lines += "; it has left the group";
  }
  return lines;
}

}  // namespace towpath::collective::direct
