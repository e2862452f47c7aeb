// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "towpath/base/units.hpp"

// A described cluster of small processors on a ring, which send each other packets from user space:
// what its cores, packetizers, mailboxes and links cost. The YAML side, with the source of each
// figure, is python/towpath/specs/mailbox_cluster_spec.py.

namespace towpath::machine {

// What the library on a core costs, in cycles of the core's clock. Stores and loads of the
// packetizer and the mailbox bypass the caches; a store is acknowledged at once.
struct MailboxSoftwareFigures {
  int store_cycles = 1;
  int load_cycles = 1;  // with the test or the store that uses it
  int descriptor_words = 1;
  int send_cycles = 0;     // from the call until its first store
  int receive_cycles = 0;  // from the call until its first load
  int poll_cycles = 1;     // from one poll to the next; at least load_cycles
  int release_cycles = 0;  // taking a packet that has been read out of its mailbox
  int cycle_counter_cycles = 0;
  int responder_cycles = 0;  // of a program that answers: from a message to its call of send

  bool operator==(const MailboxSoftwareFigures&) const = default;
};

// The page walks of stores to an array in memory.
struct PageWalkFigures {
  double probability = 0;  // of a store
  int cycles_min = 0;
  int cycles_max = 0;  // all from the least to the most are equally likely

  bool operator==(const PageWalkFigures&) const = default;
};

// What takes the core away from its process, again and again. Intervals, from the end of one to the
// beginning of the next, are exponentially distributed, durations uniformly.
struct InterruptionFigures {
  std::string name;
  Time interval_mean;
  Time duration_min;
  Time duration_max;

  bool operator==(const InterruptionFigures&) const = default;
};

// In cycles of the interconnect's clock.
struct PacketizerFigures {
  int contexts = 1;          // of a node
  int formation_cycles = 1;  // from the last store until the header leaves; one packet at a time
  int payload_bytes_max = 8;
  int packets_unacknowledged_max = 1;  // of a context

  bool operator==(const PacketizerFigures&) const = default;
};

struct RingFigures {
  Rate line_rate;
  int header_bytes = 8;  // of every packet; an acknowledgement is nothing else
  Time hop_latency;      // of a header, from one node to the next; the payload follows it

  bool operator==(const RingFigures&) const = default;
};

// In cycles of the interconnect's clock.
struct MailboxFigures {
  int depth_packets = 1;   // of each mailbox; there is one per context
  int enqueue_cycles = 0;  // from a header's arrival until a load sees the packet, which is whole
  bool drops_when_full = false;  // and tells the sender; otherwise packets wait, and their senders

  bool operator==(const MailboxFigures&) const = default;
};

// Immutable; made by build_mailbox_cluster.
struct MailboxCluster {
  std::string name;
  int nodes = 2;
  int cores_per_node = 1;
  Frequency core_clock;
  Frequency interconnect_clock;
  int word_bytes = 8;
  MailboxSoftwareFigures software;
  PageWalkFigures page_walks;
  std::vector<InterruptionFigures> interruptions;
  PacketizerFigures packetizer;
  RingFigures ring;
  MailboxFigures mailbox;

  int words_of(int size_bytes) const { return (size_bytes + word_bytes - 1) / word_bytes; }
};

// Throws std::invalid_argument with one sentence for a figure that means nothing.
std::shared_ptr<const MailboxCluster> build_mailbox_cluster(MailboxCluster cluster);

// The same with cores that nothing takes away from their processes.
std::shared_ptr<const MailboxCluster> without_interruptions(const MailboxCluster& cluster);

// Throws std::invalid_argument unless each node has a core and a context for so many, one at least.
void check_programs_per_node(const MailboxCluster& cluster, int programs);

}  // namespace towpath::machine
