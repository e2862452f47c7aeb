// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "conformance/simulated_mailboxes.hpp"

#include <exception>

#include "mailbox_bench.hpp"
#include "towpath/transport/simulated/mailbox/mailbox_ranks.hpp"

namespace towpath::conformance {

std::vector<std::string> run_simulated_mailboxes(int ranks, const Body& body) {
  sim::Simulation simulation(7);
  transport::simulated::MailboxRanks all(simulation,
                                         machine::build_mailbox_cluster(mailbox::carvnet(ranks)));
  std::vector<std::string> ended(static_cast<std::size_t>(ranks), "it never finished");
  for (int rank = 0; rank < ranks; ++rank) {
    simulation.spawn("rank " + std::to_string(rank), [&, rank] {
      std::string& mine = ended[static_cast<std::size_t>(rank)];
      try {
        body(all.transport(rank));
        mine.clear();
      } catch (const std::exception& error) {
        mine = error.what();
      }
    });
  }
  simulation.run();
  return ended;
}

}  // namespace towpath::conformance
