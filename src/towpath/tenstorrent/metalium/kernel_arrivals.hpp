// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "towpath/noc/niu/request.hpp"
#include "towpath/tenstorrent/core/data_movement_core.hpp"
#include "towpath/tenstorrent/hazards/errors.hpp"

namespace towpath::tenstorrent::metalium {

class KernelArrivals;

// Requests of the kernels of one core that write its own L1 (reads, multicasts that include the
// core) or read it (writes), until the barrier that covers them. The order of calls decides, not
// the time at which bytes arrive: a kernel, or another kernel of the core to which it passes the
// bytes, must not use them before. Kernels synchronize by words of L1: a kernel that reads the
// value that another one has stored has observed the requests of that kernel up to then. Any other
// load may synchronize through another core, so it counts as an observation of all requests.
class CoreArrivals {
 public:
  static constexpr std::size_t kKernelsMax = 8;

  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
  };
  enum class Direction : std::uint8_t { reads, writes };
  // The requests that a barrier covers: of all transaction ids if `id` is kAnyId.
  static constexpr int kAnyId = -1;
  struct Covered {
    int noc = 0;
    int id = kAnyId;
  };

  // A kernel starts on the core. Returns its number.
  std::size_t start(const DataMovementCore& kernel);
  void end(std::size_t kernel) { kernels_[kernel].is_over = true; }

  // Called when the kernel issues a request, loads bytes, or pushes or pops pages. Each throws
  // HazardError if this is a mistake.
  void issue(std::size_t kernel, const noc::Request& request);
  void load(std::size_t kernel, const Range& bytes, bool is_volatile);
  void push(std::size_t kernel, const Range& pages);
  void pop(std::size_t kernel, const Range& pages);
  // Requests have arrived, or their bytes have left.
  void arrived(std::size_t kernel, Direction direction, const Covered& covered);
  void flushed(std::size_t kernel, bool are_posted, const Covered& covered);
  // The kernel has stored a word of L1, has read its value, or has observed other cores.
  void store_word(std::size_t kernel, std::uint64_t word, std::uint32_t value);
  void see_word(std::size_t kernel, std::uint64_t word, std::uint32_t value);
  void learn(std::size_t kernel);
  bool is_idle() const { return arrivals_.empty(); }

 private:
  using Step = std::uint64_t;  // of one kernel
  using Steps = std::array<Step, kKernelsMax>;
  static constexpr Step kNever = std::numeric_limits<Step>::max();

  struct KernelState {
    const DataMovementCore* core = nullptr;
    Steps knows{};  // of each kernel; its own is the current one
    bool is_over = false;
  };
  // A path on which the writes of a kernel to its own core arrive in order.
  struct Way {
    std::size_t kernel = 0;
    int noc = 0;
    int vc = 0;
    bool is_multicast = false;
    bool operator==(const Way&) const = default;
  };
  struct Arrival {
    Range bytes;
    std::size_t kernel = 0;
    Direction direction = Direction::reads;
    Covered by;
    Way way{};
    const void* place = nullptr;
    Step issued = 0;
    Step over = kNever;
    const void* flushed_at = nullptr;
  };
  struct Source {
    Range bytes;
    std::size_t kernel = 0;
    Covered by;
    bool is_posted = false;
    const void* place = nullptr;
  };
  struct Stored {
    std::uint32_t value = 0;
    Steps knows{};
  };
  // A word behind other writes: a kernel that reads it has proof that those have arrived.
  struct WordBehind {
    std::uint64_t word = 0;
    std::uint32_t value = 0;
    Way way;
    Step issued = 0;
  };
  static bool covers(const Covered& barrier, const Covered& request) {
    return barrier.noc == request.noc && (barrier.id == kAnyId || barrier.id == request.id);
  }
  Step step(std::size_t kernel) { return ++kernels_[kernel].knows[kernel]; }
  // The first arrival of these bytes without proof of its completion for a kernel.
  const Arrival* unknown(std::size_t kernel, const Range& bytes) const;
  [[noreturn]] void fail(std::size_t kernel, const Arrival& arrival, std::string_view action,
                         const Range& bytes) const;
  std::string describe(std::size_t kernel, const Arrival& arrival) const;
  void add_arrival(Arrival arrival);
  void add_word(const noc::Request& request, const Way& way);
  void see_word_behind(std::uint64_t word, std::uint32_t value);
  void forget_what_all_know();

  std::vector<KernelState> kernels_;
  std::deque<Arrival> arrivals_;  // oldest first
  Range within_;                  // all of them are
  std::deque<Source> sources_;
  std::map<std::uint64_t, Stored> stored_;
  std::deque<WordBehind> words_behind_;
};

// The part of one kernel, for its calls. Without a core it does not watch.
class OwnArrivals {
 public:
  using Range = CoreArrivals::Range;
  OwnArrivals(DataMovementCore& core, KernelArrivals* all);
  ~OwnArrivals();
  OwnArrivals(const OwnArrivals&) = delete;
  OwnArrivals& operator=(const OwnArrivals&) = delete;

  void load(const Range& bytes, bool is_volatile) {
    if (!is_watching()) return;
    core_.leave_call(core_.place());
    all_->load(kernel_, bytes, is_volatile);
  }
  void push(const Range& pages) {
    if (is_watching()) all_->push(kernel_, pages);
  }
  void pop(const Range& pages) {
    if (all_ != nullptr) all_->pop(kernel_, pages);
  }
  void store_word(std::uint64_t word, std::uint32_t value) {
    if (is_watching()) all_->store_word(kernel_, word, value);
  }
  // The kernel has read a word.
  void see_word(std::uint64_t word) {
    if (is_watching()) {
      all_->see_word(kernel_, word, core_.network().load_word(core_.config().core, word));
    }
  }
  void learn() {
    if (is_watching()) all_->learn(kernel_);
  }
  // A barrier of TowpathBarrier has completed.
  void pass(int barrier, int id, int noc);

 private:
  bool is_watching() const { return all_ != nullptr && !all_->is_idle(); }

  DataMovementCore& core_;
  CoreArrivals* all_ = nullptr;
  std::size_t kernel_ = 0;
};

// The records of all cores of a run.
class KernelArrivals {
 public:
  CoreArrivals& of(int chip, machine::Coordinate core) { return cores_[{chip, {core.x, core.y}}]; }

 private:
  std::map<std::pair<int, std::pair<int, int>>, CoreArrivals> cores_;
};

}  // namespace towpath::tenstorrent::metalium
