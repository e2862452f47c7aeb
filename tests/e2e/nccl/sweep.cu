// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Runs collectives of NCCL with data and compares every element with the exact result.
//
// usage: sweep RANKS COLLECTIVES TYPES OPERATIONS PLACES COUNTS
// Lists are separated by commas. A place is "out", "in" (in place) or "shifted" (by one element).
// Prints each case with wrong elements, and "CASES cases, WRONG wrong". If a launcher starts
// several processes, each has an equal part of the ranks, and they exchange NCCL's id through the
// file that $NCCL_TEST_ID names. Process $SWEEP_KILLED is killed after it has joined, and
// $SWEEP_ABSENT ends.

#include <signal.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "check.hpp"
#include "common_id.hpp"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_fp8.h"
#include "cuda_runtime.h"

namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

struct Case {
  std::string collective, operation, place;
  std::size_t count;  // elements that a rank sends, or receives of all_gather and reduce_scatter
};

template <typename T>
constexpr bool is_float8 = std::is_same_v<T, __nv_fp8_e4m3> || std::is_same_v<T, __nv_fp8_e5m2>;

// The factor of "premulsum".
constexpr int kFactor = 2;

template <typename T>
T as(int value) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(value);
  return static_cast<T>(static_cast<float>(value));
}

// Small numbers, whose sums and products all types hold.
template <typename T>
int value_of(const std::string& operation, int rank, std::size_t i) {
  if (operation == "prod") return (i + static_cast<std::size_t>(rank)) % 3 == 0 ? 2 : 1;
  return static_cast<int>((i * 7 + static_cast<std::size_t>(rank) * 5) % (is_float8<T> ? 3 : 11));
}

template <typename T>
T reduced(const std::string& operation, int ranks, std::size_t i) {
  long found = value_of<T>(operation, 0, i);
  for (int rank = 1; rank < ranks; ++rank) {
    const long next = value_of<T>(operation, rank, i);
    if (operation == "sum" || operation == "avg" || operation == "premulsum") found += next;
    if (operation == "prod") found *= next;
    if (operation == "min") found = next < found ? next : found;
    if (operation == "max") found = next > found ? next : found;
  }
  if (operation == "avg" && std::is_integral_v<T>) found /= ranks;
  if (operation == "avg" && !std::is_integral_v<T>) {
    return static_cast<T>(static_cast<float>(found) / static_cast<float>(ranks));
  }
  return as<T>(static_cast<int>(operation == "premulsum" ? kFactor * found : found));
}

// "premulsum" is an operation that each communicator makes.
ncclRedOp_t operation_of(const std::string& name) {
  if (name == "prod") return ncclProd;
  if (name == "min") return ncclMin;
  if (name == "max") return ncclMax;
  return name == "avg" ? ncclAvg : ncclSum;
}

class Ranks {
 public:
  explicit Ranks(int count) : count_(count) {
    const int processes = number_of("WORLD_SIZE", 1);
    const int process = number_of("RANK", 0);
    const int own = count / processes;
    first_ = process * own;
    communicators_.resize(static_cast<std::size_t>(own));
    const int device = number_of("LOCAL_RANK", 0) * own;
    if (processes == 1) {
      check(ncclCommInitAll(communicators_.data(), count, nullptr));
    } else {
      const ncclUniqueId id = common_id();
      check(ncclGroupStart());
      for (int i = 0; i < own; ++i) {
        cudaSetDevice(device + i);
        check(
            ncclCommInitRank(&communicators_[static_cast<std::size_t>(i)], count, id, first_ + i));
      }
      check(ncclGroupEnd());
    }
    for (int i = 0; i < own; ++i) {
      devices_.push_back(device + i);
      cudaSetDevice(devices_.back());
      cudaStream_t stream = nullptr;
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      streams_.push_back(stream);
    }
  }
  int count() const { return count_; }  // of all processes
  int first() const { return first_; }  // of this process
  int end() const { return first_ + static_cast<int>(communicators_.size()); }
  ncclComm_t communicator(int rank) { return communicators_[place(rank)]; }
  cudaStream_t stream(int rank) { return streams_[place(rank)]; }
  void use(int rank) { cudaSetDevice(devices_[place(rank)]); }
  std::size_t place(int rank) const { return static_cast<std::size_t>(rank - first_); }
  void synchronize() {
    for (int rank = first_; rank < end(); ++rank) {
      use(rank);
      cudaStreamSynchronize(stream(rank));
    }
  }
  void destroy() {
    check(ncclGroupStart());
    for (const ncclComm_t each : communicators_) check(ncclCommDestroy(each));
    check(ncclGroupEnd());
  }

