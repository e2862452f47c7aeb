// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "symmetric_memory.hpp"

#include <c10/util/Exception.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>
#include <utility>
#include <vector>

#include "rendezvous.hpp"
#include "work.hpp"

namespace towpath_torch {

namespace {

namespace symmetric = c10d::symmetric_memory;

constexpr const char* kName = "TOWPATH";

size_t rounded_up(size_t size_bytes, size_t unit) { return (size_bytes + unit - 1) / unit * unit; }

// What was allocated: the bytes that were asked for, and behind them the signal pad.
class Block {
 public:
  Block(size_t size_bytes, std::optional<std::string> group_name)
      : size_bytes_(size_bytes),
        pad_begin_(rounded_up(size_bytes, alignof(std::max_align_t))),
        mapped_bytes_(rounded_up(pad_begin_ + symmetric::get_signal_pad_size(),
                                 static_cast<size_t>(::sysconf(_SC_PAGESIZE)))),
        group_name_(std::move(group_name)) {
    place_ =
        ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TORCH_CHECK(place_ != MAP_FAILED, "there is no memory for a symmetric tensor of ", size_bytes,
                " bytes");
  }
  ~Block() { ::munmap(place_, mapped_bytes_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void* place() const { return place_; }
  size_t size_bytes() const { return size_bytes_; }
  size_t pad_begin() const { return pad_begin_; }
  size_t pad_bytes() const { return mapped_bytes_ - pad_begin_; }
  size_t mapped_bytes() const { return mapped_bytes_; }
  const std::optional<std::string>& group_name() const { return group_name_; }

 private:
  size_t size_bytes_;
  size_t pad_begin_;
  size_t mapped_bytes_;
  std::optional<std::string> group_name_;
  void* place_;
};

// What a tensor's ranks are, as their process group says.
struct Ranks {
  explicit Ranks(c10d::ProcessGroup& group) : rank(group.getRank()), ranks(group.getSize()) {
    const auto options = group.getBackend(c10::DeviceType::CPU)->getBackendOptions();
    timeout = options->timeout;
    for (const uint64_t each : options->global_ranks_in_group) {
      global_ranks.push_back(static_cast<int>(each));
    }
  }

  int rank;
  int ranks;
  std::chrono::milliseconds timeout;
  std::vector<int> global_ranks;
};

// An exchange of a word that others may change, too; it happens once.
struct Exchange {
  std::atomic_ref<uint32_t> word;
  uint32_t from;
  uint32_t to;
  bool has_happened = false;

  // What was stored before is seen by whoever this lets go on.
  bool happens() {
    uint32_t expected = from;
    has_happened = has_happened || word.compare_exchange_strong(expected, to);
    return has_happened;
  }
};

class SharedTensor final : public symmetric::SymmetricMemory {
 public:
  // Blocks until all ranks have come.
  SharedTensor(const towpath_group_api& api, std::shared_ptr<Block> block, Ranks ranks,
               const Job& job)
      : api_(api), block_(std::move(block)), ranks_(std::move(ranks)) {
    const towpath_options asked{.transport = job.transport.c_str(),
                                .job = job.name.c_str(),
                                .token = job.token.c_str(),
                                .listener = job.listener,
                                .rank = ranks_.rank,
                                .ranks = ranks_.ranks,
                                .timeout_s = static_cast<double>(ranks_.timeout.count()) / 1e3};
    towpath_error error;
    array_ = api_.share(&asked, block_->place(), block_->mapped_bytes(), &error);
    if (array_ == nullptr) raise(error, {ranks_.global_ranks.begin(), ranks_.global_ranks.end()});
    for (int rank = 0; rank < ranks_.ranks; ++rank) {
      buffers_.push_back(api_.array_of(array_, rank));
      pads_.push_back(static_cast<char*>(buffers_.back()) + block_->pad_begin());
    }
  }
  ~SharedTensor() override { api_.unshare(array_); }

  std::vector<void*> get_buffer_ptrs() override { return buffers_; }
  std::vector<void*> get_signal_pad_ptrs() override { return pads_; }
  // The device is this process.
  void** get_buffer_ptrs_dev() override { return buffers_.data(); }
  void** get_signal_pad_ptrs_dev() override { return pads_.data(); }
  size_t get_buffer_size() override { return block_->size_bytes(); }
  size_t get_offset() override { return 0; }
  bool has_multicast_support() override { return false; }
  void* get_multicast_ptr() override { return nullptr; }
  int get_rank() override { return ranks_.rank; }
  int get_world_size() override { return ranks_.ranks; }
  c10::Device get_device() override { return c10::Device(c10::DeviceType::CPU); }
  const std::vector<int>& get_rank_to_global_rank() override { return ranks_.global_ranks; }
  int* get_rank_to_global_rank_dev() override { return ranks_.global_ranks.data(); }
  bool world_within_direct_access() override { return true; }

  void put_signal(int destination, int channel, size_t timeout_ms) override {
    check(destination, channel);
    carry_out({word(destination, channel, ranks_.rank), 0, 1}, destination, timeout_ms,
              "the last signal to be taken by rank " + std::to_string(destination));
  }
  void wait_signal(int source, int channel, size_t timeout_ms) override {
    check(source, channel);
    carry_out({word(ranks_.rank, channel, source), 1, 0}, source, timeout_ms,
              "a signal of rank " + std::to_string(source));
  }
  void barrier(int channel, size_t timeout_ms) override {
    for (int rank = 0; rank < ranks_.ranks; ++rank) {
      if (rank != ranks_.rank) put_signal(rank, channel, timeout_ms);
    }
    for (int rank = 0; rank < ranks_.ranks; ++rank) {
      if (rank != ranks_.rank) wait_signal(rank, channel, timeout_ms);
    }
  }

 private:
  void check(int peer, int channel) const {
    TORCH_CHECK(peer >= 0 && peer < ranks_.ranks, "rank ", peer, " is outside the range 0 to ",
                ranks_.ranks - 1);
    const size_t channels = block_->pad_bytes() / sizeof(uint32_t) / buffers_.size();
    TORCH_CHECK(channel >= 0 && static_cast<size_t>(channel) < channels, "channel ", channel,
                " is outside the range 0 to ", channels - 1, " of the signal pad");
  }
  // In the pad of `of`, the word of a channel that rank `by` sets.
  std::atomic_ref<uint32_t> word(int of, int channel, int by) const {
    const size_t index = static_cast<size_t>(channel) * buffers_.size() + static_cast<size_t>(by);
    return std::atomic_ref(static_cast<uint32_t*>(pads_[static_cast<size_t>(of)])[index]);
  }
  void carry_out(Exchange exchange, int peer, size_t timeout_ms, const std::string& what) {
    const auto happens = [](void* context) {
      return static_cast<int>(static_cast<Exchange*>(context)->happens());
    };
    const auto limit_ms =
        timeout_ms > 0 ? static_cast<int64_t>(timeout_ms) : ranks_.timeout.count();
    const towpath_condition condition{happens, &exchange, peer, what.c_str(),
                                      static_cast<double>(limit_ms) / 1e3};
    towpath_error error;
    if (!exchange.happens() && api_.wait_for(array_, &condition, &error) != TOWPATH_OK) {
      raise(error, {ranks_.global_ranks.begin(), ranks_.global_ranks.end()});
    }
    api_.wake_peers(array_);
  }

  const towpath_group_api& api_;
  std::shared_ptr<Block> block_;
  Ranks ranks_;
  towpath_array* array_ = nullptr;
  std::vector<void*> buffers_;  // by rank
  std::vector<void*> pads_;     // by rank
};

class Allocator final : public symmetric::SymmetricMemoryAllocator {
 public:
  explicit Allocator(const towpath_group_api& api) : api_(api) {}

  void* alloc(size_t size_bytes, int, const std::optional<std::string>& group_name) override {
    auto block = std::make_shared<Block>(size_bytes, group_name);
    void* const place = block->place();
    const std::lock_guard lock(mutex_);
    allocations_[place].block = std::move(block);
    return place;
  }
  void free(void* place) override {
    Allocation last;  // lets go of it without the lock
    const std::lock_guard lock(mutex_);
    last = std::exchange(allocations_[place], {});
    allocations_.erase(place);
  }
  size_t get_alloc_size(void* place) override { return find(place).block->size_bytes(); }
  bool has_allocation(void* place) override {
    const std::lock_guard lock(mutex_);
    return allocations_.contains(place);
  }
  bool has_multicast_support(int) override { return false; }
  c10::DeviceType supported_device_type() override { return c10::DeviceType::CPU; }
  std::string name() override { return kName; }

  c10::intrusive_ptr<symmetric::SymmetricMemory> rendezvous(
      void* place, const std::optional<std::string>& group_name) override {
    const Allocation allocation = find(place);
    const auto asked = group_name ? group_name : allocation.block->group_name();
    TORCH_CHECK(asked.has_value(), "a rendezvous needs the name of a group");
    if (allocation.shared) {
      TORCH_CHECK(allocation.shared_by == *asked, "this tensor is shared by group ",
                  allocation.shared_by, "; a tensor is shared once, so allocate one for group ",
                  *asked);
      return allocation.shared;
    }
    auto shared = share(allocation.block, *asked);
    const std::lock_guard lock(mutex_);
    allocations_[place] = {allocation.block, shared, *asked};
    return shared;
  }

 private:
  struct Allocation {
    std::shared_ptr<Block> block;
    c10::intrusive_ptr<SharedTensor> shared;  // null before the rendezvous
    std::string shared_by;
  };

  Allocation find(void* place) {
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(place);
    TORCH_CHECK(found != allocations_.end(),
                "the tensor is none of torch.distributed._symmetric_memory.empty()");
    return found->second;
  }

  c10::intrusive_ptr<SharedTensor> share(const std::shared_ptr<Block>& block,
                                         const std::string& group_name) {
    const auto group = c10d::resolve_process_group(group_name);
    Ranks ranks(*group);
    const auto store = c10::make_intrusive<c10d::PrefixStore>(
        "towpath/symmetric/" + group_name + '/' + std::to_string(next_number(group_name)),
        group->getStore());
    const Job job = meet(api_, *store, ranks.rank, {"shm", ""}, ranks.timeout);
    return c10::make_intrusive<SharedTensor>(api_, block, std::move(ranks), job);
  }

  // All ranks of a group share their tensors in one order.
  int next_number(const std::string& group_name) {
    const std::lock_guard lock(mutex_);
    return ++numbers_[group_name];
  }

  const towpath_group_api& api_;
  std::mutex mutex_;
  std::map<void*, Allocation> allocations_;
  std::map<std::string, int> numbers_;  // of arrays, by group
};

}  // namespace

void register_symmetric_memory(const towpath_group_api& api) {
  if (symmetric::has_allocator(c10::DeviceType::CPU)) return;
  const auto allocator = c10::make_intrusive<Allocator>(api);
  symmetric::register_availability(kName, allocator);
  symmetric::register_allocator(c10::DeviceType::CPU, allocator);
}

}  // namespace towpath_torch
