// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/gpu/include/towpath_gpu.h"

// The activities of the blocks of a run. At any moment a block has one activity, so the spans of a
// block have no gaps and no overlaps, and add up to its residence on the GPU. Threads with the same
// activity form one span. Transfers are recorded separately, from their start to their arrival.
//
// Records are kept in rings, so memory is bounded. Sums are exact even if records were dropped.

namespace towpath::gpu {

namespace abi = towpath_gpu;

// Activities of threads of a block. If they differ, the first of them counts for the block:
// a transfer hides the threads that wait for it.
enum class Activity : std::uint8_t {
  put,
  get,
  signal,
  atomic,
  compute,     // instructions, loads and stores
  quiet,       // quiet and fence
  wait,        // for words of memory of the PE
  collective,  // barriers and other collectives of PEs
  sync,        // threads of the block, or blocks of the grid, for each other
  turn,        // live: another block of the PE runs
};
inline constexpr std::size_t kActivities = 10;
const char* name_of(Activity activity);

// Records in the order of their numbers. The oldest make room.
template <typename Record>
class Ring {
 public:
  explicit Ring(std::size_t capacity) : capacity_(capacity) {}

  std::uint64_t add(const Record& record) {
    if (records_.size() < capacity_) {
      records_.push_back(record);
    } else {
      records_[count_ % capacity_] = record;
    }
    return count_++;
  }
  // Null if it was dropped.
  Record* find(std::uint64_t number) {
    if (number >= count_ || number + capacity_ < count_) return nullptr;
    return &records_[number % capacity_];
  }
  std::uint64_t dropped() const { return count_ - records_.size(); }
  std::size_t size() const { return records_.size(); }
  // Calls use(record) for each record kept, oldest first.
  template <typename Use>
  void for_each(const Use& use) const {
    for (std::uint64_t i = dropped(); i < count_; ++i) use(records_[i % capacity_]);
  }

 private:
  std::size_t capacity_;
  std::vector<Record> records_;
  std::uint64_t count_ = 0;
};

class Profile {
 public:
  static constexpr int kNobody = -1;
  static constexpr int kSeveral = -2;
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  // A range of a symmetric heap, or empty.
  struct Words {
    std::uint64_t first = 0;
    std::uint64_t size_bytes = 0;
  };
  struct Span {
    int track = 0;
    Activity activity = Activity::compute;
    int name = 0;
    int peer = kNobody;
    int calls = 0;  // merged calls of threads
    Time begin{};
    Time end{};
    std::uint64_t size_bytes = 0;
    Words woken_by{};  // the change that ended it
  };
  struct Transfer {
    int track = 0;
    Activity activity = Activity::put;
    int name = 0;
    int peer = 0;
    int calls = 1;
    Time begin{};
    Time done{};    // its threads continue
    Time landed{};  // the bytes and the signal are there, or zero
    std::uint64_t size_bytes = 0;
    Words target{};  // at the peer
    Words signal{};
  };
  // A kernel, a copy or a call on a stream.
  struct StreamWork {
    int pe = 0;
    int stream = 0;
    int name = 0;
    Time queued{};
    Time begin{};
    Time end{};
    std::uint64_t size_bytes = 0;
    std::uint64_t blocks = 0;
    int threads = 0;  // of a block
    bool is_kernel = false;
  };
  // Consecutive blocks of one index on one stream of a PE.
  struct Track {
    int pe;
    int stream;
    int block;
    bool is_kernel;  // false: a library call on a stream
    std::array<Time, kActivities> times{};
    std::uint64_t spans = 0;
  };
  struct Name {
    std::string text;
    std::string place;  // "ring.cu:12"
    bool is_collective;
  };

  // Keeps at most `records_max` records of each kind.
  Profile(std::function<Time()> clock, std::size_t records_max);

  Time now() const { return clock_(); }
  int name(const abi::Site& site);
  int name(const std::string& text);
  bool is_collective(int name) const {
    return names_[static_cast<std::size_t>(name)].is_collective;
  }
  int stream(int pe, void* handle);
  int track(const Track& track);

  std::uint64_t add(const StreamWork& work) { return work_.add(work); }
  void begin_work(std::uint64_t number);
  void end_work(std::uint64_t number);
  void add(const Span& span);
  std::uint64_t add(const Transfer& transfer) { return transfers_.add(transfer); }
  Transfer* transfer(std::uint64_t number) { return transfers_.find(number); }
  // Its threads continue. Its bytes have arrived.
  void transfer_done(std::uint64_t number);
  void transfer_landed(std::uint64_t number);
  void count_time(int track, Activity activity, Time time) {
    tracks_[static_cast<std::size_t>(track)].times[static_cast<std::size_t>(activity)] += time;
  }

  const Ring<Span>& spans() const { return spans_; }
  const Ring<Transfer>& transfers() const { return transfers_; }
  const Ring<StreamWork>& work() const { return work_; }
  const std::vector<Track>& tracks() const { return tracks_; }
  const std::vector<Name>& names() const { return names_; }

 private:
  std::function<Time()> clock_;
  Ring<Span> spans_;
  Ring<Transfer> transfers_;
  Ring<StreamWork> work_;
  std::vector<Track> tracks_;
  std::map<std::tuple<int, int, int, bool>, int> track_numbers_;
  std::vector<Name> names_;
  std::map<std::pair<std::string, std::string>, int> name_numbers_;
  std::map<std::tuple<const void*, const void*, int>, int> sites_;
  std::map<std::pair<int, void*>, int> streams_;
};

// One block while it is resident.
class BlockTimeline {
 public:
  BlockTimeline(Profile& profile, int track, const std::string& kernel);
  ~BlockTimeline();
  BlockTimeline(const BlockTimeline&) = delete;
  BlockTimeline& operator=(const BlockTimeline&) = delete;

  // A thread starts an activity. All calls of a collective count as one activity.
  void enter(Activity activity, const abi::Site& site, int peer = Profile::kNobody,
             std::uint64_t size_bytes = 0);
  void leave(Activity activity, const abi::Site& site, int threads = 1);
  // The words that a thread waited for have changed.
  void woken(Profile::Words words) { woken_by_ = words; }
  // Loads and stores that start now, and the end of all work of the block until now.
  void work(std::uint64_t size_bytes);
  void works_until(Time when) { works_until_ = when; }
  // Concurrent transfers of several threads are merged. Returns the number.
  std::uint64_t start(Profile::Transfer transfer, const abi::Site& site);
  Activity activity_at(Activity activity, const abi::Site& site);

  // In a live run, blocks take turns: a block is ready, it runs, and it waits again.
  void await_turn();
  void begin_turn();
  void end_turn();

 private:
  struct Doing {
    int threads = 0;
    int calls = 0;
    int name = 0;
    int peer = Profile::kNobody;
    std::uint64_t size_bytes = 0;
  };
  Doing& doing(Activity activity) { return doing_[static_cast<std::size_t>(activity)]; }
  Activity first() const;
  void change();
  void close(Time now);
  void emit(Profile::Span span);
  static void forget(Doing& what);
  void flush(std::size_t keep);

  Profile& profile_;
  int track_;
  int kernel_;
  std::array<Doing, kActivities> doing_{};
  Activity current_ = Activity::compute;
  Time begin_;
  Time works_until_{};
  Time turn_begin_{};
  Profile::Words woken_by_{};
  bool goes_on_ = false;  // the last span was cut, but not over
  std::uint64_t last_transfer_ = Profile::kNone;
  std::vector<Profile::Span> pending_;  // the last two, which may still grow
};

}  // namespace towpath::gpu
