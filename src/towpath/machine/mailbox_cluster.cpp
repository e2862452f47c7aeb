// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/mailbox_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "towpath/machine/checks.hpp"

namespace towpath::machine {

namespace {

Checks checks_of(const MailboxCluster& cluster) {
  return Checks(fmt::format("cluster '{}'", cluster.name));
}

// What a parameter must be because of another one.
void check_across(const Checks& checks, const MailboxCluster& cluster) {
  checks.at_least("software.poll_cycles", cluster.software.poll_cycles,
                  cluster.software.load_cycles, "the load_cycles");
  checks.at_least("page_walks.cycles_max", cluster.page_walks.cycles_max,
                  cluster.page_walks.cycles_min, "the cycles_min");
  for (std::size_t i = 0; i < cluster.interruptions.size(); ++i) {
    const InterruptionParameters& interruption = cluster.interruptions[i];
    checks.at_least(fmt::format("interruptions[{}].duration_max_us", i),
                    interruption.duration_max.us(), interruption.duration_min.us(),
                    "the duration_min_us");
  }
  checks.at_least("packetizer.payload_bytes_max", cluster.packetizer.payload_bytes_max,
                  cluster.word_bytes, "the word_bytes");
}

}  // namespace

std::shared_ptr<const MailboxCluster> build_mailbox_cluster(MailboxCluster cluster) {
  const Checks checks = checks_of(cluster);
  for_each_block(cluster, [&](const char* name, Needed, const auto& block, const auto& table) {
    checks.block(name, block, table);
  });
  check_across(checks, cluster);
  return std::make_shared<const MailboxCluster>(std::move(cluster));
}

std::shared_ptr<const MailboxCluster> without_interruptions(const MailboxCluster& cluster) {
  auto quiet = std::make_shared<MailboxCluster>(cluster);
  quiet->interruptions.clear();
  return quiet;
}

void check_programs_per_node(const MailboxCluster& cluster, int programs) {
  const int most = std::min(cluster.cores_per_node, cluster.packetizer.contexts);
  if (programs >= 1 && programs <= most) return;
  checks_of(cluster).fail("{} programs would run on a node; its cores and contexts allow 1 to {}",
                          programs, most);
}

}  // namespace towpath::machine
