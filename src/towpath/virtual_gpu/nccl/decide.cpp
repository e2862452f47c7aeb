// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Asks NCCL for its decisions: a communicator per rank on virtual GPUs, a process per node and a
// thread per rank. Compiled against the sources of one release, whose tables and channels it
// prints.
//
// usage: decide QUESTION
// A QUESTION is a file (question.hpp). The machine is in $TOWPATH_VIRTUAL_GPU_FILE.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/nccl/question.hpp"
#include "towpath/virtual_gpu/system.hpp"

// The headers of the release.
#include "comm.h"
#include "nccl.h"

using towpath::virtual_gpu::answer;
using towpath::virtual_gpu::Launch;
using towpath::virtual_gpu::Operation;
using towpath::virtual_gpu::Question;
using towpath::virtual_gpu::stop;

namespace {

void check(ncclResult_t result, const std::string& action) {
  if (result == ncclSuccess) return;
  stop("NCCL cannot " + action + ": " + ncclGetErrorString(result) + " (" +
       ncclGetLastError(nullptr) + ")");
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", value);
  return text;
}

// Latency in us and bandwidth in GB/s of each pair that NCCL considers.
void print_costs(const ncclComm& communicator) {
  for (int function = 0; function < NCCL_NUM_FUNCTIONS; ++function) {
    for (int algorithm = 0; algorithm < NCCL_NUM_ALGORITHMS; ++algorithm) {
      for (int protocol = 0; protocol < NCCL_NUM_PROTOCOLS; ++protocol) {
        const float rate = communicator.bandwidths[function][algorithm][protocol];
        if (rate <= 0) continue;
        answer("cost " + std::to_string(function) + " " + std::to_string(algorithm) + " " +
               std::to_string(protocol) + " " +
               number(communicator.latencies[function][algorithm][protocol]) + " " + number(rate));
      }
    }
  }
}

void print_ring(const ncclComm& communicator, int channel) {
  std::string line = "ring " + std::to_string(channel);
  for (int i = 0; i < communicator.nRanks; ++i) {
    line += " " + std::to_string(communicator.channels[channel].ring.userRanks[i]);
  }
  answer(line);
}

void print_tree(const ncclComm& communicator, int channel) {
  const auto& tree = communicator.channels[channel].tree;
  std::string line = "tree " + std::to_string(channel) + " " + std::to_string(communicator.rank) +
                     " " + std::to_string(tree.up);
  for (const int down : tree.down) line += " " + std::to_string(down);
  answer(line);
}

void run(const Operation& operation, ncclComm_t communicator, cudaStream_t stream, void* from,
         void* to) {
  const int ranks = communicator->nRanks;
  const std::size_t whole = operation.size_bytes / sizeof(float);
  const std::size_t part = whole / static_cast<std::size_t>(ranks);
  ncclResult_t result;
  if (operation.collective == "all_reduce") {
    result = ncclAllReduce(from, to, whole, ncclFloat, ncclSum, communicator, stream);
  } else if (operation.collective == "all_gather") {
    result = ncclAllGather(from, to, part, ncclFloat, communicator, stream);
  } else if (operation.collective == "reduce_scatter") {
    result = ncclReduceScatter(from, to, part, ncclFloat, ncclSum, communicator, stream);
  } else if (operation.collective == "broadcast") {
    result = ncclBroadcast(from, to, whole, ncclFloat, 0, communicator, stream);
  } else if (operation.collective == "reduce") {
    result = ncclReduce(from, to, whole, ncclFloat, ncclSum, 0, communicator, stream);
  } else {
    stop("'" + operation.collective + "' is not a collective that NCCL chooses for");
  }
  check(result,
        "run " + operation.collective + " of " + std::to_string(operation.size_bytes) + " bytes");
}

void live_as(int rank, int local, const ncclUniqueId& id, const Question& question) {
  if (cudaSetDevice(local) != cudaSuccess) stop("there is no device " + std::to_string(local));
  const int ranks = question.nodes * question.gpus_per_node;
  ncclComm_t communicator = nullptr;
  check(ncclCommInitRank(&communicator, ranks, id, rank), "make a communicator");
  for (int channel = 0; channel < communicator->nChannels; ++channel) {
    if (rank == 0) print_ring(*communicator, channel);
    print_tree(*communicator, channel);
  }
  if (rank == 0) {
    answer("channels " + std::to_string(communicator->nChannels) + " " +
           std::to_string(communicator->nvlsChannels));
    print_costs(*communicator);
  }
  std::uint64_t largest = 8;
  for (const Operation& operation : question.operations) {
    largest = std::max(largest, operation.size_bytes);
  }
  void *from = nullptr, *to = nullptr;
  if (cudaMalloc(&from, largest) != cudaSuccess || cudaMalloc(&to, largest) != cudaSuccess) {
    stop("there is no room for buffers of " + std::to_string(largest) + " bytes");
  }
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  for (const Operation& operation : question.operations) {
    if (rank == 0) {
      answer("operation " + operation.collective + " " + std::to_string(operation.size_bytes));
    }
    run(operation, communicator, stream, from, to);
  }
}

// Ends the process once it takes more memory than it may. Runs for the life of the process.
void watch_memory(std::uint64_t memory_max_bytes) {
  const auto page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  for (;;) {
    std::ifstream file("/proc/self/statm");
    std::uint64_t whole_pages = 0, resident_pages = 0;
    file >> whole_pages >> resident_pages;
    if (resident_pages * page_bytes > memory_max_bytes) {
      stop("NCCL takes more than " + std::to_string(memory_max_bytes >> 20) +
           " MiB for a node; ask for fewer ranks, or raise TOWPATH_NCCL_MEMORY_MIB");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void write_all(int file, const void* data, std::size_t size) {
  if (write(file, data, size) != static_cast<ssize_t>(size)) stop("cannot write to a node");
}

// The node of this process, after a process for each remaining node was started. They end with it.
int start_nodes(int nodes, ncclUniqueId& id) {
  std::vector<int> inputs;
  const pid_t first = getpid();
  for (int node = 1; node < nodes; ++node) {
    int ends[2];
    if (pipe(ends) != 0) stop("cannot make a pipe for a node");
    const pid_t child = fork();
    if (child < 0) stop("cannot start a process for a node");
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != first) _exit(1);
      close(ends[1]);
      setenv("NCCL_HOSTID", ("towpath-" + std::to_string(node)).c_str(), 1);
      if (read(ends[0], &id, sizeof id) != static_cast<ssize_t>(sizeof id)) _exit(1);
      return node;
    }
    close(ends[0]);
    inputs.push_back(ends[1]);
  }
  setenv("NCCL_HOSTID", "towpath-0", 1);
  check(ncclGetUniqueId(&id), "make an id");
  for (const int input : inputs) write_all(input, &id, sizeof id);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) stop("usage: decide QUESTION");
  const Question question = Question::read(words[1]);
  alarm(static_cast<unsigned>(question.deadline_s));
  // Each node has a log. NCCL opens it at the first line.
  setenv("NCCL_DEBUG_FILE", (question.log_file + ".0").c_str(), 1);
  ncclUniqueId id;
  setenv("TOWPATH_RANKS_PER_NODE", std::to_string(question.gpus_per_node).c_str(), 1);
  const int processes = question.is_replicated ? 1 : question.nodes;
  const int node = start_nodes(processes, id);
  setenv("NCCL_DEBUG_FILE", (question.log_file + "." + std::to_string(node)).c_str(), 1);
  towpath::virtual_gpu::system().observe_launches([node](const Launch& launch) {
    if (node != 0 || launch.device != 0) return;
    answer("launch " + std::to_string(launch.grid.x) + " " + std::to_string(launch.block.x));
  });
  std::thread(watch_memory, question.memory_max_bytes).detach();
  std::vector<std::thread> ranks;
  for (int local = 0; local < question.gpus_per_node; ++local) {
    ranks.emplace_back([&question, &id, node, local] {
      live_as(node * question.gpus_per_node + local, local, id, question);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  // A communicator's threads are not asked to end. They end with the process.
  if (node > 0) _exit(0);
  for (int other = 1; other < processes; ++other) {
    int status = 0;
    if (wait(&status) < 0 || status != 0) stop("a node ended early; see its log");
  }
  answer("end");
  _exit(0);
}
