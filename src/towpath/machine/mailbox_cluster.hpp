// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "towpath/base/units.hpp"

// A described cluster of small processors on a ring that exchange packets from user space: the
// costs of its cores, packetizers, mailboxes and links. Every value comes from a spec
// (python/towpath/specs/mailbox_cluster_spec.py), with its source.

namespace towpath::machine {

// Costs of the library on a core, in cycles of the core's clock. Stores and loads of the packetizer
// and the mailbox bypass the caches. A store is acknowledged immediately.
struct MailboxSoftwareParameters {
  int store_cycles = 0;
  int load_cycles = 0;
  int descriptor_words = 0;
  int send_cycles = 0;
  int receive_cycles = 0;
  int poll_cycles = 0;
  int release_cycles = 0;
  int cycle_counter_cycles = 0;
  int responder_cycles = 0;

  bool operator==(const MailboxSoftwareParameters&) const = default;
};

// The page walks of stores to an array in memory. Lengths are uniformly distributed between the
// bounds.
struct PageWalkParameters {
  double probability = 0;
  int cycles_min = 0;
  int cycles_max = 0;

  bool operator==(const PageWalkParameters&) const = default;
};

// Periodic interruptions of a core's process. Intervals, from the end of one to the start of the
// next, are exponentially distributed, durations uniformly.
struct InterruptionParameters {
  std::string name;
  Time interval_mean;
  Time duration_min;
  Time duration_max;

  bool operator==(const InterruptionParameters&) const = default;
};

// The packetizer of a node, in cycles of the interconnect's clock. It forms one packet at a time.
struct PacketizerParameters {
  int contexts = 0;
  int formation_cycles = 0;
  int payload_bytes_max = 0;
  int packets_unacknowledged_max = 0;

  bool operator==(const PacketizerParameters&) const = default;
};

// The links between neighbors. An acknowledgment is only a header.
struct RingParameters {
  Rate line_rate;
  int header_bytes = 0;
  Time hop_latency;

  bool operator==(const RingParameters&) const = default;
};

// The mailboxes of a node, one per context, in cycles of the interconnect's clock.
struct MailboxParameters {
  int depth_packets = 0;
  int enqueue_cycles = 0;
  bool drops_when_full = false;

  bool operator==(const MailboxParameters&) const = default;
};

// Immutable. Created by build_mailbox_cluster.
struct MailboxCluster {
  std::string name;
  int nodes = 0;
  int cores_per_node = 0;
  Frequency core_clock;
  Frequency interconnect_clock;
  int word_bytes = 0;
  MailboxSoftwareParameters software;
  PageWalkParameters page_walks;
  std::vector<InterruptionParameters> interruptions;
  PacketizerParameters packetizer;
  RingParameters ring;
  MailboxParameters mailbox;

  int words_of(int size_bytes) const { return (size_bytes + word_bytes - 1) / word_bytes; }
};

// Checks a description. Throws DescriptionError (checks.hpp) for the first inconsistency.
std::shared_ptr<const MailboxCluster> build_mailbox_cluster(MailboxCluster cluster);

// The same cluster without interruptions.
std::shared_ptr<const MailboxCluster> without_interruptions(const MailboxCluster& cluster);

// Throws std::invalid_argument unless `programs` is at least 1 and each node has a core and a
// context for each of them.
void check_programs_per_node(const MailboxCluster& cluster, int programs);

}  // namespace towpath::machine
