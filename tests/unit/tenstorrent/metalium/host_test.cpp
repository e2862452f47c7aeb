// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <tt-metalium/fabric.hpp>
#include <tt-metalium/host_api.hpp>
#include <vector>

#include "sentence.hpp"
#include "towpath/tenstorrent/hazards/errors.hpp"

// Host programs of TT-Metalium on several chips: kernels that are connected to the fabric, and
// buffers that live while they are used.

namespace tt::tt_metal {
namespace {

using towpath::sentence_of;
using towpath::tenstorrent::HazardError;
using tt_fabric::FabricConfig;
using tt_fabric::FabricNodeId;
using tt_fabric::MeshId;

constexpr std::uint32_t kBytes = 1024;
constexpr std::uint32_t kWord = 0x30000;
constexpr CoreCoord kCore{0, 0};

// Writes to a page of a buffer of another chip, and increments a word of a worker there.
constexpr const char* kSender = R"(
#include "tt_metal/fabric/hw/inc/edm_fabric/edm_fabric_worker_adapters.hpp"
#include "tt_metal/fabric/hw/inc/linear/api.h"
#include "tt_metal/fabric/hw/inc/packet_header_pool.h"
using namespace tt::tt_fabric;
void kernel_main() {
  const uint32_t hops = get_arg_val<uint32_t>(0), address = get_arg_val<uint32_t>(1);
  const uint32_t x = get_arg_val<uint32_t>(2), y = get_arg_val<uint32_t>(3);
  volatile uint32_t* source = reinterpret_cast<volatile uint32_t*>(0x20000);
  for (uint32_t i = 0; i < 256; ++i) source[i] = 1000 + i;
  if (get_arg_val<uint32_t>(4) != 0) {
    noc_semaphore_wait_min(reinterpret_cast<volatile tt_l1_ptr uint32_t*>(0x30000), 1);
  }
  size_t at = 5;
  auto router = WorkerToFabricEdmSender::build_from_args<ProgrammableCoreType::TENSIX>(at);
  router.open();
  auto* header = PacketHeaderPool::allocate_header();
  linear::experimental::fabric_unicast_noc_unicast_write(
      &router, header, 0x20000, 1024,
      NocUnicastCommandHeader{get_noc_addr_from_bank_id<true>(0, address)}, hops);
  header->to_chip_unicast(hops);
  header->to_noc_unicast_atomic_inc({get_noc_addr(x, y, 0x30000), 1, true});
  router.wait_for_empty_write_slot();
  router.send_payload_flush_blocking_from_address((uint32_t)header, sizeof(PACKET_HEADER_TYPE));
  router.close();
}
)";

// Says that it runs, if it is to; waits for the word, if it is to.
constexpr const char* kReceiver = R"(
#include "tt_metal/fabric/hw/inc/edm_fabric/edm_fabric_worker_adapters.hpp"
#include "tt_metal/fabric/hw/inc/packet_header_pool.h"
using namespace tt::tt_fabric;
void kernel_main() {
  const uint32_t hops = get_arg_val<uint32_t>(0), waits = get_arg_val<uint32_t>(1);
  const uint32_t x = get_arg_val<uint32_t>(2), y = get_arg_val<uint32_t>(3);
  if (hops != 0) {
    size_t at = 4;
    auto router = WorkerToFabricEdmSender::build_from_args<ProgrammableCoreType::TENSIX>(at);
    router.open();
    auto* header = PacketHeaderPool::allocate_header();
    header->to_chip_unicast(hops);
    header->to_noc_unicast_atomic_inc({get_noc_addr(x, y, 0x30000), 1, true});
    router.wait_for_empty_write_slot();
    router.send_payload_flush_blocking_from_address((uint32_t)header, sizeof(PACKET_HEADER_TYPE));
    router.close();
  }
  if (waits != 0) {
    noc_semaphore_wait_min(reinterpret_cast<volatile tt_l1_ptr uint32_t*>(0x30000), 1);
  } else {
    riscv_wait(20000);
  }
}
)";

