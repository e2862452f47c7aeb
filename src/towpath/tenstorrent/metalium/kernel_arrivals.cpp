// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/metalium/kernel_arrivals.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "towpath/tenstorrent/metalium/kernel_include/towpath_kernel.h"

namespace towpath::tenstorrent::metalium {

namespace {

// Further requests are not watched: the oldest ones are dropped.
constexpr std::size_t kWatchedMax = 4096;
// Blocks that may contain a word for which another kernel polls.
constexpr std::uint64_t kPolledBytesMax = 64;

template <typename Element>
void add(std::deque<Element>& all, const Element& element) {
  if (all.size() == kWatchedMax) all.pop_front();
  all.push_back(element);
}

}  // namespace

std::size_t CoreArrivals::start(const DataMovementCore& kernel) {
  const bool is_first = std::ranges::all_of(kernels_, &KernelState::is_over);
  if (is_first || kernels_.size() == kKernelsMax) *this = {};
  kernels_.push_back({.core = &kernel});
  return kernels_.size() - 1;
}

namespace {

bool is_to_itself(const noc::Request& request) {
  if (request.kind != noc::RequestKind::write || request.is_posted) return false;
  if (!request.is_multicast) return request.remote.tile == request.core;
  return request.includes_source && request.rectangle().holds(request.core);
}

}  // namespace

void CoreArrivals::issue(std::size_t kernel, const noc::Request& request) {
  const Way way{kernel, request.noc, request.vc, request.is_multicast};
  if (!noc::moves_data(request.kind)) return;
  if (request.size_bytes <= noc::kWordBytes) return add_word(request, way);
  const Covered by{request.noc, request.transaction_id};
  const void* const place = kernels_[kernel].core->place();
  const Range local{request.local_offset, request.local_offset + request.size_bytes};
  if (request.kind == noc::RequestKind::read) {
    return add_arrival({.bytes = local, .kernel = kernel, .by = by, .place = place});
  }
  if (const Arrival* const arrival = unknown(kernel, local); arrival != nullptr) {
    fail(kernel, *arrival, "sends", local);
  }
  add(sources_, {local, kernel, by, request.is_posted, place});
  if (!is_to_itself(request)) return;
  add_arrival({.bytes = {request.remote.offset, request.remote.offset + request.size_bytes},
               .kernel = kernel,
               .direction = Direction::writes,
               .by = by,
               .way = way,
               .place = place});
}

void CoreArrivals::add_word(const noc::Request& request, const Way& way) {
  if (arrivals_.empty() || !is_to_itself(request)) return;
  const DataMovementCore& core = *kernels_[way.kernel].core;
  add(words_behind_,
      {.word = request.remote.offset,
       .value = core.network().load_word(request.core, request.local_offset & ~std::uint64_t{3}),
       .way = way,
       .issued = step(way.kernel)});
}

void CoreArrivals::see_word_behind(std::uint64_t word, std::uint32_t value) {
  for (const WordBehind& behind : words_behind_) {
    if (behind.word != word || behind.value != value) continue;
    std::erase_if(arrivals_, [&](const Arrival& arrival) {
      return arrival.direction == Direction::writes && arrival.way == behind.way &&
             arrival.issued < behind.issued;
    });
  }
}

void CoreArrivals::add_arrival(Arrival arrival) {
  arrival.issued = step(arrival.kernel);
  const Range& bytes = arrival.bytes;
  within_ = arrivals_.empty()
                ? bytes
                : Range{std::min(within_.begin, bytes.begin), std::max(within_.end, bytes.end)};
  add(arrivals_, arrival);
}

const CoreArrivals::Arrival* CoreArrivals::unknown(std::size_t kernel, const Range& bytes) const {
  if (arrivals_.empty() || !within_.overlaps(bytes)) return nullptr;
  const Steps& knows = kernels_[kernel].knows;
  const auto found = std::ranges::find_if(arrivals_, [&](const Arrival& arrival) {
    if (!arrival.bytes.overlaps(bytes)) return false;
    if (arrival.over == kNever) return true;
    // It has proof only that the bytes are in flight.
    return knows[arrival.kernel] >= arrival.issued && knows[arrival.kernel] < arrival.over;
  });
  return found == arrivals_.end() ? nullptr : &*found;
}

void CoreArrivals::load(std::size_t kernel, const Range& bytes, bool is_volatile) {
  const Arrival* const arrival = unknown(kernel, bytes);
  if (arrival == nullptr) return;
  const bool may_poll = is_volatile && arrival->kernel != kernel &&
                        arrival->bytes.end - arrival->bytes.begin <= kPolledBytesMax;
  if (!may_poll) fail(kernel, *arrival, "loads", bytes);
}

void CoreArrivals::push(std::size_t kernel, const Range& pages) {
  const Arrival* const arrival = unknown(kernel, pages);
  if (arrival != nullptr) fail(kernel, *arrival, "hands on", pages);
}

void CoreArrivals::pop(std::size_t kernel, const Range& pages) {
  for (const Source& source : sources_) {
    if (source.kernel != kernel || !source.bytes.overlaps(pages)) continue;
    const DataMovementCore& core = *kernels_[kernel].core;
    const KernelConfig& config = core.config();
    throw HazardError(
        Hazard::reused_before_flushed, {std::max(0, config.chip), config.core, config.name},
        fmt::format(
            "{}: it gives back bytes {} to {}, which its write{} may still have to read; "
            "call {} or a barrier first",
            core.where(), std::max(source.bytes.begin, pages.begin),
            std::min(source.bytes.end, pages.end) - 1, core.words_of(source.place),
            source.is_posted ? "noc_async_posted_writes_flushed" : "noc_async_writes_flushed"));
  }
}

void CoreArrivals::arrived(std::size_t kernel, Direction direction, const Covered& covered) {
  const Step now = step(kernel);
  for (Arrival& arrival : arrivals_) {
    if (arrival.kernel == kernel && arrival.direction == direction && arrival.over == kNever &&
        covers(covered, arrival.by)) {
      arrival.over = now;
    }
  }
  if (direction == Direction::writes) flushed(kernel, false, covered);
  forget_what_all_know();
}

void CoreArrivals::flushed(std::size_t kernel, bool are_posted, const Covered& covered) {
  std::erase_if(sources_, [&](const Source& source) {
    return source.kernel == kernel && source.is_posted == are_posted && covers(covered, source.by);
  });
  if (are_posted) return;
  for (Arrival& arrival : arrivals_) {
    const bool is_sent = arrival.kernel == kernel && arrival.direction == Direction::writes &&
                         arrival.over == kNever && covers(covered, arrival.by);
    if (is_sent && arrival.flushed_at == nullptr)
      arrival.flushed_at = kernels_[kernel].core->place();
  }
}

// A completed arrival matters to kernels that have observed its start but not its end.
void CoreArrivals::forget_what_all_know() {
  std::erase_if(arrivals_, [&](const Arrival& arrival) {
    if (arrival.over == kNever) return false;
    return std::ranges::all_of(kernels_, [&](const KernelState& state) {
      const Step known = state.knows[arrival.kernel];
      const bool may_learn = std::ranges::any_of(stored_, [&](const auto& word) {
        const Step then = word.second.knows[arrival.kernel];
        return then >= arrival.issued && then < arrival.over;
      });
      return state.is_over || known >= arrival.over || (known < arrival.issued && !may_learn);
    });
  });
  if (!arrivals_.empty()) return;
  stored_.clear();
  words_behind_.clear();
}

void CoreArrivals::store_word(std::size_t kernel, std::uint64_t word, std::uint32_t value) {
  if (arrivals_.empty()) return;
  step(kernel);
  stored_[word] = {value, kernels_[kernel].knows};
}

void CoreArrivals::see_word(std::size_t kernel, std::uint64_t word, std::uint32_t value) {
  if (arrivals_.empty()) return;
  see_word_behind(word, value);
  const auto found = stored_.find(word);
  if (found == stored_.end() || found->second.value != value) return learn(kernel);
  Steps& knows = kernels_[kernel].knows;
  for (std::size_t other = 0; other < kKernelsMax; ++other) {
    knows[other] = std::max(knows[other], found->second.knows[other]);
  }
}

void CoreArrivals::learn(std::size_t kernel) {
  if (arrivals_.empty()) return;
  Steps& knows = kernels_[kernel].knows;
  for (std::size_t other = 0; other < kernels_.size(); ++other) {
    knows[other] = std::max(knows[other], kernels_[other].knows[other]);
  }
}

std::string CoreArrivals::describe(std::size_t kernel, const Arrival& arrival) const {
  const DataMovementCore& by = *kernels_[arrival.kernel].core;
  const std::string_view request = arrival.direction == Direction::reads ? "read"
                                   : arrival.way.is_multicast            ? "multicast"
                                                                         : "write";
  std::string text = arrival.kernel == kernel
                         ? fmt::format("its {}", request)
                         : fmt::format("the {} of kernel '{}'", request, by.config().name);
  text += by.words_of(arrival.place) + " brings";
  if (arrival.flushed_at != nullptr) {
    text += fmt::format("; noc_async_writes_flushed{} says that they were sent",
                        by.words_of(arrival.flushed_at));
  }
  return text;
}

OwnArrivals::OwnArrivals(DataMovementCore& core, KernelArrivals* all) : core_(core) {
  if (all == nullptr) return;
  all_ = &all->of(core.config().chip, core.config().core);
  kernel_ = all_->start(core);
  core.watch_requests_by([this](const noc::Request& request) { all_->issue(kernel_, request); });
}

OwnArrivals::~OwnArrivals() {
  if (all_ == nullptr) return;
  core_.watch_requests_by({});
  all_->end(kernel_);
}

void OwnArrivals::pass(int barrier, int id, int noc) {
  if (all_ == nullptr) return;
  using Direction = CoreArrivals::Direction;
  const CoreArrivals::Covered all{noc == kKernelNoc ? core_.config().noc_index : noc};
  const CoreArrivals::Covered of_id{all.noc, id};
  switch (barrier) {
    case kTowpathReads: return all_->arrived(kernel_, Direction::reads, all);
    case kTowpathWrites: return all_->arrived(kernel_, Direction::writes, all);
    case kTowpathWritesFlushed: return all_->flushed(kernel_, false, all);
    case kTowpathPostedWritesFlushed: return all_->flushed(kernel_, true, all);
    case kTowpathAtomics: return;
    case kTowpathReadsOfId: return all_->arrived(kernel_, Direction::reads, of_id);
    case kTowpathWritesOfId: return all_->arrived(kernel_, Direction::writes, of_id);
    case kTowpathWritesFlushedOfId: return all_->flushed(kernel_, false, of_id);
    default: break;
  }
  all_->arrived(kernel_, Direction::reads, all);
  all_->arrived(kernel_, Direction::writes, all);
  all_->flushed(kernel_, true, all);
}

void CoreArrivals::fail(std::size_t kernel, const Arrival& arrival, std::string_view action,
                        const Range& bytes) const {
  const DataMovementCore& core = *kernels_[kernel].core;
  const KernelConfig& config = core.config();
  throw HazardError(
      Hazard::used_before_barrier, {std::max(0, config.chip), config.core, config.name},
      fmt::format("{}: it {} bytes {} to {}, which {}; they have arrived after {}", core.where(),
                  action, std::max(arrival.bytes.begin, bytes.begin),
                  std::min(arrival.bytes.end, bytes.end) - 1, describe(kernel, arrival),
                  arrival.direction == Direction::reads ? "noc_async_read_barrier"
                                                        : "noc_async_write_barrier"));
}

}  // namespace towpath::tenstorrent::metalium
