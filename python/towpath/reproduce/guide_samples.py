# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The C++ samples of document 000, cut out of its text, and the declarations and host code around
them that the document omits."""

from __future__ import annotations

import re

# Slips of the document, and what is meant.
SLIPS = (
    ("Device *local_device = …;", "Device *local_device = tt::tt_metal::CreateDevice(0);"),
    ("std::find_first_if(", "std::find_if("),
    ("TT_ASSERT(*match_iter", "TT_ASSERT(match_iter"),
    ("[device, target_remote_device_id]", "[device = local_device, target_remote_device_id]"),
    ("return target_remote_device ==", "return target_remote_device_id =="),
    ("channe_sync->", "channel_sync->"),
    (
        "channel_sync = buffer_base_address",
        "channel_sync = (volatile eth_channel_sync_t*)buffer_base_address",
    ),
    ("(volatile eth_channel_sync_t*)buffer_base_address + buffer_size_bytes",
     "(volatile eth_channel_sync_t*)(buffer_base_address + buffer_size_bytes)"),
)  # fmt: skip


def samples(text: str) -> list[str]:
    """The C++ samples in the order of the document, without its slips."""
    found = printed_samples(text)
    for slip, meant in SLIPS:
        found = [sample.replace(slip, meant) for sample in found]
    return found


def printed_samples(text: str) -> list[str]:
    """The C++ samples in the order of the document, as printed."""
    return re.findall(r"```c\+\+\n(.*?)```", text, re.DOTALL)


def sample_kernels(sample: list[str]) -> dict[str, str]:
    """The samples of whole kernels, each with the declarations that it needs."""
    head = '#include "eth/dataflow_api.h"\n'
    merged = (
        "void kernel_main() {\n"
        "uint32_t buffer_base_address = 0x20000, buffer_size_bytes = 4096;\n"
        f"{sample[0]}}}\n"
    )
    handshake = f"void kernel_main() {{ bool is_master_in_handshake = true;\n{sample[3]}}}\n"
    teardown = (
        "void kernel_main() { std::size_t sender_channels_start = 1, num_sender_channels = 2;\n"
        f"{sample[4]}}}\n"
    )
    return {
        "merged": head + merged,
        "handshake": head + handshake,
        "teardown": head + teardown,
        "receiver": receiver(sample),
        "sender": sender(sample),
    }


def _handshake(sample: list[str]) -> str:
    return "void eth_setup_handshake(uint32_t, bool is_master_in_handshake) {\n" + sample[3] + "}\n"


def receiver(sample: list[str]) -> str:
    """The receiver kernel: samples 5 to 12, with its arguments and the loops over channels."""
    master = (
        "for (uint32_t i = 0; i < channels; i++) {\n" + sample[8] + "}\n"
        "for (uint32_t i = 0; i < channels; i++) {\n"
        + sample[9]
        + "eth_receiver_channel_done(i);\n}\n"
    )
    others = (
        "for (uint32_t i = 0; i < channels; i++) {\n"
        "uint32_t channel_buffer_addr = channels_addrs[i];\n"
        "uint32_t channel_sender_sem = channels_sem_addrs[i];\n"
        + sample[10] + sample[11] + sample[12] + "}\n"
    )  # fmt: skip
    ping = (
        "template <bool measure>\n"
        "void roundtrip_ping(const uint32_t* channels_addrs, const uint32_t* channels_sem_addrs,\n"
        "    uint32_t channels, uint32_t page_size, uint32_t eth_noc_x, uint32_t eth_noc_y,\n"
        "    uint32_t eth_channel_sync_ack_addr, bool is_ring_start) {\n"
        "const uint64_t begin = eth_read_wall_clock();\n"
        f"if (is_ring_start) {{\n{master}}} else {{\n{others}}}\n"
        "if (measure && is_ring_start) {\n"
        'DPRINT << "round trip " << uint32_t(eth_read_wall_clock() - begin) << ENDL(); }\n}\n'
    )
    names = (
        "is_ring_start eth_noc_x eth_noc_y init_handshake_noc_x init_handshake_noc_y "
        "init_handshake_addr start_semaphore channels_addr channels_sem_addr "
        "eth_channel_sync_ack_addr num_samples transfer_size handshake_addr"
    ).split()
    arguments = "".join(
        f"uint32_t {name} = get_arg_val<uint32_t>({number});\n" for number, name in enumerate(names)
    )
    main = (
        f"void kernel_main() {{\n{arguments}"
        "const uint32_t max_concurrent_samples = 1;\n"
        "uint32_t channels_addrs[] = {channels_addr};\n"
        "uint32_t channels_sem_addrs[] = {channels_sem_addr};\n"
        "volatile uint32_t* ack = (volatile uint32_t*)eth_channel_sync_ack_addr;\n"
        "ack[0] = 1; ack[1] = 1;\n"
        f"{sample[5]}\n{sample[6]}\n{sample[7]}\n"
        "noc_async_full_barrier();\n}\n"
    )
    return '#include "eth/dataflow_api.h"\n' + _handshake(sample) + ping + main


def sender(sample: list[str]) -> str:
    """The sender kernel: sample 13, with its arguments and its loop."""
    main = (
        "void kernel_main() {\n"
        "uint32_t channels_addr = get_arg_val<uint32_t>(0);\n"
        "uint32_t sem_addr = get_arg_val<uint32_t>(1);\n"
        "uint32_t page_sizes[] = {16, get_arg_val<uint32_t>(2)};\n"
        "uint32_t num_samples = get_arg_val<uint32_t>(3);\n"
        "uint32_t handshake_addr = get_arg_val<uint32_t>(4);\n"
        "volatile uint32_t* channel_sem_addr = (volatile uint32_t*)sem_addr;\n"
        "const uint32_t i = 0;\n"
        "eth_setup_handshake(handshake_addr, true);\n"
        "for (uint32_t trip = 0; trip <= num_samples; trip++) {\n"
        f"uint32_t page_size = page_sizes[trip > 0];\n{sample[13]}}}\n}}\n"
    )
    return '#include "eth/dataflow_api.h"\n' + _handshake(sample) + main


SETUP = """
#include "dataflow_api.h"
void kernel_main() {
  const uint32_t receivers = get_arg_val<uint32_t>(0);
  const uint32_t arrived = get_arg_val<uint32_t>(1);
  noc_semaphore_wait((volatile uint32_t*)arrived, receivers);
  for (uint32_t i = 0; i < receivers; ++i) {
    noc_semaphore_inc(get_noc_addr(get_arg_val<uint32_t>(3 + 2 * i),
        get_arg_val<uint32_t>(4 + 2 * i), get_arg_val<uint32_t>(2)), 1);
  }
  noc_async_atomic_barrier();
}
"""


def host(sample: list[str]) -> str:
    """The host program: samples 1, 2, 14, 15 and 16, and the rest of the last."""
    return (
        HOST_HEAD
        + _find_core(sample)
        + sample[15]
        + sample[16]
        + HOST_TAIL.replace("DEVICE_LIST", sample[14]).replace("CREATE_KERNEL", sample[2])
    )


def _find_core(sample: list[str]) -> str:
    """The second sample, with a line that prints the cores."""
    return (
        f"void find_core() {{\n{sample[1]}"
        'std::printf("found core %zu of %d, %zu of %d\\n", std::size_t(sender_core.y),\n'
        "    int(local_device->id()), std::size_t(receiver_core.y), int(remote_device_id));\n}\n"
    )


HOST_HEAD = """
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>
#include <vector>
#include <tt-metalium/host_api.hpp>
using namespace tt;
using namespace tt::tt_metal;
struct hop_eth_sockets {
  chip_id_t receiver_device_id;
  CoreCoord receiver_core;
  chip_id_t sender_device_id;
  CoreCoord sender_core;
};
bool is_device_pcie_connected(chip_id_t id) {
  return tt::tt_metal::CreateDevice(id)->is_mmio_capable();
}
"""

HOST_TAIL = """
       const uint32_t channels_addr = 0x20000, sem_addr = 0x30000, ack_addr = 0x30010;
       const uint32_t start_addr = 0x30020, arrived_addr = 0x20000, handshake_addr = 0x1a800;
       const CoreCoord setup{0, device_visits[device]++};
       const CoreCoord worker = device->worker_core_from_logical_core(setup);
       const CoreCoord sender = device->ethernet_core_from_logical_core(eth_sender_core);
       const CoreCoord receiver = device->ethernet_core_from_logical_core(eth_receiver_core);
       auto as_word = [](std::size_t value) { return static_cast<uint32_t>(value); };
       auto kernel = [&](const char* file, const CoreCoord& core) {
         return CreateKernel(program, file, core, EthernetConfig{.noc = NOC::NOC_0});
       };
       receiver_kernel_ids.push_back(kernel("receiver.cpp", eth_receiver_core));
       sender_kernel_ids.push_back(kernel("sender.cpp", eth_sender_core));
       SetRuntimeArgs(program, receiver_kernel_ids.back(), eth_receiver_core,
           {i == 0, as_word(sender.x), as_word(sender.y), as_word(worker.x), as_word(worker.y),
            arrived_addr, start_addr, channels_addr, sem_addr, ack_addr, as_word(num_samples),
            as_word(sample_page_size), handshake_addr});
       SetRuntimeArgs(program, sender_kernel_ids.back(), eth_sender_core,
           {channels_addr, sem_addr, as_word(sample_page_size), as_word(num_samples),
            handshake_addr});
       KernelHandle helper = CreateKernel(program, "setup.cpp", setup, DataMovementConfig{});
       SetRuntimeArgs(program, helper, setup, {1, arrived_addr, start_addr,
           as_word(receiver.x), as_word(receiver.y)});
   }
   for (std::size_t i = 0; i < n_hops; i++) {
     Device* device = devices.at(i);
     auto found = device_program_map.find(device);
     if (found == device_program_map.end()) continue;
     EnqueueProgram(device->command_queue(), *found->second, false);
     device_program_map.erase(found);
   }
   Finish(devices.front()->command_queue());
}

void create_kernel_as_in_the_document(Program& program, CoreCoord sender_core) {
  const NOC noc_id = NOC::NOC_0;
  const std::vector<uint32_t> eth_sender_ct_args = {1, 2};
  CREATE_KERNEL
}

int main(int, char** arguments) {
  std::vector<Device*> all_devices;
  for (std::size_t id = 0; id < GetNumAvailableDevices(); ++id) {
    all_devices.push_back(CreateDevice(static_cast<chip_id_t>(id)));
  }
  find_core();
  DEVICE_LIST
  const std::size_t n_hops = std::strtoul(arguments[1], nullptr, 0);
  const std::size_t num_samples = 4;
  const std::vector<Device*> devices = get_device_list(all_devices, n_hops);
  std::vector<Program> programs;
  std::vector<KernelHandle> receivers, senders;
  build_and_run_roundtrip_latency_test(devices, build_eth_sockets_list(devices), num_samples,
      std::strtoul(arguments[2], nullptr, 0), 1, n_hops, programs, receivers, senders);
  return 0;
}
"""
