// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/machine.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace towpath::virtual_gpu {
namespace {

const std::string kDevice =
    "name=H100 major=9 minor=0 multiprocessors=132 memory_bytes=1024 shared_bytes=232448 "
    "multicast=1 fabric_handles=0 cluster=none clique=0\n";

std::string problem_of(const std::string& text) {
  try {
    Machine::parse(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

TEST(VirtualMachine, HasTheDevicesOfItsDescriptionInOrder) {
  const Machine machine =
      Machine::parse("# two GPUs\ndriver version=12050\ndevice bus=0000:18:00.0 " + kDevice +
                     "device bus=0000:2a:00.0 " + kDevice);
  ASSERT_EQ(machine.devices().size(), 2);
  EXPECT_EQ(machine.driver_version(), 12050);
  EXPECT_EQ(machine.devices()[1].bus_id, "0000:2a:00.0");
  EXPECT_EQ(machine.devices()[1].multiprocessors, 132);
  EXPECT_EQ(machine.device_at("00000000:2A:00.0"), 1);
  EXPECT_EQ(machine.device_at("0000:2b:00.0"), std::nullopt);
}

TEST(VirtualMachine, PeersReachEachOtherUnlessPairsAreNamed) {
  const std::string devices =
      "device bus=0000:01:00.0 " + kDevice + "device bus=0000:02:00.0 " + kDevice;
  EXPECT_TRUE(Machine::parse(devices).can_access(0, 1));
  EXPECT_FALSE(Machine::parse(devices).can_access(1, 1));
  const Machine pairs = Machine::parse(devices + "peers all=0\npeer device=0 peer=1\n");
  EXPECT_TRUE(pairs.can_access(0, 1));
  EXPECT_FALSE(pairs.can_access(1, 0));
}

TEST(VirtualMachine, NamesTheLineAndTheWordThatIsWrong) {
  EXPECT_EQ(problem_of("device bus=18 " + kDevice),
            "the description of virtual GPUs, line 1: '18' is not a bus id such as 0000:18:00.0");
  EXPECT_EQ(problem_of("driver version=x\n"),
            "the description of virtual GPUs, line 1: 'version' is 'x', not a number");
  EXPECT_EQ(problem_of("\ndriver version=1 color=red\n"),
            "the description of virtual GPUs, line 2: 'color' is not a name of this keyword");
  EXPECT_EQ(problem_of("peer device=0 peer=1\n"),
            "the description of virtual GPUs, line 1: 'device' is 0, but there are 0 devices above "
            "this line");
  EXPECT_EQ(problem_of("cable a=1\n"),
            "the description of virtual GPUs, line 1: 'cable' must be driver, device, nvlink, "
            "adapter, peers or peer");
  EXPECT_EQ(problem_of("driver version=1\n"), "the description of virtual GPUs has no device");
}

}  // namespace
}  // namespace towpath::virtual_gpu