FabricNodeId node(int chip) { return FabricNodeId(MeshId(0), static_cast<std::uint32_t>(chip)); }

// The chips of a T3000; the first two rows of its mesh are chips 4 0 3 7 and 5 1 2 6.
class MetaliumHost : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TOWPATH_MACHINE", "t3000", 1);
    for (int id = 0; id < 8; ++id) devices_.push_back(CreateDevice(id));
  }
  void TearDown() override {
    for (Device* device : devices_) device->close();
    unsetenv("TOWPATH_MACHINE");
  }

  Device* device(int id) { return devices_[static_cast<std::size_t>(id)]; }
  std::shared_ptr<Buffer> buffer(int id) {
    return CreateBuffer({.device = device(id), .size = kBytes, .page_size = kBytes});
  }
  void clear_words() {
    for (Device* device : devices_) {
      detail::WriteToDeviceL1(device, kCore, kWord, std::vector<std::uint32_t>{0});
    }
  }
  std::vector<std::uint32_t> arguments(std::vector<std::uint32_t> first, int from, int to) {
    tt_fabric::append_fabric_connection_rt_args(node(from), node(to), 0, program_, kCore, first);
    return first;
  }
  void enqueue(int id, const char* source, const std::vector<std::uint32_t>& arguments) {
    Program program = CreateProgram();
    const KernelHandle kernel =
        CreateKernelFromString(program, source, kCore, DataMovementConfig{.noc = NOC::NOC_0});
    SetRuntimeArgs(program, kernel, kCore, arguments);
    EnqueueProgram(device(id)->command_queue(), program, false);
  }
  // Chip 4 sends to chip 0 beside it.
  void enqueue_sender(const Buffer& to, bool waits) {
    const CoreCoord there = device(0)->worker_core_from_logical_core(kCore);
    enqueue(4, kSender,
            arguments({1, to.address(), static_cast<std::uint32_t>(there.x),
                       static_cast<std::uint32_t>(there.y), waits ? 1u : 0u},
                      4, 0));
  }
  void enqueue_receiver(bool says, bool waits) {
    const CoreCoord there = device(4)->worker_core_from_logical_core(kCore);
    enqueue(0, kReceiver,
            arguments({says ? 1u : 0u, waits ? 1u : 0u, static_cast<std::uint32_t>(there.x),
                       static_cast<std::uint32_t>(there.y)},
                      0, 4));
  }
  std::string hazard() {
    try {
      for (Device* device : devices_) Finish(device->command_queue());
      return "none";
    } catch (const HazardError& error) {
      return std::string(name_of(error.hazard())) + ": " + error.what();
    }
  }
  void expect_written(const Buffer& buffer) {
    std::vector<std::uint32_t> words(kBytes / 4);
    buffer.read(std::as_writable_bytes(std::span(words)));
    EXPECT_EQ(words.front(), 1000u);
    EXPECT_EQ(words.back(), 1255u);
  }

  // All programs end without a hazard, and the receiver has the bytes.
  void expect_delivered(const Buffer& buffer) {
    EXPECT_EQ(hazard(), "none");
    expect_written(buffer);
  }

  std::vector<Device*> devices_;
  Program program_;
};

TEST_F(MetaliumHost, KernelsSendOverTheFabricAgainAndAgain) {
  tt_fabric::SetFabricConfig(FabricConfig::FABRIC_1D);
  EXPECT_EQ(tt_fabric::GetFabricConfig(), FabricConfig::FABRIC_1D);
  const auto to = buffer(0);
  for (int run = 0; run < 2; ++run) {
    clear_words();
    enqueue_sender(*to, false);
    enqueue_receiver(false, true);
    expect_delivered(*to);
    std::vector<std::uint32_t> nothing(kBytes / 4);
    to->write(std::as_bytes(std::span(nothing)));
  }
}