 private:
  int count_, first_;
  std::vector<ncclComm_t> communicators_;
  std::vector<cudaStream_t> streams_;
  std::vector<int> devices_;
};

// The result before the call, and the element after it. All types hold them, and no result of the
// tests is one of them.
constexpr int kBefore = 80, kAfter = 96;

template <typename T>
struct Buffers {
  std::vector<T*> from, to;
  std::vector<void*> allocations;
};

template <typename T>
class Run {
 public:
  Run(Ranks& ranks, ncclDataType_t type, const Case& one)
      : ranks_(ranks), type_(type), case_(one) {
    const bool is_sum_of_parts = is("reduce_scatter");
    if (!is_sum_of_parts && !is("all_reduce") && !is("reduce")) return;
    const std::size_t size = is_sum_of_parts ? case_.count * n() : case_.count;
    for (std::size_t i = 0; i < size; ++i) {
      reduced_.push_back(reduced<T>(case_.operation, ranks.count(), i));
    }
  }

  std::size_t wrong_elements() {
    allocate();
    check(ncclGroupStart());
    for (int rank = ranks_.first(); rank < ranks_.end(); ++rank) call(rank);
    check(ncclGroupEnd());
    ranks_.synchronize();
    std::size_t wrong = 0;
    const T kept = as<T>(kAfter);
    for (int rank = ranks_.first(); rank < ranks_.end(); ++rank) {
      for (std::size_t i = 0; i < received(rank); ++i) wrong += is_wrong(rank, i) ? 1 : 0;
      if (!keeps_end()) continue;
      wrong += std::memcmp(&at(buffers_.to, rank)[received_max()], &kept, sizeof kept) == 0 ? 0 : 1;
    }
    for (void* const each : buffers_.allocations) cudaFree(each);
    return wrong;
  }

 private:
  template <typename V>
  auto& at(V& list, int rank) {
    return list[ranks_.place(rank)];
  }
  bool is(const char* name) const { return case_.collective == name; }
  std::size_t n() const { return static_cast<std::size_t>(ranks_.count()); }
  std::size_t sent() const {
    return is("reduce_scatter") || is("alltoall") ? case_.count * n() : case_.count;
  }
  std::size_t received_max() const {
    return is("all_gather") || is("alltoall") ? case_.count * n() : case_.count;
  }
  std::size_t received(int rank) const {
    return is("reduce") && rank != root() ? 0 : received_max();
  }
  bool keeps_end() const { return case_.place != "in" || !is("reduce_scatter"); }
  int root() const { return ranks_.count() - 1; }
  int before(int rank) const { return (rank + root()) % ranks_.count(); }

