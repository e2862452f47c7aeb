// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/chip_cluster.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "chips.hpp"
#include "sentence.hpp"

namespace towpath::machine {
namespace {

using namespace literals;

// Chips with four Ethernet channels each.
std::shared_ptr<const Chip> four_channels() { return build_chip(drawn_chip({"eeee", "wwww"})); }

ChipCluster cluster_of(std::size_t chips, std::vector<EthernetLink> links) {
  ChipCluster cluster;
  cluster.name = "drawn";
  const std::shared_ptr<const Chip> chip = four_channels();
  for (std::size_t number = 0; number < chips; ++number) {
    cluster.chips.push_back({chip, static_cast<int>(number)});
  }
  cluster.links = std::move(links);
  return cluster;
}

// Two links between chips 0 and 1, the first one reserved, and one between 1 and 2.
ChipCluster line_of_three() {
  return cluster_of(3, {{{{{0, 3}, {1, 0}}}, true}, {{{{1, 2}, {0, 1}}}}, {{{{2, 0}, {1, 3}}}}});
}

std::string refusal_of(ChipCluster cluster) {
  return sentence_of([&] { build_chip_cluster(std::move(cluster)); });
}

TEST(ChipCluster, ALinkJoinsItsTwoEndsEitherWay) {
  const auto cluster = build_chip_cluster(line_of_three());
  for (std::size_t number = 0; number < cluster->links.size(); ++number) {
    const auto& [one, other] = cluster->links[number].ends;
    EXPECT_EQ(cluster->connected(one), other);
    EXPECT_EQ(cluster->connected(other), one);
    EXPECT_EQ(cluster->link_at(one), number);
    EXPECT_EQ(cluster->link_at(other), number);
  }
}

TEST(ChipCluster, AChannelWithoutALinkIsConnectedToNothing) {
  const auto cluster = build_chip_cluster(line_of_three());
  EXPECT_EQ(cluster->connected({0, 0}), std::nullopt);
  EXPECT_EQ(cluster->link_at({2, 3}), std::nullopt);
}

TEST(ChipCluster, ReservedLinksAreActiveOnlyForThoseWhoAsk) {
  const auto cluster = build_chip_cluster(line_of_three());
  EXPECT_EQ(cluster->active_channels(0, true), (std::vector<int>{1, 3}));
  EXPECT_EQ(cluster->active_channels(0, false), (std::vector<int>{1}));
  EXPECT_EQ(cluster->active_channels(1, true), (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(cluster->active_channels(1, false), (std::vector<int>{2, 3}));
}

TEST(ChipCluster, ChannelsToAChipAreThoseWhoseLinkEndsThere) {
  const auto cluster = build_chip_cluster(line_of_three());
  EXPECT_EQ(cluster->channels_to(1, 0, true), (std::vector<int>{0, 2}));
  EXPECT_EQ(cluster->channels_to(1, 0, false), (std::vector<int>{2}));
  EXPECT_EQ(cluster->channels_to(1, 2, false), (std::vector<int>{3}));
  EXPECT_TRUE(cluster->channels_to(0, 2, true).empty());
  EXPECT_EQ(sentence_of([&] { cluster->channels_to(0, 3, true); }),
            "cluster 'drawn': has no chip 3; it has 0 to 2");
}

TEST(ChipCluster, AChannelIsAPlaceInTheListOfTheChip) {
  Chip chip = drawn_chip({"eeww", "eeww"});
  chip.ethernet_cores = {{1, 1}, {0, 0}, {1, 0}, {0, 1}};
  ChipCluster described;
  described.chips = {{build_chip(chip)}};
  const auto cluster = build_chip_cluster(std::move(described));
  EXPECT_EQ(cluster->core_of({0, 0}), (Coordinate{1, 1}));
  EXPECT_EQ(cluster->core_of({0, 3}), (Coordinate{0, 1}));
}

TEST(ChipCluster, AChipMayBeJoinedToItself) {
  const auto cluster = build_chip_cluster(cluster_of(1, {{{{{0, 0}, {0, 1}}}}}));
  EXPECT_EQ(cluster->connected({0, 0}), (EthernetEnd{0, 1}));
  EXPECT_EQ(cluster->channels_to(0, 0, false), (std::vector<int>{0, 1}));
}

TEST(ChipCluster, AsksForChipsAndChannelsThatThereAre) {
  const auto cluster = build_chip_cluster(line_of_three());
  EXPECT_EQ(sentence_of([&] { cluster->connected({3, 0}); }),
            "cluster 'drawn': has no chip 3; it has 0 to 2");
  EXPECT_EQ(sentence_of([&] { cluster->core_of({-1, 0}); }),
            "cluster 'drawn': has no chip -1; it has 0 to 2");
  EXPECT_EQ(sentence_of([&] { cluster->link_at({0, 4}); }),
            "cluster 'drawn': chip 0 has no Ethernet channel 4; it has 0 to 3");
  EXPECT_EQ(sentence_of([&] { cluster->active_channels(7, true); }),
            "cluster 'drawn': has no chip 7; it has 0 to 2");
}

TEST(ChipCluster, RefusesWhatCannotBeJoined) {
  EXPECT_EQ(refusal_of(cluster_of(0, {})), "cluster 'drawn': has no chips; it needs at least one");
  EXPECT_EQ(refusal_of(cluster_of(2, {{{{{0, 0}, {2, 0}}}}})),
            "cluster 'drawn': links[0] joins channel 0 of chip 2: has no chip 2; it has 0 to 1");
  EXPECT_EQ(
      refusal_of(cluster_of(2, {{{{{0, 0}, {1, -1}}}}})),
      "cluster 'drawn': links[0] joins channel -1 of chip 1: chip 1 has no Ethernet channel -1; "
      "it has 0 to 3");
  EXPECT_EQ(refusal_of(cluster_of(2, {{{{{0, 2}, {0, 2}}}}})),
            "cluster 'drawn': links[0] joins channel 2 of chip 0 to itself; a link must have two "
            "different ends");
  EXPECT_EQ(refusal_of(cluster_of(2, {{{{{0, 0}, {1, 0}}}}, {{{{1, 1}, {0, 0}}}}})),
            "cluster 'drawn': links[1] joins channel 0 of chip 0, which already has link 0; a "
            "channel can have only one");
  ChipCluster nothing = cluster_of(2, {});
  nothing.chips[1].chip.reset();
  EXPECT_EQ(refusal_of(std::move(nothing)), "cluster 'drawn': chip 1 is not described");
}

TEST(ChipCluster, AChipWithoutEthernetHasNoChannels) {
  ChipCluster cluster = cluster_of(2, {{{{{0, 0}, {1, 0}}}}});
  cluster.chips[1].chip = build_chip(drawn_chip({"ww"}));
  EXPECT_EQ(
      refusal_of(std::move(cluster)),
      "cluster 'drawn': links[0] joins channel 0 of chip 1: chip 1 has no Ethernet channel 0; "
      "it has none");
}

TEST(ChipCluster, BothEndsOfALinkHaveTheSameLineAndFrames) {
  void (*const changes[])(EthernetParameters&) = {
      [](EthernetParameters& ethernet) { ethernet.line_rate = 25_GBps; },
      [](EthernetParameters& ethernet) { ethernet.delivery_rate = 25_GBps; },
      [](EthernetParameters& ethernet) { ethernet.word_bytes = 32; },
      [](EthernetParameters& ethernet) { ethernet.frame_payload_bytes_max = 1024; },
      [](EthernetParameters& ethernet) { ethernet.frame_overhead_bytes = 51; },
  };
  for (const auto change : changes) {
    Chip chip = drawn_chip({"eeee", "wwww"});
    change(chip.ethernet);
    ChipCluster cluster = cluster_of(2, {{{{{0, 0}, {1, 0}}}}});
    cluster.chips[1].chip = build_chip(chip);
    EXPECT_EQ(refusal_of(std::move(cluster)),
              "cluster 'drawn': links[0] joins a drawn to a drawn; line and delivery rates, frames "
              "and words of both must be the same");
  }
}

TEST(ChipCluster, EndsMayDifferInTheTimeOfACommand) {
  Chip chip = drawn_chip({"eeee", "wwww"});
  chip.ethernet.command_time = 1_us;
  ChipCluster cluster = cluster_of(2, {{{{{0, 0}, {1, 0}}}}});
  cluster.chips[1].chip = build_chip(chip);
  EXPECT_EQ(refusal_of(std::move(cluster)), "");
}

}  // namespace
}  // namespace towpath::machine
