// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/meeting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "towpath/gpu/errors.hpp"
#include "towpath/transport/remote_memory.hpp"

namespace towpath::gpu {

using namespace literals;

namespace {

// Time between two checks of the other PEs, so that each has checked its own waits in the meantime.
constexpr Time kBetweenLooks = 50_ms;
// A PE without a mistake lets the responsible PE report first.
constexpr Time kPatience = 500_ms;
// Until all have described their waits.
constexpr Time kForWords = 150_ms;
constexpr std::uint64_t kPasses = 2;

std::uint64_t load(const std::uint64_t& word) {
  return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}

void store(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}

template <std::size_t kSize>
void copy_text(std::array<char, kSize>& to, const std::string& text) {
  const std::size_t size = text.copy(to.data(), kSize - 1);
  to[size] = 0;
}

std::byte* page_of(transport::Transport& transport, transport::Offset offset, int rank) {
  if (rank == transport.rank()) return transport.data(offset);
  return static_cast<std::byte*>(transport.remote_memory()->reach(rank, offset));
}

std::vector<std::byte*> pages_of(transport::Transport& transport, std::uint64_t size_bytes) {
  const transport::Offset offset = transport.allocate(size_bytes);
  std::memset(transport.data(offset), 0, size_bytes);
  std::vector<std::byte*> pages;
  for (int rank = 0; rank < transport.ranks(); ++rank) {
    pages.push_back(page_of(transport, offset, rank));
  }
  return pages;
}

}  // namespace

Meeting::Meeting(transport::Transport& transport)
    : transport_(transport),
      pages_([&] {
        std::vector<Page*> pages;
        for (std::byte* const page : pages_of(transport, sizeof(Page))) {
          pages.push_back(reinterpret_cast<Page*>(page));
        }
        return pages;
      }()),
      own_(*pages_[static_cast<std::size_t>(transport.rank())]) {}

// A PE is at most one meeting ahead of another, so two slots are enough.
void Meeting::enter(const Statement& statement) {
  const std::uint64_t number = own_.number + 1;
  Slot& slot = own_.slots[number % 2];
  copy_text(slot.what, statement.what);
  copy_text(slot.where, statement.where);
  store(slot.number, number);
  store(own_.number, number);
  is_inside_ = true;
}

bool Meeting::has_entered(int rank) const { return load(page(rank).number) >= own_.number; }

bool Meeting::is_complete() const {
  bool are_all_here = true;
  const Slot& mine = own_.slots[own_.number % 2];
  for (int rank = 0; rank < transport_.ranks(); ++rank) {
    if (!has_entered(rank)) {
      are_all_here = false;
      continue;
    }
    const Slot& theirs = page(rank).slots[own_.number % 2];
    if (load(theirs.number) != own_.number) continue;  // it is one ahead, so it has agreed
    if (std::strcmp(mine.what.data(), theirs.what.data()) == 0) continue;
    throw KernelError(
        Hazard::mismatched_allocation,
        fmt::format("mismatched symmetric allocations: PE {} wants {} ({}), but PE {} wants {} "
                    "({}); every PE must make the same calls with the same sizes in the same order",
                    transport_.rank(), mine.what.data(), mine.where.data(), rank,
                    theirs.what.data(), theirs.where.data()));
  }
  return are_all_here;
}

void Meeting::note_progress() {
  is_stuck_ = false;
  first_.clear();
  if (!is_known_) return;
  is_known_ = false;
  store(own_.changes, own_.changes + 1);
  store(own_.state, static_cast<std::uint64_t>(State::running));
}

void Meeting::note_pass() {
  store(own_.passes, own_.passes + 1);
  is_known_ = true;
  store(own_.state, static_cast<std::uint64_t>(is_inside_ ? State::meeting : State::waiting));
}

bool Meeting::look(std::vector<Seen>& seen) const {
  seen.clear();
  for (int rank = 0; rank < transport_.ranks(); ++rank) {
    const Page& page = this->page(rank);
    const Seen now{load(page.changes), load(page.passes)};
    if (load(page.state) == static_cast<std::uint64_t>(State::running)) return false;
    seen.push_back(now);
  }
  return true;
}

bool Meeting::is_stuck(Time now) {
  if (is_stuck_) return true;
  std::vector<Seen> seen;
  if (!look(seen)) {
    first_.clear();
    return false;
  }
  if (first_.empty()) {
    first_ = std::move(seen);
    first_at_ = now;
    return false;
  }
  if (now - first_at_ < kBetweenLooks) return false;
  for (std::size_t rank = 0; rank < seen.size(); ++rank) {
    if (seen[rank].changes != first_[rank].changes) {
      first_.clear();
      return false;
    }
    if (seen[rank].passes < first_[rank].passes + kPasses) return false;
  }
  is_stuck_ = true;
  stuck_at_ = now;
  return true;
}

void Meeting::check(Time now, const std::function<std::string()>& waits) {
  const bool was_stuck = is_stuck_;
  if (!is_stuck(now)) return;
  if (!was_stuck) copy_text(own_.waits, waits());
  std::vector<int> inside;
  for (int rank = 0; rank < transport_.ranks(); ++rank) {
    if (load(page(rank).state) == static_cast<std::uint64_t>(State::meeting)) {
      inside.push_back(rank);
    }
  }
  const auto outside = static_cast<std::size_t>(transport_.ranks()) - inside.size();
  // The smaller part has left the common order of calls.
  const bool is_inside_to_blame = !inside.empty() && inside.size() <= outside;
  const bool is_to_blame = inside.empty() || is_inside_to_blame == is_inside_;
  if (now - stuck_at_ >= (is_to_blame ? kForWords : kPatience)) refuse();
}

std::string Meeting::names_of(const std::vector<int>& ranks) const {
  std::string names;
  for (const int rank : ranks) names += fmt::format("{}PE {}", names.empty() ? "" : ", ", rank);
  return names;
}

std::string Meeting::waits_of(const std::vector<int>& ranks) const {
  std::string all;
  for (const int rank : ranks) {
    const char* const text = page(rank).waits.data();
    if (*text != 0) all += fmt::format("{}{}", all.empty() ? "" : "; ", text);
  }
  return all;
}

void Meeting::refuse() const {
  std::vector<int> inside;
  std::vector<int> outside;
  for (int rank = 0; rank < transport_.ranks(); ++rank) {
    const bool meets = load(page(rank).state) == static_cast<std::uint64_t>(State::meeting);
    (meets ? inside : outside).push_back(rank);
  }
  if (inside.empty()) {
    throw KernelError(KernelError::Kind::deadlock,
                      fmt::format("deadlock: no PE can continue; {}", waits_of(outside)));
  }
  const int speaker = is_inside_ ? transport_.rank() : inside.front();
  const Slot& slot = page(speaker).slots[load(page(speaker).number) % 2];
  const std::string sentence = fmt::format(
      "PE {} waits for all PEs {} ({}), while {} wait{} for what nobody will do or send "
      "({})",
      speaker, slot.what.data(), slot.where.data(), names_of(outside),
      outside.size() == 1 ? "s" : "", waits_of(outside));
  const bool is_allocation = std::strstr(slot.what.data(), "symmetric") != nullptr;
  if (is_allocation) {
    throw KernelError(Hazard::mismatched_allocation,
                      fmt::format("mismatched symmetric allocations: {}; every PE must make the "
                                  "same calls with the same sizes in the same order",
                                  sentence));
  }
  throw KernelError(KernelError::Kind::deadlock,
                    fmt::format("deadlock: {}; end every PE with nvshmem_finalize, after the last "
                                "transfer and wait of all PEs",
                                sentence));
}

}  // namespace towpath::gpu
