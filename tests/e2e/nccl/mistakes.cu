// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Mistakes of programs that use NCCL, as users have reported them: each hangs on GPUs, or gives
// wrong data. Two ranks, a thread each.
//
// usage: mistakes NAME [corrected]
// Prints "right" if each element is as it should be.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "cuda_runtime.h"

namespace {

constexpr int kRanks = 2;

struct Rank {
  int number;
  cudaStream_t stream;
  ncclComm_t first, second;  // two communicators of both ranks
  float *from, *to;
  int peer() const { return 1 - number; }
};

constexpr std::size_t kCount = 1 << 20;

void sum(const Rank& rank, ncclComm_t communicator, std::size_t count) {
  check(ncclAllReduce(rank.from, rank.to, count, ncclFloat, ncclSum, communicator, rank.stream));
}
void send(const Rank& rank, std::size_t count) {
  check(ncclSend(rank.from, count, ncclFloat, rank.peer(), rank.first, rank.stream));
}
void receive(const Rank& rank, std::size_t count) {
  check(ncclRecv(rank.to, count, ncclFloat, rank.peer(), rank.first, rank.stream));
}

// The ranks use two communicators in different orders.
void order(const Rank& rank, bool is_corrected) {
  const bool is_swapped = rank.number == 1 && !is_corrected;
  sum(rank, is_swapped ? rank.second : rank.first, kCount);
  sum(rank, is_swapped ? rank.first : rank.second, kCount);
}
// The arrays have different lengths.
void lengths(const Rank& rank, bool is_corrected) {
  sum(rank, rank.first, rank.number == 1 && !is_corrected ? kCount - 2 : kCount);
}
// One rank is in another collective.
void collectives(const Rank& rank, bool is_corrected) {
  if (rank.number == 1 && !is_corrected) {
    check(ncclAllGather(rank.from, rank.to, kCount / 2, ncclFloat, rank.first, rank.stream));
  } else {
    sum(rank, rank.first, kCount);
  }
}
// The elements have different types.
void types(const Rank& rank, bool is_corrected) {
  const bool is_other = rank.number == 1 && !is_corrected;
  check(ncclAllReduce(rank.from, rank.to, kCount, is_other ? ncclHalf : ncclFloat, ncclSum,
                      rank.first, rank.stream));
}
// A rank has no data left and leaves out the last step.
void steps(const Rank& rank, bool is_corrected) {
  const int count = rank.number == 1 && !is_corrected ? 2 : 3;
  for (int step = 0; step < count; ++step) sum(rank, rank.first, kCount);
}
// Both ranks send first, each call alone.
void exchange(const Rank& rank, bool is_corrected) {
  if (is_corrected) check(ncclGroupStart());
  send(rank, kCount);
  receive(rank, kCount);
  if (is_corrected) check(ncclGroupEnd());
}
// A rank receives what its peer does not send, because that part has no elements. The ranks have
// exchanged data before.
void parts(const Rank& rank, bool is_corrected) {
  exchange(rank, true);
  check(ncclGroupStart());
  if (rank.number == 1 || is_corrected) send(rank, kCount);
  receive(rank, kCount);
  check(ncclGroupEnd());
}
// A rank returns early from a function that has begun a group.
void group(const Rank& rank, bool is_corrected) {
  check(ncclGroupStart());
  sum(rank, rank.first, kCount);
  if (rank.number == 1 && !is_corrected) return;
  check(ncclGroupEnd());
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
// The ranks name different roots.
void roots(const Rank& rank, bool is_corrected) {
  check(ncclGather(rank.from, rank.to, kCount / 2, ncclFloat, is_corrected ? 0 : rank.number,
                   rank.first, rank.stream));
  exchange(rank, true);
}
#endif
// One rank makes a call with a type that does not exist, which NCCL refuses. No rank waits for it.
void refused(const Rank& rank, bool is_corrected) {
  if (rank.number == 0 && !is_corrected &&
      ncclAllReduce(rank.from, rank.to, kCount, ncclNumTypes, ncclSum, rank.first, rank.stream) !=
          ncclInvalidArgument) {
    std::_Exit(2);
  }
  sum(rank, rank.first, kCount);
}

struct Mistake {
  const char* name;
  void (*run)(const Rank& rank, bool is_corrected);
  bool is_sum;  // each element of the result, or it is the peer's
};
constexpr Mistake kMistakes[] = {
    {"order", order, true},  {"lengths", lengths, true}, {"collectives", collectives, true},
    {"types", types, true},  {"steps", steps, true},     {"exchange", exchange, false},
    {"parts", parts, false}, {"group", group, true},     {"refused", refused, true},
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
    {"roots", roots, false},
#endif
};

bool is_right(const Rank& rank, bool is_sum) {
  std::vector<float> found(kCount);
  cudaMemcpy(found.data(), rank.to, kCount * sizeof(float), cudaMemcpyDeviceToHost);
  for (const float each : found) {
    if (each != (is_sum ? 3.0f : static_cast<float>(rank.peer() + 1))) return false;
  }
  return true;
}

void run(int number, const ncclUniqueId* ids, const Mistake& mistake, bool is_corrected,
         bool* result) {
  cudaSetDevice(number);
  Rank rank{};
  rank.number = number;
  cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking);
  cudaMalloc(reinterpret_cast<void**>(&rank.from), kCount * sizeof(float));
  cudaMalloc(reinterpret_cast<void**>(&rank.to), kCount * sizeof(float));
  const std::vector<float> own(kCount, static_cast<float>(number + 1));
  cudaMemcpy(rank.from, own.data(), kCount * sizeof(float), cudaMemcpyHostToDevice);
  check(ncclCommInitRank(&rank.first, kRanks, ids[0], number));
  check(ncclCommInitRank(&rank.second, kRanks, ids[1], number));
  for (const ncclComm_t communicator : {rank.first, rank.second}) {
    sum(rank, communicator, 1);
    cudaStreamSynchronize(rank.stream);
  }
  mistake.run(rank, is_corrected);
  cudaStreamSynchronize(rank.stream);
  *result = is_right(rank, mistake.is_sum);
}

// A rank never enters the communicator.
int enter(bool is_corrected) {
  ncclUniqueId id;
  check(ncclGetUniqueId(&id));
  std::vector<std::thread> threads;
  for (int number = 0; number < (is_corrected ? kRanks : 1); ++number) {
    threads.emplace_back([=] {
      cudaSetDevice(number);
      ncclComm_t communicator = nullptr;
      check(ncclCommInitRank(&communicator, kRanks, id, number));
    });
  }
  for (std::thread& each : threads) each.join();
  std::printf("right\n");
  std::fflush(stdout);
  std::_Exit(0);
}

}  // namespace

int main(int count, char** words) {
  const std::string name = count > 1 ? words[1] : "";
  const bool is_corrected = count > 2 && std::strcmp(words[2], "corrected") == 0;
  if (name == "enter") return enter(is_corrected);
  for (const Mistake& mistake : kMistakes) {
    if (name != mistake.name) continue;
    ncclUniqueId ids[2];
    for (ncclUniqueId& id : ids) check(ncclGetUniqueId(&id));
    bool results[kRanks] = {};
    std::vector<std::thread> threads;
    for (int number = 0; number < kRanks; ++number) {
      threads.emplace_back(run, number, ids, std::cref(mistake), is_corrected, &results[number]);
    }
    for (std::thread& each : threads) each.join();
    std::printf("%s\n", results[0] && results[1] ? "right" : "wrong");
    std::fflush(stdout);
    std::_Exit(0);
  }
  std::printf("there is no mistake '%s'\n", name.c_str());
  return 2;
}
