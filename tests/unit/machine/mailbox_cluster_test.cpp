// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/mailbox_cluster.hpp"

#include <gtest/gtest.h>

#include "sentence.hpp"
#include "towpath/machine/load.hpp"

namespace towpath::machine {
namespace {

using namespace literals;

// The shipped cluster with two interruptions.
MailboxCluster interrupted() {
  MailboxCluster cluster = *load_mailbox_cluster("carvnet");
  cluster.interruptions = {{"timer", 1_ms, 3_us, 3_us}, {"daemon", 1_s, 5_us, 9_us}};
  return cluster;
}

std::string refusal_of(MailboxCluster cluster) {
  return sentence_of([&] { build_mailbox_cluster(std::move(cluster)); });
}

struct Spoilt {
  const char* expected;  // the sentence, behind the cluster's name
  void (*spoil)(MailboxCluster& cluster);
};

class SpoiltMailboxCluster : public testing::TestWithParam<Spoilt> {};

TEST_P(SpoiltMailboxCluster, IsRefusedInOneSentence) {
  MailboxCluster cluster = interrupted();
  GetParam().spoil(cluster);
  EXPECT_EQ(refusal_of(std::move(cluster)),
            std::string("cluster 'carvnet': ") + GetParam().expected);
}

const Spoilt kSpoilt[] = {
    {"nodes is 0; it must be 1 to 1024", [](MailboxCluster& cluster) { cluster.nodes = 0; }},
    {"word_bytes is 12; it must be a power of two, 1 to 64",
     [](MailboxCluster& cluster) { cluster.word_bytes = 12; }},
    {"software.poll_cycles is 4; it must be at least 5, the load_cycles",
     [](MailboxCluster& cluster) { cluster.software.poll_cycles = 4; }},
    {"page_walks.cycles_max is 19; it must be at least 20, the cycles_min",
     [](MailboxCluster& cluster) { cluster.page_walks.cycles_max = 19; }},
    {"interruptions[1].duration_max_us is 4; it must be at least 5, the duration_min_us",
     [](MailboxCluster& cluster) { cluster.interruptions[1].duration_max = 4_us; }},
    {"interruptions[0].interval_mean_us is 0; it must be 1e-06 to 1000000000",
     [](MailboxCluster& cluster) { cluster.interruptions[0].interval_mean = Time(); }},
    {"packetizer.payload_bytes_max is 7; it must be at least 8, the word_bytes",
     [](MailboxCluster& cluster) { cluster.packetizer.payload_bytes_max = 7; }},
};

INSTANTIATE_TEST_SUITE_P(MailboxCluster, SpoiltMailboxCluster, testing::ValuesIn(kSpoilt));

TEST(MailboxCluster, AParameterMayReachTheOneThatBoundsIt) {
  MailboxCluster cluster = interrupted();
  cluster.software.poll_cycles = cluster.software.load_cycles;
  cluster.page_walks.cycles_max = cluster.page_walks.cycles_min;
  cluster.packetizer.payload_bytes_max = cluster.word_bytes;
  EXPECT_EQ(refusal_of(std::move(cluster)), "");
}

TEST(MailboxCluster, ANodeHasACoreAndAContextForEachOfItsPrograms) {
  MailboxCluster cluster = interrupted();
  const auto refusal = [&](int programs) {
    return sentence_of([&] { check_programs_per_node(cluster, programs); });
  };
  cluster.cores_per_node = 3;
  cluster.packetizer.contexts = 5;
  EXPECT_EQ(refusal(3), "");
  EXPECT_EQ(refusal(4),
            "cluster 'carvnet': 4 programs would run on a node; it must have 1 to 3, by its cores "
            "and contexts");
  cluster.packetizer.contexts = 2;
  EXPECT_EQ(refusal(2), "");
  EXPECT_NE(refusal(3), "");
  EXPECT_NE(refusal(0), "");
}

TEST(MailboxCluster, WithoutInterruptionsKeepsEverythingElse) {
  const MailboxCluster cluster = interrupted();
  const auto quiet = without_interruptions(cluster);
  EXPECT_TRUE(quiet->interruptions.empty());
  EXPECT_EQ(quiet->software, cluster.software);
  EXPECT_EQ(quiet->page_walks, cluster.page_walks);
}

TEST(MailboxCluster, ARestOfAWordTakesAWord) {
  const MailboxCluster cluster = interrupted();
  EXPECT_EQ(cluster.words_of(8), 1);
  EXPECT_EQ(cluster.words_of(9), 2);
}

}  // namespace
}  // namespace towpath::machine
