// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "conformance/simulated_mailboxes.hpp"

#include "conformance/simulated_ranks.hpp"
#include "mailbox_bench.hpp"
#include "towpath/transport/simulated/mailbox/mailbox_ranks.hpp"

namespace towpath::conformance {

std::vector<std::string> run_simulated_mailboxes(int ranks, const Body& body) {
  sim::Simulation simulation(7);
  transport::simulated::MailboxRanks all(simulation,
                                         machine::build_mailbox_cluster(mailbox::carvnet(ranks)));
  return run_ranks(simulation, all, ranks, body, [&] { simulation.run(); });
}

}  // namespace towpath::conformance
