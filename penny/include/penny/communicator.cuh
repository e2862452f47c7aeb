// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "algorithm.hpp"
#include "ring.cuh"
#include "shots.cuh"

// The host's side: symmetric memory for the kernels, the stages that their signals count, and the
// launch.

namespace penny {

// What is wrong with a call, in one sentence.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw Error(std::string(what) + ": " + cudaGetErrorString(error));
}

class Communicator {
 public:
  // Every PE makes one, with the same capacity: the largest array, in bytes. NVSHMEM has begun.
  Communicator(uint64_t capacity_bytes, bool is_host)
      : capacity_bytes_(divided_up(capacity_bytes, kVectorBytes) * kVectorBytes) {
    place_.pes = nvshmem_n_pes();
    place_.pes_per_node = nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE);
    place_.is_host = is_host;
    if (place_.pes > kPesMax) throw Error("more PEs than signals; 64 are possible");
    if (place_.pes % place_.pes_per_node != 0) place_.pes_per_node = place_.pes;
    // The smallest arrays get a slot for each PE, the others one half in turn.
    slots_bytes_ = 2 * std::max(capacity_bytes_, place_.pes * slot_bytes());
    slots_ = symmetric(slots_bytes_);
    staging_ = symmetric(capacity_bytes_);
    const uint64_t words = uint64_t(place_.pes) * kBlocksMax;
    signals_ = static_cast<uint64_t*>(nvshmem_calloc(words, sizeof(uint64_t)));
    if (signals_ == nullptr) throw Error("no symmetric memory for signals");
  }
  ~Communicator() {
    nvshmem_free(signals_);
    nvshmem_free(staging_);
    nvshmem_free(slots_);
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const Place& place() const { return place_; }
  uint64_t capacity_bytes() const { return capacity_bytes_; }

  // Symmetric memory, in which arrays are reduced without a copy. Every PE makes the same calls.
  void* allocate(uint64_t size_bytes) {
    void* const address = symmetric(divided_up(size_bytes, kVectorBytes) * kVectorBytes);
    allocated_[static_cast<const char*>(address)] = size_bytes;
    return address;
  }
  void release(void* address) {
    if (allocated_.erase(static_cast<const char*>(address)) == 0) {
      throw Error("release was given an address that allocate did not return");
    }
    nvshmem_free(address);
  }

  // The sum over all PEs, in place, when the stream gets there. Any memory of the device; every
  // PE calls with the same count, type and shape. Throws Error.
  template <typename T>
  void all_reduce(T* buffer, uint64_t count, cudaStream_t stream, const Shape& asked = {}) {
    const uint64_t size_bytes = count * sizeof(T);
    if (size_bytes > capacity_bytes_) {
      throw Error("the array has " + std::to_string(size_bytes) +
                               " bytes; this communicator was made for " +
                               std::to_string(capacity_bytes_));
    }
    if (count == 0 || place_.pes == 1) return;
    const Shape shape =
        asked.algorithm == Algorithm::automatic ? choose(size_bytes, place_) : asked;
    check_shape(shape, size_bytes);
    const bool is_whole = size_bytes % kVectorBytes == 0 && uintptr_t(buffer) % kVectorBytes == 0;
    const bool is_direct =
        is_whole && (is_symmetric(buffer, size_bytes) ||
                     (shape.algorithm == Algorithm::one_shot && place_.pes == place_.pes_per_node));
    T* const array = is_direct ? buffer : static_cast<T*>(staging_);
    if (!is_direct) copy(array, buffer, size_bytes, stream);
    launch(shape, array, divided_up(size_bytes, kVectorBytes), stream);
    if (!is_direct) copy(buffer, array, size_bytes, stream);
  }

  // Only the kernel, on an array of whole vectors that is symmetric.
  template <typename T>
  void launch(const Shape& shape, T* array, uint64_t vectors, cudaStream_t stream) {
    // Halves in turn: a peer may still read what the call before brought.
    T* const slots = reinterpret_cast<T*>(static_cast<char*>(slots_) + calls_++ % 2 * slots_bytes_ / 2);
    const dim3 grid(shape.blocks, shape.rings), block(shape.threads);
    const int node = place_.pes_per_node;
    switch (shape.algorithm) {
      case Algorithm::vectorised_ring:
        vectorised_ring<T><<<grid, block, 0, stream>>>(slots, array, signals_, vectors, node, stage_);
        break;
      case Algorithm::simple_ring:
        simple_ring<T><<<grid, block, 0, stream>>>(slots, array, signals_, vectors, node, stage_);
        break;
      case Algorithm::one_shot:
        one_shot<T><<<grid, block, 0, stream>>>(slots, array, array, signals_, vectors, stage_);
        break;
      case Algorithm::two_shot:
        two_shot<T><<<grid, block, 0, stream>>>(array, signals_, vectors, stage_);
        break;
      default: throw Error("this algorithm does not take part in all_reduce");
    }
    check(cudaGetLastError(), "the launch of a kernel");
    // More than any algorithm uses, so that PEs count alike.
    stage_ += 2 * place_.pes;
  }

 private:
  uint64_t slot_bytes() const { return std::min<uint64_t>(capacity_bytes_, 1 << 20); }

  static void* symmetric(uint64_t size_bytes) {
    void* const address = nvshmem_malloc(size_bytes);
    if (address != nullptr) return address;
    throw Error("no " + std::to_string(size_bytes) +
                             " bytes of symmetric memory; set NVSHMEM_SYMMETRIC_SIZE");
  }

  void check_shape(const Shape& shape, uint64_t size_bytes) const {
    if (shape.blocks < 1 || shape.rings < 1 || shape.blocks * shape.rings > kBlocksMax) {
      throw Error("a kernel has 1 to 8192 blocks");
    }
    if (shape.algorithm == Algorithm::one_shot && size_bytes > slot_bytes()) {
      throw Error("one_shot takes at most " + std::to_string(slot_bytes()) + " bytes");
    }
    if (shape.algorithm == Algorithm::two_shot && place_.pes != place_.pes_per_node) {
      throw Error("two_shot needs all PEs in one node");
    }
  }

  bool is_symmetric(const void* address, uint64_t size_bytes) const {
    auto found = allocated_.upper_bound(static_cast<const char*>(address));
    if (found == allocated_.begin()) return false;
    --found;
    return static_cast<const char*>(address) + size_bytes <= found->first + found->second;
  }

  static void copy(void* to, const void* from, uint64_t size_bytes, cudaStream_t stream) {
    check(cudaMemcpyAsync(to, from, size_bytes, cudaMemcpyDeviceToDevice, stream), "a copy");
  }

  Place place_{};
  uint64_t capacity_bytes_;
  uint64_t slots_bytes_ = 0;
  void* slots_ = nullptr;
  void* staging_ = nullptr;
  uint64_t* signals_ = nullptr;
  std::map<const char*, uint64_t> allocated_;
  uint64_t calls_ = 0;
  uint64_t stage_ = 0;
};

}  // namespace penny
