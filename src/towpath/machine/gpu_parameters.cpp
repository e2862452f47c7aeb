// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/machine.hpp"
#include "towpath/machine/parameters.hpp"

namespace towpath::machine {

namespace {

constexpr Parameter kLinkParameters[] = {
    {"rate_gb_per_s", TOWPATH_MEMBER(Link, rate), kRateGbPerS, "rate of one direction"},
    {"latency_ns", TOWPATH_MEMBER(Link, latency), kDurationNs,
     "from the head of a message in to its head out"},
    {"message_overhead_ns", TOWPATH_MEMBER(Link, message_overhead), kDurationNs,
     "time for which a message holds the link besides its bytes: a network adapter's message rate"},
};

constexpr Parameter kProtocolParameters[] = {
    {"block_rate_gb_per_s", TOWPATH_MEMBER(ProtocolCost, block_rate), kRateGbPerS,
     "payload that one thread block receives, reduces and sends on, and all it does where no other "
     "rate is given"},
    {"send_overhead_ns", TOWPATH_MEMBER(ProtocolCost, send_overhead), kDurationNs,
     "time of a slice that is sent, beyond its bytes"},
    {"receive_overhead_ns", TOWPATH_MEMBER(ProtocolCost, receive_overhead), kDurationNs,
     "from the signal's arrival to its reader going on"},
    {TOWPATH_PARAMETER(ProtocolCost, fences), kYesOrNo,
     "the flag follows only when all stores are acknowledged", Form::flag},
    {"adapter_rate_gb_per_s", TOWPATH_MEMBER(ProtocolCost, adapter_rate), kRateGbPerS,
     "payload that a network adapter sends where a CPU proxy handles it piecemeal; without it, an "
     "adapter sends at the rate of its link",
     Form::optional_quantity},
    {"adapter_overhead_ns", TOWPATH_MEMBER(ProtocolCost, adapter_overhead), kDurationNs,
     "what a transfer to another host takes beyond its links, its bytes and both thread blocks: "
     "the proxies that hand it to one adapter and take it from the other",
     Form::optional_quantity},
    {"copy_rate_gb_per_s", TOWPATH_MEMBER(ProtocolCost, copy_rate), kRateGbPerS,
     "payload that one thread block copies from one place to one other: sends or receives",
     Form::optional_quantity},
    {"forward_rate_gb_per_s", TOWPATH_MEMBER(ProtocolCost, forward_rate), kRateGbPerS,
     "payload that one thread block both stores and sends on", Form::optional_quantity},
    {"start_overhead_ns", TOWPATH_MEMBER(ProtocolCost, start_overhead), kDurationNs,
     "what a library's kernel takes under it, beyond its launch, before its first step",
     Form::optional_quantity},
    {"overlap_ns", TOWPATH_MEMBER(ProtocolCost, overlap), kDurationNs,
     "time of a step's bytes that passes during the step's latency, at most half of their time: "
     "the first turn of the block's loop sends while it receives",
     Form::optional_quantity},
};

constexpr Parameter kGpuParameters[] = {
    {"launch_ns", TOWPATH_MEMBER(GpuCost, launch), kDurationNs,
     "from the host's call to the first step, if every GPU has a process of its own"},
    {"launch_by_threads_ns", TOWPATH_MEMBER(GpuCost, launch_by_threads), kDurationNs,
     "the same, if a process has a thread for each GPU", Form::optional_quantity},
    {"launch_in_graph_ns", TOWPATH_MEMBER(GpuCost, launch_in_graph), kDurationNs,
     "the same, if the kernel is a node of a CUDA graph", Form::optional_quantity},
    {"host_launch_ns", TOWPATH_MEMBER(GpuCost, host_launch), kDurationNs,
     "time of a thread of the host for each launch: one that launches for several GPUs needs it "
     "for each of them",
     Form::optional_quantity},
    {"direct_overhead_ns", TOWPATH_MEMBER(GpuCost, direct_overhead), kDurationNs,
     "from a step that loads from or stores to the memory of other GPUs itself to its first byte; "
     "without it, send_overhead of the protocol",
     Form::optional_quantity},
    {"direct_rate_gb_per_s", TOWPATH_MEMBER(GpuCost, direct_rate), kRateGbPerS,
     "payload that a thread block moves in such a step, all operands together; without it, "
     "block_rate of the protocol",
     Form::optional_quantity},
    {TOWPATH_PARAMETER(GpuCost, in_switch_reduction), kYesOrNo,
     "NVSwitches combine what is loaded from a group of GPUs and copy what is stored to one (NVLS)",
     Form::optional_flag},
    {"in_switch_rate_gb_per_s", TOWPATH_MEMBER(GpuCost, in_switch_rate), kRateGbPerS,
     "rate of a link for what a switch combines or copies, where it is less than the link's own",
     Form::optional_quantity},
    {"in_switch_stage_ns", TOWPATH_MEMBER(GpuCost, in_switch_stage), kDurationNs,
     "time of a stage of a pipeline through the switch for each piece beyond its bytes: the "
     "barrier of its threads, a fence and the flags of all GPUs",
     Form::optional_quantity},
    {"in_switch_copy_rate_gb_per_s", TOWPATH_MEMBER(GpuCost, in_switch_copy_rate), kRateGbPerS,
     "payload that such a stage copies into or out of the memory that the switch reaches",
     Form::optional_quantity},
};

constexpr Parameter kKernelParameters[] = {
    {TOWPATH_PARAMETER(KernelCost, multiprocessors), between(1, 4096), "of a GPU"},
    {TOWPATH_PARAMETER(KernelCost, threads_per_multiprocessor), kCount,
     "threads resident on a multiprocessor at most"},
    {TOWPATH_PARAMETER(KernelCost, blocks_per_multiprocessor), kCount,
     "thread blocks resident on a multiprocessor at most"},
    {TOWPATH_PARAMETER(KernelCost, registers_per_multiprocessor), between(1, 1 << 24),
     "registers of 32 bits that its resident threads share"},
    {TOWPATH_PARAMETER(KernelCost, shared_memory_kib), kCount,
     "shared memory of a multiprocessor, in KiB, that its resident blocks divide"},
    {"memory_latency_ns", TOWPATH_MEMBER(KernelCost, memory_latency), kDurationNs,
     "a load from the GPU's own memory"},
    {"peer_latency_ns", TOWPATH_MEMBER(KernelCost, peer_latency), kDurationNs,
     "a load from the memory of another GPU of the host"},
    {"memory_rate_gb_per_s", TOWPATH_MEMBER(KernelCost, memory_rate), kRateGbPerS,
     "loads and stores of all multiprocessors together"},
    {"multiprocessor_rate_gb_per_s", TOWPATH_MEMBER(KernelCost, multiprocessor_rate), kRateGbPerS,
     "loads, and stores, of a multiprocessor"},
    {"warp_access_ns", TOWPATH_MEMBER(KernelCost, warp_access), kDurationNs,
     "time for which a load or store of 32 threads occupies its multiprocessor, however few bytes "
     "it moves"},
    {TOWPATH_PARAMETER(KernelCost, loads_in_flight), between(1, 1024),
     "loads that a thread of a kernel waits for together"},
    {TOWPATH_PARAMETER(KernelCost, put_loads_in_flight), between(1, 1024),
     "loads of 16 bytes that a thread of the library's own copy loop waits for together"},
    {"thread_put_overhead_ns", TOWPATH_MEMBER(KernelCost, thread_put_overhead), kDurationNs,
     "starting a put or a get by one thread"},
    {"warp_put_overhead_ns", TOWPATH_MEMBER(KernelCost, warp_put_overhead), kDurationNs,
     "starting a put or a get by 32 threads together"},
    {"block_put_overhead_ns", TOWPATH_MEMBER(KernelCost, block_put_overhead), kDurationNs,
     "starting a put or a get by a whole block"},
    {"signal_ns", TOWPATH_MEMBER(KernelCost, signal), kDurationNs,
     "starting a signal or an atomic operation that is not part of a put"},
    {"fence_ns", TOWPATH_MEMBER(KernelCost, fence), kDurationNs,
     "a fence of one warp, on top of waiting for its stores; the library's fences of the warps of "
     "a multiprocessor come one after the other, __threadfence_system of several overlaps"},
    {"poll_ns", TOWPATH_MEMBER(KernelCost, poll), kDurationNs,
     "from the moment at which a word has its value until the threads that wait for it go on"},
    {"barrier_ns", TOWPATH_MEMBER(KernelCost, barrier), kDurationNs,
     "a barrier of the threads of a block"},
    {TOWPATH_PARAMETER(KernelCost, gpu_initiated_adapters), kYesOrNo,
     "threads of the GPU hand their puts to an adapter themselves, instead of to a CPU's proxy",
     Form::flag},
    {"proxy_overhead_ns", TOWPATH_MEMBER(KernelCost, proxy_overhead), kDurationNs,
     "what a put to another host takes beyond its links and its bytes where a proxy hands it over"},
    {"proxy_message_ns", TOWPATH_MEMBER(KernelCost, proxy_message), kDurationNs,
     "time for which a put or a signal occupies the proxy of a GPU"},
    {"initiation_overhead_ns", TOWPATH_MEMBER(KernelCost, initiation_overhead), kDurationNs,
     "what a put to another host takes beyond its links and its bytes where threads hand it over"},
    {TOWPATH_PARAMETER(KernelCost, queue_pairs), between(1, 1024),
     "queue pairs of a GPU for each peer, where threads hand puts over; a proxy has one"},
    {"queue_pair_rate_gb_per_s", TOWPATH_MEMBER(KernelCost, queue_pair_rate), kRateGbPerS,
     "bytes that one queue pair moves"},
    {"queue_pair_message_ns", TOWPATH_MEMBER(KernelCost, queue_pair_message), kDurationNs,
     "time for which a put or a signal occupies its queue pair besides its bytes, where threads "
     "hand it over"},
    {"queue_pair_poll_ns", TOWPATH_MEMBER(KernelCost, queue_pair_poll), kDurationNs,
     "what a fence or quiet of one warp takes for each queue pair of the GPU, which it looks "
     "through one by one"},
};

constexpr std::size_t protocol_at(std::size_t number) {
  return offsetof(GpuCost, protocol) + number * sizeof(ProtocolCost);
}

constexpr BlockTable kGpuCostTables[] = {
    {"", 0, kGpuParameters},
    {"simple", protocol_at(0), kProtocolParameters},
    {"ll", protocol_at(1), kProtocolParameters},
    {"ll128", protocol_at(2), kProtocolParameters},
};

}  // namespace

std::span<const BlockTable> gpu_cost_tables() { return kGpuCostTables; }

std::span<const Parameter> kernel_parameters() { return kKernelParameters; }

std::span<const Parameter> link_parameters() { return kLinkParameters; }

}  // namespace towpath::machine
