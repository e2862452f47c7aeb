// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/machine/parameters.hpp"

// A described cluster of small processors on a ring, which send each other packets from user space:
// what its cores, packetizers, mailboxes and links cost. Every value comes from a spec
// (python/towpath/specs/mailbox_cluster_spec.py), with its source.

namespace towpath::machine {

inline constexpr double kNodesMax = 1024;
inline constexpr Allowed kPacketBytes = between(1, kCountMax);

// What the library on a core costs, in cycles of the core's clock. Stores and loads of the
// packetizer and the mailbox bypass the caches; a store is acknowledged at once.
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

inline constexpr Parameter<MailboxSoftwareParameters> kMailboxSoftwareParameters[] = {
    {"store_cycles", &MailboxSoftwareParameters::store_cycles, kAnyCycles, "a store"},
    {"load_cycles", &MailboxSoftwareParameters::load_cycles, kSomeCycles,
     "a load with the test or the store that uses it"},
    {"descriptor_words", &MailboxSoftwareParameters::descriptor_words, kCount,
     "words of a packet's descriptor"},
    {"send_cycles", &MailboxSoftwareParameters::send_cycles, kAnyCycles,
     "from a call of send until its first store"},
    {"receive_cycles", &MailboxSoftwareParameters::receive_cycles, kAnyCycles,
     "from a call of receive until its first load"},
    {"poll_cycles", &MailboxSoftwareParameters::poll_cycles, kSomeCycles,
     "from one poll to the next"},
    {"release_cycles", &MailboxSoftwareParameters::release_cycles, kAnyCycles,
     "removing a packet from its mailbox after it was read"},
    {"cycle_counter_cycles", &MailboxSoftwareParameters::cycle_counter_cycles, kAnyCycles,
     "reading the cycle counter"},
    {"responder_cycles", &MailboxSoftwareParameters::responder_cycles, kAnyCycles,
     "from a message to the call of send of a program that answers"},
};

// The page walks of stores to an array in memory. All lengths from the least to the most are
// equally likely.
struct PageWalkParameters {
  double probability = 0;
  int cycles_min = 0;
  int cycles_max = 0;

  bool operator==(const PageWalkParameters&) const = default;
};

inline constexpr Parameter<PageWalkParameters> kPageWalkParameters[] = {
    {"probability", &PageWalkParameters::probability, between(0, 1),
     "probability that a store walks pages"},
    {"cycles_min", &PageWalkParameters::cycles_min, kAnyCycles, "shortest walk"},
    {"cycles_max", &PageWalkParameters::cycles_max, kAnyCycles, "longest walk"},
};

// What takes a core away from its process, again and again. Intervals, from the end of one to the
// beginning of the next, are exponentially distributed, durations uniformly.
struct InterruptionParameters {
  std::string name;
  Time interval_mean;
  Time duration_min;
  Time duration_max;

  bool operator==(const InterruptionParameters&) const = default;
};

inline constexpr Parameter<InterruptionParameters> kInterruptionParameters[] = {
    {"interval_mean_us", &InterruptionParameters::interval_mean, between(1e-6, 1e9),
     "mean time between two"},
    {"duration_min_us", &InterruptionParameters::duration_min, between(0, 1e9), "shortest one"},
    {"duration_max_us", &InterruptionParameters::duration_max, between(0, 1e9), "longest one"},
};

// The packetizer of a node, in cycles of the interconnect's clock. It forms one packet at a time.
struct PacketizerParameters {
  int contexts = 0;
  int formation_cycles = 0;
  int payload_bytes_max = 0;
  int packets_unacknowledged_max = 0;