// Several programs of a chip run while the routers stay.
TEST_F(MetaliumHost, APacketThatWaitsForTheNextProgramArrives) {
  tt_fabric::SetFabricConfig(FabricConfig::FABRIC_1D);
  const auto to = buffer(0);
  enqueue_receiver(false, false);
  enqueue_sender(*to, true);
  enqueue_receiver(true, true);
  expect_delivered(*to);
}

// The second buffer has the bytes of the first one, which a program uses.
TEST_F(MetaliumHost, ABufferThatFollowsAnotherIsUsedWhenItsProgramHasSaidSo) {
  tt_fabric::SetFabricConfig(FabricConfig::FABRIC_1D);
  for (const bool says : {true, false}) {
    clear_words();
    auto first = buffer(0);
    const std::uint32_t address = first->address();
    enqueue_receiver(false, false);
    first.reset();
    const auto second = buffer(0);
    EXPECT_EQ(second->address(), address);
    enqueue_sender(*second, says);
    enqueue_receiver(says, says);
    const std::string found = hazard();
    if (says) {
      EXPECT_EQ(found, "none");
      expect_written(*second);
    } else {
      EXPECT_EQ(found.find("buffer_freed: kernel 'kernel' on core (1, 1) of chip 4"), 0u) << found;
      EXPECT_NE(found.find("buffer 'DRAM at 0x40' is freed"), std::string::npos) << found;
    }
  }
}

// The host waits for the chip before it makes the buffer.
TEST_F(MetaliumHost, ABufferThatTheHostHasWaitedForIsClean) {
  tt_fabric::SetFabricConfig(FabricConfig::FABRIC_1D);
  auto first = buffer(0);
  enqueue_receiver(false, false);
  Finish(device(0)->command_queue());
  first.reset();
  const auto second = buffer(0);
  enqueue_sender(*second, false);
  enqueue_receiver(false, false);
  expect_delivered(*second);
}

TEST_F(MetaliumHost, ABufferThatIsGoneIsFound) {
  tt_fabric::SetFabricConfig(FabricConfig::FABRIC_1D);
  auto to = buffer(0);
  enqueue_sender(*to, false);
  to.reset();
  const std::string found = hazard();
  EXPECT_EQ(found.find("buffer_freed: "), 0u) << found;
}

TEST_F(MetaliumHost, SlowDispatchLaunchesProgramsAndLeavesKernelsAllLinks) {
  const std::size_t fast = device(0)->get_active_ethernet_cores(true).size();
  for (Device* device : devices_) device->close();
  setenv("TT_METAL_SLOW_DISPATCH_MODE", "1", 1);
  for (int id = 0; id < 8; ++id) devices_[static_cast<std::size_t>(id)] = CreateDevice(id);
  unsetenv("TT_METAL_SLOW_DISPATCH_MODE");
  EXPECT_EQ(device(0)->get_active_ethernet_cores(true).size(), fast + 1);
  tt_fabric::SetFabricConfig(FabricConfig::FABRIC_1D);
  const auto to = buffer(0);
  for (int run = 0; run < 2; ++run) {
    clear_words();
    enqueue_sender(*to, false);
    enqueue_receiver(false, true);
    expect_delivered(*to);
  }
}