  void allocate() {
    const std::size_t shift = case_.place == "shifted" ? 1 : 0;
    const std::size_t room = (case_.count * n() + 2) * sizeof(T);
    for (int rank = ranks_.first(); rank < ranks_.end(); ++rank) {
      ranks_.use(rank);
      void *from = nullptr, *to = nullptr;
      cudaMalloc(&from, room);
      cudaMalloc(&to, room);
      buffers_.allocations.insert(buffers_.allocations.end(), {from, to});
      buffers_.to.push_back(static_cast<T*>(to) + shift);
      buffers_.from.push_back(static_cast<T*>(from) + shift);
      if (case_.place == "in") buffers_.from.back() = in_place(rank);
      for (std::size_t i = 0; i < received_max(); ++i) buffers_.to.back()[i] = as<T>(kBefore);
      for (std::size_t i = 0; i < sent(); ++i) {
        buffers_.from.back()[i] = as<T>(value_of<T>(case_.operation, rank, i));
      }
      if (case_.place == "in" && is("reduce_scatter")) {
        buffers_.to.back() = buffers_.from.back() + static_cast<std::size_t>(rank) * case_.count;
      }
      // The element after the result must stay.
      if (keeps_end()) buffers_.to.back()[received_max()] = as<T>(kAfter);
    }
  }
  T* in_place(int rank) {
    const std::size_t offset = is("all_gather") ? static_cast<std::size_t>(rank) * case_.count : 0;
    return buffers_.to.back() + offset;
  }

  ncclRedOp_t operation(int rank) {
    if (case_.operation != "premulsum") return operation_of(case_.operation);
    T factor = as<T>(kFactor);
    ncclRedOp_t made;
    check(ncclRedOpCreatePreMulSum(&made, &factor, type_, ncclScalarHostImmediate,
                                   ranks_.communicator(rank)));
    return made;
  }

  void call(int rank) {
    const T* const from = at(buffers_.from, rank);
    T* const to = at(buffers_.to, rank);
    const ncclComm_t communicator = ranks_.communicator(rank);
    const cudaStream_t stream = ranks_.stream(rank);
    const ncclRedOp_t operation = this->operation(rank);
    const std::size_t count = case_.count;
    ncclResult_t result = ncclSuccess;
    if (is("all_reduce")) {
      result = ncclAllReduce(from, to, count, type_, operation, communicator, stream);
    } else if (is("reduce")) {
      result = ncclReduce(from, to, count, type_, operation, root(), communicator, stream);
    } else if (is("broadcast")) {
      result = ncclBroadcast(from, to, count, type_, root(), communicator, stream);
    } else if (is("all_gather")) {
      result = ncclAllGather(from, to, count, type_, communicator, stream);
    } else if (is("reduce_scatter")) {
      result = ncclReduceScatter(from, to, count, type_, operation, communicator, stream);
    } else if (is("sendrecv")) {
      check(ncclSend(from, count, type_, (rank + 1) % ranks_.count(), communicator, stream));
      check(ncclRecv(to, count, type_, before(rank), communicator, stream));
    } else if (is("alltoall")) {
      for (int peer = 0; peer < ranks_.count(); ++peer) {
        const std::size_t part = static_cast<std::size_t>(peer) * count;
        check(ncclSend(from + part, count, type_, peer, communicator, stream));
        check(ncclRecv(to + part, count, type_, peer, communicator, stream));
      }
    } else {
      std::printf("there is no collective %s\n", case_.collective.c_str());
      std::exit(2);
    }
    check(result);
    if (case_.operation == "premulsum") {
      check(ncclRedOpDestroy(operation, communicator));
    }
  }

  bool is_wrong(int rank, std::size_t i) {
    const T found = at(buffers_.to, rank)[i];
    const std::size_t part = case_.count == 0 ? 0 : i / case_.count;
    const std::size_t inside = case_.count == 0 ? 0 : i % case_.count;
    const auto own = static_cast<std::size_t>(rank) * case_.count;
    const std::string& operation = case_.operation;
    T expected{};
    if (is("all_reduce") || is("reduce")) expected = reduced_[i];
    if (is("reduce_scatter")) expected = reduced_[own + i];
    if (is("broadcast")) expected = as<T>(value_of<T>(operation, root(), i));
    if (is("sendrecv")) expected = as<T>(value_of<T>(operation, before(rank), i));
    if (is("all_gather")) {
      expected = as<T>(value_of<T>(operation, static_cast<int>(part), inside));
    }
    if (is("alltoall")) {
      expected = as<T>(value_of<T>(operation, static_cast<int>(part), own + inside));
    }
    if constexpr (std::is_integral_v<T>) {
      return found != expected;
    } else {
      // NCCL multiplies by the inverse of the number of ranks, and rounds at each sum.
      const bool is_rounded = operation == "avg" && (n() & (n() - 1)) != 0;
      const double apart = static_cast<double>(static_cast<float>(found)) -
                           static_cast<double>(static_cast<float>(expected));
      return !(apart <= 0.05 && apart >= -0.05) || (!is_rounded && apart != 0);
    }
  }

