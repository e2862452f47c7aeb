// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
//
// Usage: mpirun -np 2 --bind-to none mpi_peer ITERATIONS BLOCKS BLOCK_MESSAGES SIZE_BYTES [CORE
// CORE]
#include <mpi.h>

#include <cstdlib>

#include "peer.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if ((argc != 5 && argc != 7) || ranks != 2) MPI_Abort(MPI_COMM_WORLD, 2);
  peer::pin(argv + 5, rank);
  const int iterations = std::atoi(argv[1]), blocks = std::atoi(argv[2]);
  const int block_messages = std::atoi(argv[3]), size_bytes = std::atoi(argv[4]);
  const int other = 1 - rank;
  std::vector<std::byte> ball(static_cast<std::size_t>(size_bytes));
  const auto send = [&] { MPI_Send(ball.data(), size_bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD); };
  const auto receive = [&] {
    MPI_Recv(ball.data(), size_bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  };
  std::vector<double> times_ns;
  peer::Stopwatch stopwatch;
  for (int i = 0; i < peer::kWarmup + iterations; ++i) {
    if (rank == 1) receive();
    send();
    if (rank == 0) receive();
    const double one_way_ns = stopwatch.lap_ns();
    if (i >= peer::kWarmup) times_ns.push_back(one_way_ns);
  }
  double rate = 0;
  std::vector<peer::Clock::time_point> stamps{peer::Clock::now()};
  for (int block = 0; block < blocks; ++block) {
    for (int i = 0; i < block_messages; ++i) rank == 0 ? send() : receive();
    stamps.push_back(peer::Clock::now());
    MPI_Barrier(MPI_COMM_WORLD);  // eager messages are not held back by anything else
  }
  rate = peer::median_rate(stamps, block_messages);
  MPI_Bcast(&rate, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
  if (rank == 0) peer::print_result(std::move(times_ns), rate);
  MPI_Finalize();
  return 0;
}