TEST_F(MetaliumHost, AGlobalSemaphoreKeepsItsValueUntilItIsReset) {
  const GlobalSemaphore semaphore = CreateGlobalSemaphore(device(0), CoreRange(kCore, {1, 0}), 7);
  const auto value = [&](const CoreCoord& core) {
    std::vector<std::uint32_t> words;
    detail::ReadFromDeviceL1(device(0), core, semaphore.address(), 4, words);
    return words.front();
  };
  Program program = CreateProgram();
  const KernelHandle kernel = CreateKernelFromString(
      program,
      "void kernel_main() { noc_semaphore_inc(get_noc_addr(get_arg_val<uint32_t>(0), "
      "get_arg_val<uint32_t>(1), get_arg_val<uint32_t>(2)), 1); noc_async_atomic_barrier(); }",
      kCore, DataMovementConfig{});
  const CoreCoord there = device(0)->worker_core_from_logical_core({1, 0});
  SetRuntimeArgs(program, kernel, kCore,
                 {static_cast<std::uint32_t>(there.x), static_cast<std::uint32_t>(there.y),
                  semaphore.address()});
  EnqueueProgram(device(0)->command_queue(), program, true);
  EXPECT_EQ(value(kCore), 7u);
  EXPECT_EQ(value({1, 0}), 8u);
  semaphore.reset_semaphore_value(0);
  EXPECT_EQ(value({1, 0}), 0u);
  EXPECT_EQ(sentence_of([&] { CreateGlobalSemaphore(device(0), kCore, 0, BufferType::DRAM); }),
            "a global semaphore is in DRAM; it must be in L1");
}

TEST_F(MetaliumHost, ConnectionsAreThoseOfTheMesh) {
  tt_fabric::SetFabricConfig(FabricConfig::FABRIC_2D);
  EXPECT_EQ(tt_fabric::get_tt_fabric_packet_header_size_bytes(), 96u);
  EXPECT_EQ(tt_fabric::get_tt_fabric_max_payload_size_bytes(), 4352u);
  EXPECT_EQ(tt_fabric::get_forwarding_link_indices(node(4), node(0)).size(),
            tt_fabric::get_forwarding_link_indices(node(0), node(4)).size());
  Program program = CreateProgram();
  KernelHandle kernel = CreateKernelFromString(program, kReceiver, kCore, DataMovementConfig{});
  std::vector<std::uint32_t> words;
  tt_fabric::append_routing_plane_connection_manager_rt_args(node(4), {node(0), node(5)}, {0},
                                                             program, kernel, kCore, words);
  // A direction and three words each; columns, chip and mesh; two words of each destination.
  ASSERT_EQ(words.size(), 2u * 4 + 3 + 2 * 2);
  EXPECT_NE(words[0], words[4]);
  EXPECT_EQ(std::vector(words.begin() + 8, words.end()),
            (std::vector<std::uint32_t>{4, 4, 0, 0, 0, 5, 0}));
}

TEST_F(MetaliumHost, WhatCannotBeConnectedIsRefused) {
  std::vector<std::uint32_t> words;
  const auto connect = [&](const FabricNodeId& to, std::uint32_t link) {
    return sentence_of([&] {
      tt_fabric::append_fabric_connection_rt_args(node(4), to, link, program_, kCore, words);
    });
  };
  EXPECT_EQ(connect(node(0), 0), "no fabric runs; start one with SetFabricConfig");
  EXPECT_EQ(sentence_of([] { tt_fabric::SetFabricConfig(FabricConfig::FABRIC_2D_TORUS_X); }),
            "fabric FABRIC_2D_TORUS_X is not modeled; choose FABRIC_1D, FABRIC_1D_RING, FABRIC_2D "
            "or FABRIC_2D_TORUS_XY");
  tt_fabric::SetFabricConfig(FabricConfig::FABRIC_1D);
  EXPECT_EQ(connect(FabricNodeId(MeshId(1), 0), 0),
            "there is no mesh 1; use mesh 0, which has all chips");
  EXPECT_EQ(connect(node(11), 0), "there is no chip 11 in the fabric; it has 8");
  EXPECT_NE(connect(node(0), 9).find("chip 4 has no link 9 toward chip 0"), std::string::npos);
  enqueue_receiver(false, false);
  EXPECT_EQ(sentence_of([] { tt_fabric::SetFabricConfig(FabricConfig::DISABLED); }),
            "the fabric is set while programs are enqueued; set it before, or when they are done");
}

}  // namespace
}  // namespace tt::tt_metal