  bool operator==(const PacketizerParameters&) const = default;
};

inline constexpr Parameter<PacketizerParameters> kPacketizerParameters[] = {
    {"contexts", &PacketizerParameters::contexts, kCount, "contexts of a node"},
    {"formation_cycles", &PacketizerParameters::formation_cycles, kAnyCycles,
     "from the last store until the header leaves"},
    {"payload_bytes_max", &PacketizerParameters::payload_bytes_max, kPacketBytes,
     "payload of the longest packet"},
    {"packets_unacknowledged_max", &PacketizerParameters::packets_unacknowledged_max, kCount,
     "unacknowledged packets of a context"},
};

// The links between neighbours. An acknowledgement is a header and nothing else.
struct RingParameters {
  Rate line_rate;
  int header_bytes = 0;
  Time hop_latency;

  bool operator==(const RingParameters&) const = default;
};

inline constexpr Parameter<RingParameters> kRingParameters[] = {
    {"line_rate_gb_per_s", &RingParameters::line_rate, kRateGbPerS, "rate of a link"},
    {"header_bytes", &RingParameters::header_bytes, kPacketBytes, "header of every packet"},
    {"hop_latency_ns", &RingParameters::hop_latency, kDurationNs,
     "time of a header from one node to the next; the payload follows it"},
};

// The mailboxes of a node, one per context, in cycles of the interconnect's clock.
struct MailboxParameters {
  int depth_packets = 0;
  int enqueue_cycles = 0;
  bool drops_when_full = false;

  bool operator==(const MailboxParameters&) const = default;
};

inline constexpr Parameter<MailboxParameters> kMailboxParameters[] = {
    {"depth_packets", &MailboxParameters::depth_packets, kCount, "packets that a mailbox holds"},
    {"enqueue_cycles", &MailboxParameters::enqueue_cycles, kAnyCycles,
     "from a header's arrival until a load sees the whole packet"},
    {"drops_when_full", &MailboxParameters::drops_when_full, kYesOrNo,
     "a full mailbox drops packets and tells the sender; otherwise packets and their senders wait",
     Form::flag},
};

// Immutable; made by build_mailbox_cluster.
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

inline constexpr Parameter<MailboxCluster> kMailboxClusterParameters[] = {
    {"nodes", &MailboxCluster::nodes, between(1, kNodesMax), "nodes on the ring"},
    {"cores_per_node", &MailboxCluster::cores_per_node, between(1, 1024), "cores of a node"},
    {"core_clock_mhz", &MailboxCluster::core_clock, between(1, kClockMaxMhz), "clock of the cores"},
    {"interconnect_clock_mhz", &MailboxCluster::interconnect_clock, between(1, kClockMaxMhz),
     "clock of packetizers and mailboxes"},
    {"word_bytes", &MailboxCluster::word_bytes, power_of_two(1, 64), "bytes of a store or load"},
};

// Calls visit(name, needed, block, table) for every block of a cluster; its own parameters have no
// name. Lists of blocks are visited as std::vector.
template <AnyConst<MailboxCluster> AnyCluster, typename Visit>
void for_each_block(AnyCluster& cluster, const Visit& visit) {
  const Needed always = Needed::always;
  visit("", always, cluster, kMailboxClusterParameters);
  visit("software", always, cluster.software, kMailboxSoftwareParameters);
  visit("page_walks", always, cluster.page_walks, kPageWalkParameters);
  visit("interruptions", always, cluster.interruptions, kInterruptionParameters);
  visit("packetizer", always, cluster.packetizer, kPacketizerParameters);
  visit("ring", always, cluster.ring, kRingParameters);
  visit("mailbox", always, cluster.mailbox, kMailboxParameters);
}

// Checks a description. Throws DescriptionError (checks.hpp), one sentence on the first thing that
// does not fit.
std::shared_ptr<const MailboxCluster> build_mailbox_cluster(MailboxCluster cluster);

// The same cluster without interruptions.
std::shared_ptr<const MailboxCluster> without_interruptions(const MailboxCluster& cluster);

// Throws std::invalid_argument unless each node has a core and a context for each of that many
// programs; at least one is needed.
void check_programs_per_node(const MailboxCluster& cluster, int programs);

}  // namespace towpath::machine
