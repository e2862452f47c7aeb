// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// What a host program may rely on, on one chip and between chips. Prints a line "name value".
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <tt-metalium/fabric.hpp>
#include <tt-metalium/host_api.hpp>
#include <utility>
#include <vector>

using namespace tt;
using namespace tt::tt_metal;

namespace {

constexpr CoreCoord kCore{0, 0};
constexpr std::uint32_t kWord = 0x30000;
constexpr std::uint32_t kBytes = 1024;

// Writes a page to a buffer of a neighboring chip.
constexpr const char* kSender = R"(
#include "tt_metal/fabric/hw/inc/edm_fabric/edm_fabric_worker_adapters.hpp"
#include "tt_metal/fabric/hw/inc/linear/api.h"
#include "tt_metal/fabric/hw/inc/packet_header_pool.h"
using namespace tt::tt_fabric;
void kernel_main() {
  size_t at = 1;
  auto router = WorkerToFabricEdmSender::build_from_args<ProgrammableCoreType::TENSIX>(at);
  router.open();
  linear::experimental::fabric_unicast_noc_unicast_write(
      &router, PacketHeaderPool::allocate_header(), 0x20000, 1024,
      NocUnicastCommandHeader{get_noc_addr_from_bank_id<true>(0, get_arg_val<uint32_t>(0))}, 1);
  router.close();
}
)";

std::uint32_t word_of(Device* device) {
  std::vector<std::uint32_t> words;
  detail::ReadFromDeviceL1(device, kCore, kWord, 4, words);
  return words.front();
}

void run(Device* device, const std::string& source) {
  Program program = CreateProgram();
  CreateKernelFromString(program, source, kCore, DataMovementConfig{});
  EnqueueProgram(device->command_queue(), program, false);
}

// The second program of a chip doubles what the first one, which takes long, has stored.
void one_after_another(Device* device) {
  const std::string word = "*(volatile uint32_t*)0x30000";
  run(device, "void kernel_main() { riscv_wait(30000); " + word + " = 21; }");
  run(device, "void kernel_main() { " + word + " = 2 * " + word + "; }");
  Finish(device->command_queue());
  std::cout << "sequence " << word_of(device) << "\n";
}

// A chip that is not on PCIe.
void remote(Device* device) {
  detail::WriteToDeviceL1(device, kCore, kWord, std::vector<std::uint32_t>{1234});
  std::cout << "remote " << device->is_mmio_capable() << word_of(device) << "\n";
}

// Chip 4 writes to a buffer of chip 0, which the host has freed or keeps.
void lifetime(Device* sender, Device* owner, bool keeps) {
  std::shared_ptr<Buffer> buffer =
      CreateBuffer({.device = owner, .size = kBytes, .page_size = kBytes});
  Program program = CreateProgram();
  const KernelHandle kernel =
      CreateKernelFromString(program, kSender, kCore, DataMovementConfig{.noc = NOC::NOC_0});
  std::vector<std::uint32_t> arguments = {buffer->address()};
  const auto node = [](Device* device) {
    return tt_fabric::FabricNodeId(tt_fabric::MeshId(0), static_cast<std::uint32_t>(device->id()));
  };
  tt_fabric::append_fabric_connection_rt_args(node(sender), node(owner), 0, program, kCore,
                                              arguments);
  SetRuntimeArgs(program, kernel, kCore, arguments);
  EnqueueProgram(sender->command_queue(), program, false);
  if (!keeps) buffer.reset();
  std::string found = "clean";
  try {
    Finish(sender->command_queue());
  } catch (const std::exception& error) {
    found = error.what();
  }
  std::cout << (keeps ? "kept " : "freed ") << found << "\n";
}

}  // namespace

int main() {
  std::vector<Device*> devices;
  for (std::size_t id = 0; id < GetNumAvailableDevices(); ++id) {
    devices.push_back(CreateDevice(static_cast<chip_id_t>(id)));
  }
  one_after_another(devices[0]);
  remote(devices[4]);
  tt_fabric::SetFabricConfig(tt_fabric::FabricConfig::FABRIC_1D);
  lifetime(devices[4], devices[0], true);
  lifetime(devices[4], devices[0], false);
  return 0;
}
