// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Times Towpath's collectives between processes of this host, pinned to its cores in turn:
//
//   towpath_peer RANKS private|symmetric COLLECTIVE:BYTES...
//
// prints a line "COLLECTIVE BYTES MICROSECONDS" for each, as mpi_peer.c does: the mean over the
// ranks of each rank's median batch.
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "towpath/live/collectives.hpp"
#include "towpath/live/connect.hpp"
#include "towpath/live/whole_arrays.hpp"
#include "towpath/transport/reduction.hpp"

using namespace towpath;
using namespace towpath::live;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int kBatches = 9;
constexpr double kBatchSeconds = 0.004;

void pin(int rank) {
  cpu_set_t allowed, own;
  sched_getaffinity(0, sizeof(allowed), &allowed);
  int skip = rank % CPU_COUNT(&allowed);
  for (int core = 0;; ++core) {
    if (!CPU_ISSET(core, &allowed) || skip-- > 0) continue;
    CPU_ZERO(&own);
    CPU_SET(core, &own);
    sched_setaffinity(0, sizeof(own), &own);
    return;
  }
}

std::byte* private_memory(std::uint64_t bytes) {
  constexpr std::uint64_t kHuge = 2 << 20;
  bytes = (bytes + kHuge - 1) / kHuge * kHuge;
  void* const memory = std::aligned_alloc(kHuge, bytes);
  madvise(memory, bytes, MADV_HUGEPAGE);
  std::memset(memory, 0, bytes);
  return static_cast<std::byte*>(memory);
}

// Parts of whole elements, in arrays of `size` bytes.
Request request_for(const std::string& name, const LibraryReduction& how, std::byte* input,
                    std::byte* output, std::uint64_t size) {
  const auto ranks = static_cast<std::uint64_t>(how.ranks);
  const std::uint64_t part = size / ranks / sizeof(float) * sizeof(float);
  const bool is_in_place = name == "all_reduce" || name == "broadcast";
  if (is_in_place) return request_of(name, how, 0, {input, size}, {input, size});
  const bool takes_part = name == "all_gather", gives_part = name == "reduce_scatter";
  return request_of(name, how, 0, {input, takes_part ? part : part * ranks},
                    {output, gives_part ? part : part * ranks});
}

double run_rank(transport::LiveTransport& transport, Collectives& collectives,
                const Request& request) {
  const Time timeout = Time::from_seconds(20);
  const auto repeat = [&](int count) {
    transport.barrier(timeout);
    const auto begin = Clock::now();
    for (int i = 0; i < count; ++i) collectives.run(request, timeout);
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  repeat(2);
  // All ranks take the count of the slowest, by a reduction of their own.
  float count = static_cast<float>(std::max(1.0, kBatchSeconds / (repeat(5) / 5)));
  const Span span{reinterpret_cast<std::byte*>(&count), sizeof(count)};
  const LibraryReduction least{{transport::DataType::float32, transport::ReductionOperation::min},
                               transport.ranks()};
  collectives.run(request_of("all_reduce", least, 0, span, span), timeout);
  std::vector<double> means;
  for (int batch = 0; batch < kBatches; ++batch) {
    means.push_back(repeat(static_cast<int>(count)) / static_cast<int>(count));
  }
  std::nth_element(means.begin(), means.begin() + kBatches / 2, means.end());
  return means[kBatches / 2] * 1e6;
}

void run(int rank, int ranks, bool is_symmetric, const std::vector<std::string>& asked) {
  transport::LiveOptions options;
  options.rendezvous = "live-benchmark-" + std::to_string(getppid());
  options.rank = rank;
  options.ranks = ranks;
  const auto transport = live::connect("shm", options);
  pin(rank);
  Collectives collectives(*transport);
  for (const std::string& each : asked) {
    const std::string name = each.substr(0, each.find(':'));
    const std::uint64_t size = std::stoull(each.substr(each.find(':') + 1));
    std::byte *input, *output;
    transport::Offset first = 0;
    if (is_symmetric) {
      first = transport->allocate(2 * size + 4096);
      input = transport->data(first);
      std::memset(input, 0, 2 * size);
      output = input + size;
    } else {
      input = private_memory(size);
      output = private_memory(size);
    }
    const LibraryReduction sum{{transport::DataType::float32, {}}, ranks};
    const Request request = request_for(name, sum, input, output, size);
    float us = static_cast<float>(run_rank(*transport, collectives, request));
    const Span span{reinterpret_cast<std::byte*>(&us), sizeof(us)};
    collectives.run(request_of("all_reduce", sum, 0, span, span), Time::from_seconds(20));
    if (rank == 0) {
      std::printf("%s %llu %.4f\n", name.c_str(), static_cast<unsigned long long>(size),
                  static_cast<double>(us) / ranks);
      std::fflush(stdout);
    }
    transport->barrier(Time::from_seconds(20));
    if (is_symmetric) {
      transport->release(first);
    } else {
      std::free(input);
      std::free(output);
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    std::fprintf(stderr, "usage: towpath_peer RANKS private|symmetric COLLECTIVE:BYTES...\n");
    return 2;
  }
  const int ranks = std::atoi(arguments[1]);
  const bool is_symmetric = std::strcmp(arguments[2], "symmetric") == 0;
  const std::vector<std::string> asked(arguments + 3, arguments + count);
  for (int rank = 0; rank < ranks; ++rank) {
    if (fork() != 0) continue;
    run(rank, ranks, is_symmetric, asked);
    _exit(0);
  }
  int failed = 0;
  for (int rank = 0, status = 0; rank < ranks; ++rank) failed |= wait(&status) < 0 || status != 0;
  return failed;
}
