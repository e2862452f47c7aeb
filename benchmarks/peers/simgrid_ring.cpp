// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// A ring all-reduce on SimGrid: an actor per rank, a link per direction of each wire. Prints the
// simulated microseconds.
//   simgrid_ring RANKS BYTES RATE_GB_PER_S LATENCY_NS

#include <cstdio>
#include <cstdlib>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace sg = simgrid::s4u;

namespace {

std::string host_name(int rank) { return "rank" + std::to_string(rank); }

// 2 (N - 1) steps; in each a chunk goes to the next rank and one comes from the rank before.
void run_rank(int rank, int ranks, double chunk_bytes) {
  sg::Mailbox* next = sg::Mailbox::by_name(host_name((rank + 1) % ranks));
  sg::Mailbox* own = sg::Mailbox::by_name(host_name(rank));
  static int token = 0;
  for (int step = 0; step < 2 * (ranks - 1); ++step) {
    sg::CommPtr sent = next->put_async(&token, static_cast<std::uint64_t>(chunk_bytes));
    own->get<int>();
    sent->wait();
  }
}

}  // namespace

int main(int argc, char** argv) {
  sg::Engine engine(&argc, argv);
  // The plain model: a message takes the latency and its bytes at the rate.
  sg::Engine::set_config("network/model:CM02");
  sg::Engine::set_config("network/TCP-gamma:0");
  sg::Engine::set_config("network/crosstraffic:0");
  const int ranks = std::atoi(argv[1]);
  const double bytes = std::atof(argv[2]);
  const double rate = std::atof(argv[3]) * 1e9;
  const double latency = std::atof(argv[4]) * 1e-9;
  sg::NetZone* zone = sg::create_full_zone("ring");
  std::vector<sg::Host*> hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.push_back(zone->create_host(host_name(rank), 1e9));
  for (int rank = 0; rank < ranks; ++rank) {
    const sg::Link* link =
        zone->create_link("link" + std::to_string(rank), rate)->set_latency(latency)->seal();
    zone->add_route(hosts[static_cast<std::size_t>(rank)]->get_netpoint(),
                    hosts[static_cast<std::size_t>((rank + 1) % ranks)]->get_netpoint(), nullptr,
                    nullptr, {sg::LinkInRoute(link)}, false);
  }
  zone->seal();
  for (int rank = 0; rank < ranks; ++rank) {
    sg::Actor::create(host_name(rank), hosts[static_cast<std::size_t>(rank)], run_rank, rank, ranks,
                      bytes / ranks);
  }
  engine.run();
  std::printf("%.3f\n", sg::Engine::get_clock() * 1e6);
}
