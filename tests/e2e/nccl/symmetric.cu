// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Collectives on memory that all ranks have registered as symmetric, for which NCCL has kernels of
// its own.
//
// usage: symmetric RANKS COUNT
// Prints the name of each collective and its number of wrong elements.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "check.hpp"
#include "cuda_runtime.h"

namespace {

struct Rank {
  ncclComm_t communicator;
  cudaStream_t stream;
  float *from, *to;
};

float value_of(std::size_t rank, std::size_t i) {
  return static_cast<float>((i * 7 + rank * 5) % 11);
}

// The element of an array that is the sum of all ranks' arrays.
float sum_of(std::size_t ranks, std::size_t i) {
  float sum = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) sum += value_of(rank, i);
  return sum;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) {
    std::printf("usage: symmetric RANKS COUNT\n");
    return 2;
  }
  const auto n = static_cast<std::size_t>(std::atoi(words[1]));
  const auto elements = static_cast<std::size_t>(std::atol(words[2]));
  const std::size_t bytes = n * elements * sizeof(float);
  std::vector<ncclComm_t> communicators(n);
  check(ncclCommInitAll(communicators.data(), static_cast<int>(n), nullptr));
  std::vector<Rank> ranks(n);
  std::vector<ncclWindow_t> windows(2 * n);
  for (std::size_t rank = 0; rank < n; ++rank) {
    cudaSetDevice(static_cast<int>(rank));
    ranks[rank].communicator = communicators[rank];
    cudaStreamCreateWithFlags(&ranks[rank].stream, cudaStreamNonBlocking);
    check(ncclMemAlloc(reinterpret_cast<void**>(&ranks[rank].from), bytes));
    check(ncclMemAlloc(reinterpret_cast<void**>(&ranks[rank].to), bytes));
  }
  for (const bool is_result : {false, true}) {
    check(ncclGroupStart());
    for (std::size_t rank = 0; rank < n; ++rank) {
      check(ncclCommWindowRegister(
          ranks[rank].communicator, is_result ? ranks[rank].to : ranks[rank].from, bytes,
          &windows[2 * rank + (is_result ? 1 : 0)], NCCL_WIN_COLL_SYMMETRIC));
    }
    check(ncclGroupEnd());
  }
  int status = 0;
  for (const std::string& name :
       {std::string("all_reduce"), std::string("all_gather"), std::string("reduce_scatter")}) {
    for (std::size_t rank = 0; rank < n; ++rank) {
      for (std::size_t i = 0; i < n * elements; ++i) {
        ranks[rank].from[i] = value_of(rank, i);
        ranks[rank].to[i] = 77;
      }
    }
    check(ncclGroupStart());
    for (const Rank& rank : ranks) {
      if (name == "all_reduce") {
        check(ncclAllReduce(rank.from, rank.to, elements, ncclFloat, ncclSum, rank.communicator,
                            rank.stream));
      } else if (name == "all_gather") {
        check(
            ncclAllGather(rank.from, rank.to, elements, ncclFloat, rank.communicator, rank.stream));
      } else {
        check(ncclReduceScatter(rank.from, rank.to, elements, ncclFloat, ncclSum, rank.communicator,
                                rank.stream));
      }
    }
    check(ncclGroupEnd());
    std::size_t wrong = 0;
    for (std::size_t rank = 0; rank < n; ++rank) {
      cudaSetDevice(static_cast<int>(rank));
      cudaStreamSynchronize(ranks[rank].stream);
      const std::size_t received = name == "all_gather" ? n * elements : elements;
      for (std::size_t i = 0; i < received; ++i) {
        float expected = sum_of(n, i);
        if (name == "all_gather") expected = value_of(i / elements, i % elements);
        if (name == "reduce_scatter") expected = sum_of(n, rank * elements + i);
        wrong += ranks[rank].to[i] == expected ? 0 : 1;
      }
    }
    std::printf("%s: %zu wrong\n", name.c_str(), wrong);
    if (wrong > 0) status = 1;
  }
  std::fflush(stdout);
  std::_Exit(status);
}
