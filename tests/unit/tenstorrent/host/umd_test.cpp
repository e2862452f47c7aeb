// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/host/umd.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "sentence.hpp"
#include "towpath/machine/shipped_machines.hpp"

namespace tt::umd {
namespace {

using towpath::sentence_of;

TEST(UmdCluster, BytesReadBackAreThoseWritten) {
  Cluster cluster;
  const CoreCoord core = cluster.get_cores(CoreType::TENSIX)[0];
  const std::vector<std::uint8_t> data(4096, 7);
  std::vector<std::uint8_t> back(4096);
  const double begin_ns = cluster.simulated_time_ns();
  cluster.write_to_device(data.data(), data.size(), 0, core, 0x1000);
  cluster.configure_tlb(0, core, 2 << 20, 0, tlb_data::Strict);
  cluster.read_from_device(back.data(), 0, core, 0x1000, back.size());
  EXPECT_EQ(back, data);
  EXPECT_GT(cluster.simulated_time_ns(), begin_ns + 1000);
}

TEST(UmdCluster, ABufferOfTheHostIsMovedByTheEngine) {
  Cluster cluster(ClusterOptions{.num_host_mem_ch_per_mmio_device = 1});
  const CoreCoord core = cluster.get_cores(CoreType::DRAM)[0];
  const auto buffer = cluster.get_chip(0)->get_sysmem_manager()->allocate_sysmem_buffer(4096);
  static_cast<std::uint8_t*>(buffer->get_buffer_va())[100] = 9;
  buffer->dma_write_to_device(0, buffer->get_buffer_size(), core, 0);
  std::uint8_t found = 0;
  cluster.read_from_device(&found, 0, core, 100, 1);
  EXPECT_EQ(found, 9);
}

TEST(UmdCluster, WithoutMemoryOfTheHostThereIsNoBuffer) {
  Cluster cluster;
  SysmemManager* const manager = cluster.get_chip(0)->get_sysmem_manager();
  EXPECT_NE(sentence_of([&] { manager->allocate_sysmem_buffer(4096); }).find("0 host memory"),
            std::string::npos);
}

TEST(UmdCluster, WrongCallsAreOneSentence) {
  Cluster cluster;
  const CoreCoord core = cluster.get_cores(CoreType::TENSIX)[0];
  EXPECT_NE(sentence_of([&] { cluster.configure_tlb(0, core, 16 << 20, 0); }).find("16 MiB"),
            std::string::npos);
  EXPECT_EQ(sentence_of([&] { cluster.configure_tlb(0, core, 2 << 20, 0, 7); }),
            "ordering is 7; it must be 0 to 2");
  EXPECT_NE(sentence_of([&] { cluster.get_chip(1); }).find("there is no chip 1"),
            std::string::npos);
}

TEST(UmdCluster, TimeThatPassesBetweenCallsIsNotTheirs) {
  Cluster cluster;
  const double begin_ns = cluster.simulated_time_ns();
  cluster.let_time_pass(1e6);
  EXPECT_EQ(cluster.simulated_time_ns(), begin_ns);
}

TEST(UmdCluster, ClocksOfTwoClustersAreTheirOwn) {
  Cluster one;
  Cluster other;
  const CoreCoord core = one.get_cores(CoreType::TENSIX)[0];
  const std::uint64_t word = 1;
  one.write_to_device(&word, sizeof word, 0, core, 0);
  EXPECT_GT(one.simulated_time_ns(), 0);
  EXPECT_EQ(other.simulated_time_ns(), 0);
}

TEST(UmdCluster, AFileOfAWormholeIsAWormhole) {
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / "chip_of_another_name.json";
  const auto machines = towpath::machine::shipped_machines();
  const auto wormhole =
      std::ranges::find(machines, "wormhole", &towpath::machine::ShippedMachine::name);
  ASSERT_NE(wormhole, machines.end());
  std::ofstream(file) << wormhole->json;
  ::setenv("TOWPATH_MACHINE", file.c_str(), 1);
  Cluster cluster;
  ::unsetenv("TOWPATH_MACHINE");
  EXPECT_EQ(cluster.get_cluster_description()->get_arch(), ARCH::WORMHOLE_B0);
  EXPECT_EQ(cluster.get_cores(CoreType::ETH).size(), 16U);
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace tt::umd