  Ranks& ranks_;
  ncclDataType_t type_;
  const Case& case_;
  std::vector<T> reduced_;  // the sums of all ranks' elements, or their products and so on
  Buffers<T> buffers_;
};

std::size_t wrong_elements(Ranks& ranks, const std::string& type, const Case& one) {
  if (type == "int8") return Run<std::int8_t>(ranks, ncclInt8, one).wrong_elements();
  if (type == "uint8") return Run<std::uint8_t>(ranks, ncclUint8, one).wrong_elements();
  if (type == "int32") return Run<std::int32_t>(ranks, ncclInt32, one).wrong_elements();
  if (type == "uint32") return Run<std::uint32_t>(ranks, ncclUint32, one).wrong_elements();
  if (type == "int64") return Run<std::int64_t>(ranks, ncclInt64, one).wrong_elements();
  if (type == "uint64") return Run<std::uint64_t>(ranks, ncclUint64, one).wrong_elements();
  if (type == "half") return Run<__half>(ranks, ncclFloat16, one).wrong_elements();
  if (type == "bfloat16") return Run<__nv_bfloat16>(ranks, ncclBfloat16, one).wrong_elements();
  if (type == "float") return Run<float>(ranks, ncclFloat32, one).wrong_elements();
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
  if (type == "e4m3") return Run<__nv_fp8_e4m3>(ranks, ncclFloat8e4m3, one).wrong_elements();
  if (type == "e5m2") return Run<__nv_fp8_e5m2>(ranks, ncclFloat8e5m2, one).wrong_elements();
#endif
  if (type == "double") return Run<double>(ranks, ncclFloat64, one).wrong_elements();
  std::printf("there is no type %s\n", type.c_str());
  std::exit(2);
}

}  // namespace

int main(int count, char** words) {
  if (count != 7) {
    std::printf("usage: sweep RANKS COLLECTIVES TYPES OPERATIONS PLACES COUNTS\n");
    return 2;
  }
  Ranks ranks(std::atoi(words[1]));
  if (number_of("SWEEP_KILLED", -1) == number_of("RANK", 0)) raise(SIGKILL);
  if (number_of("SWEEP_ABSENT", -1) == number_of("RANK", 0)) std::_Exit(0);
  int cases = 0, wrong = 0;
  for (const auto& collective : split(words[2])) {
    for (const auto& type : split(words[3])) {
      for (const auto& operation : split(words[4])) {
        for (const auto& place : split(words[5])) {
          if ((collective == "alltoall" || collective == "sendrecv") && place == "in") continue;
          for (const auto& elements : split(words[6])) {
            const Case one{collective, operation, place,
                           static_cast<std::size_t>(std::atol(elements.c_str()))};
            const std::size_t found = wrong_elements(ranks, type, one);
            ++cases;
            if (found == 0) continue;
            ++wrong;
            std::printf("%s %s %s %s %s: %zu elements are wrong\n", collective.c_str(),
                        type.c_str(), operation.c_str(), place.c_str(), elements.c_str(), found);
          }
        }
      }
    }
  }
  ranks.destroy();
  std::printf("%d cases, %d wrong\n", cases, wrong);
  std::fflush(stdout);
  std::_Exit(wrong == 0 ? 0 : 1);
}
