// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
//
// Usage: zeromq_peer ADDRESS ITERATIONS BLOCKS BLOCK_MESSAGES SIZE_BYTES [CORE CORE]
// ADDRESS is ipc://... of a file that does not exist. Sockets are of type PAIR and polled.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include <cerrno>
#include <cstdlib>
#include <stdexcept>

#include "peer.hpp"

namespace {

struct Job {
  const char* address;
  int iterations;
  int blocks;
  int block_messages;
  std::size_t size_bytes;
};

void send(void* socket, std::vector<std::byte>& bytes) {
  if (zmq_send(socket, bytes.data(), bytes.size(), 0) < 0) throw std::runtime_error("zmq_send");
}

void receive(void* socket, std::vector<std::byte>& bytes) {
  while (zmq_recv(socket, bytes.data(), bytes.size(), ZMQ_DONTWAIT) < 0) {
    if (errno != EAGAIN) throw std::runtime_error("zmq_recv");
  }
}

void initiate(void* socket, const Job& job, int result) {
  std::vector<std::byte> ball(job.size_bytes);
  std::vector<double> times_ns;
  peer::Stopwatch stopwatch;
  for (int i = 0; i < peer::kWarmup + job.iterations; ++i) {
    send(socket, ball);
    receive(socket, ball);
    const double one_way_ns = stopwatch.lap_ns();
    if (i >= peer::kWarmup) times_ns.push_back(one_way_ns);
  }
  for (int i = 0; i < job.blocks * job.block_messages; ++i) send(socket, ball);
  double rate = 0;
  if (read(result, &rate, sizeof(rate)) != sizeof(rate)) throw std::runtime_error("the other died");
  peer::print_result(std::move(times_ns), rate);
}

void respond(void* socket, const Job& job, int result) {
  std::vector<std::byte> ball(job.size_bytes);
  for (int i = 0; i < peer::kWarmup + job.iterations; ++i) {
    receive(socket, ball);
    send(socket, ball);
  }
  std::vector<peer::Clock::time_point> stamps;
  for (int block = 0; block < job.blocks; ++block) {
    for (int i = 0; i < job.block_messages; ++i) {
      receive(socket, ball);
      if (stamps.empty()) stamps.push_back(peer::Clock::now());
    }
    stamps.push_back(peer::Clock::now());
  }
  const double rate = peer::median_rate(stamps, job.block_messages);
  if (write(result, &rate, sizeof(rate)) != sizeof(rate)) throw std::runtime_error("write");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6 && argc != 8) return 2;
  const Job job{argv[1], std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]),
                static_cast<std::size_t>(std::atoi(argv[5]))};
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const pid_t child = fork();
  if (child < 0) return 1;
  // Neither side waits for one that has died.
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  } else {
    close(ends[1]);
  }
  peer::pin(argv + 6, child == 0 ? 1 : 0);
  void* const context = zmq_ctx_new();
  void* const socket = zmq_socket(context, ZMQ_PAIR);
  const int outcome = child == 0 ? zmq_connect(socket, job.address) : zmq_bind(socket, job.address);
  if (outcome != 0) return 1;
  if (child == 0) {
    respond(socket, job, ends[1]);
  } else {
    initiate(socket, job, ends[0]);
  }
  zmq_close(socket);
  zmq_ctx_term(context);
  if (child != 0) waitpid(child, nullptr, 0);
  return 0;
}
