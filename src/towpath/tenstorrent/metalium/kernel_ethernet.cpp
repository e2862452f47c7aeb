// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/metalium/kernel_runtime.hpp"

// The Ethernet interface of a kernel in source form.

namespace towpath::tenstorrent::metalium {

namespace {

// A command to a queue that the kernel has looked at itself: four stores to registers and their
// values (tt-metal, tunneling.h), counted as gcc 12 compiles them for such a core.
constexpr noc::Cycle kUnsafeSendCycles = 6;

// Waits that have seen nothing at their first look let the base firmware run.
bool yields_after_each_look(int call) {
  switch (call) {
    case kTowpathContextSwitch:
    case kTowpathReadBarrier:
    case kTowpathWriteBarrier:
    case kTowpathWaitForReceiverDone:
    case kTowpathWaitReceiverDone:
    case kTowpathWaitForBytes:
    case kTowpathWaitReceiverAcknowledge:
    case kTowpathSemaphoreWait:
    case kTowpathSemaphoreWaitMin: return true;
    default: return false;
  }
}

}  // namespace

EthernetCore& KernelRuntime::ethernet() {
  if (processor_ != Processor::ethernet) {
    refuse(
        "it calls the Ethernet interface, and runs on a worker; such kernels run on Ethernet "
        "cores");
  }
  return static_cast<EthernetCore&>(core_);
}

// A test of the interface is a poll; anything else ends a series of polls. A turn of the base
// firmware does neither: loops that poll have one in them.
std::uint32_t KernelRuntime::ethernet_call(int call, const std::uint32_t* arguments) {
  const auto channel = static_cast<int>(arguments[0]);
  fetch_code(static_cast<TowpathEthernetCall>(call));
  switch (call) {
    case kTowpathTxqIsBusy:
      looking();
      count_poll(ethernet_memory_map::bytes_sent_at(0));
      return ethernet().eth_txq_is_busy(channel) ? 1 : 0;
    case kTowpathIsSendAcked:
    case kTowpathIsSendDone:
    case kTowpathBytesAreAvailable: {
      looking();
      count_poll(ethernet_memory_map::bytes_sent_at(channel));
      EthernetCore& core = ethernet();
      if (call == kTowpathIsSendAcked) return core.eth_is_receiver_channel_send_acked(channel);
      if (call == kTowpathIsSendDone) return core.eth_is_receiver_channel_send_done(channel);
      return core.eth_bytes_are_available_on_channel(channel);
    }
    case kTowpathRunRouting:
      looking();
      yields_ = true;
      ethernet().run_routing();
      instructions_.clear();
      return 0;
    default: break;
  }
  debt_cycles_ += kSourceCallCycles;
  settled();
  if (call > kTowpathLastWait) return ethernet_channel_call(call, arguments);
  const noc::Cycle begin = core_.cycle();
  const std::uint32_t value = call <= kTowpathWriteBarrier ? ethernet_barrier(call, channel)
                                                           : ethernet_wait(call, arguments);
  if (yields_after_each_look(call) && core_.cycle() - begin > kRoutingFirmwareCycles)
    instructions_.clear();
  return value;
}

std::uint32_t KernelRuntime::ethernet_barrier(int call, int noc) {
  switch (call) {
    case kTowpathReadBarrier: ethernet().eth_noc_async_read_barrier(noc); break;
    case kTowpathWriteBarrier: ethernet().eth_noc_async_write_barrier(noc); break;
    default: ethernet().check_and_context_switch(); break;
  }
  return 0;
}

std::uint32_t KernelRuntime::ethernet_channel_call(int call, const std::uint32_t* arguments) {
  EthernetCore& core = ethernet();
  const std::uint32_t* const a = arguments;
  const auto channel = static_cast<int>(a[0]);
  switch (call) {
    case kTowpathSendPacket: core.eth_send_packet(channel, a[1], a[2], a[3]); break;
    case kTowpathSendPacketUnsafe:
      core.work(kUnsafeSendCycles);
      core.eth_send_packet_bytes_unsafe(channel, a[1], a[2], a[3]);
      break;
    case kTowpathWriteRemoteRegister: core.eth_write_remote_reg(channel, a[1], a[2]); break;
    case kTowpathSendBytesOverChannel:
      core.eth_send_bytes_over_channel(a[0], a[1], a[2], static_cast<int>(a[3]), a[4], a[5]);
      break;
    case kTowpathSendPayloadOnly:
      core.eth_send_bytes_over_channel_payload_only(a[0], a[1], a[2], 0, a[3], a[4]);
      break;
    case kTowpathSendPayloadComplete:
      core.eth_send_payload_complete_signal_over_channel(channel, a[1]);
      break;
    case kTowpathClearSenderAck: core.eth_clear_sender_channel_ack(channel); break;
    case kTowpathChannelAck: core.eth_receiver_channel_ack(channel, a[1]); break;
    default: core.eth_receiver_channel_done(channel); break;
  }
  return 0;
}

std::uint32_t KernelRuntime::ethernet_wait(int call, const std::uint32_t* arguments) {
  EthernetCore& core = ethernet();
  const std::uint32_t* const a = arguments;
  const auto channel = static_cast<int>(a[0]);
  switch (call) {
    case kTowpathSendBytes: core.eth_send_bytes(a[0], a[1], a[2], a[3], a[4]); break;
    case kTowpathWaitForReceiverDone: core.eth_wait_for_receiver_done(); break;
    case kTowpathSendDone: core.eth_send_done(); break;
    case kTowpathWaitReceiverDone: core.eth_wait_receiver_done(); break;
    case kTowpathWaitForBytes: core.eth_wait_for_bytes(a[0]); break;
    case kTowpathReceiverDone: core.eth_receiver_done(); break;
    case kTowpathReceiverAcknowledge: core.eth_receiver_acknowledge(channel); break;
    case kTowpathWaitReceiverAcknowledge: core.eth_wait_receiver_acknowledge(channel); break;
    case kTowpathWaitForChannelDone: core.eth_wait_for_receiver_channel_done(channel); break;
    case kTowpathWaitForBytesOnChannel:
      core.eth_wait_for_bytes_on_channel(a[0], static_cast<int>(a[1]));
      break;
    case kTowpathSemaphoreWait: core.eth_noc_semaphore_wait(a[0], a[1]); break;
    case kTowpathSemaphoreWaitMin: core.eth_noc_semaphore_wait_min(a[0], a[1]); break;
    default: refuse("it calls something that the Ethernet interface does not have");
  }
  return 0;
}

}  // namespace towpath::tenstorrent::metalium
