// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/core/call_costs.hpp"
#include "towpath/tenstorrent/metalium/kernel_runtime.hpp"

namespace towpath::tenstorrent::metalium {

namespace {

// A command to a queue without a check by the call: four register stores with their values
// (tt-metal, tunneling.h), counted in gcc 12's code for such a core.
constexpr noc::Cycle kUnsafeSendCycles = 6;

// Waits that yield to the base firmware if their first poll fails.
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

EthernetCore& KernelEthernet::core() const {
  if (processor_ != Processor::ethernet) {
    refuse(core_,
           "it calls the Ethernet interface, but runs on a worker; run it on an Ethernet core");
  }
  return static_cast<EthernetCore&>(core_);
}

std::uint32_t KernelEthernet::call(int call, const std::uint32_t* arguments) {
  const auto channel = static_cast<int>(arguments[0]);
  clock_.fetch(static_cast<TowpathEthernetCall>(call));
  switch (call) {
    case kTowpathTxqIsBusy:
    case kTowpathIsSendAcked:
    case kTowpathIsSendDone:
    case kTowpathBytesAreAvailable: return test(call, channel);
    case kTowpathRunRouting:
      memory_.looking();
      memory_.note_yield();
      core().run_routing();
      clock_.firmware_has_run();
      return 0;
    default: break;
  }
  clock_.owe(kSourceCallCycles);
  memory_.settled();
  if (call > kTowpathLastWait) return channel_call(call, arguments);
  const noc::Cycle begin = core_.cycle();
  const std::uint32_t value =
      call <= kTowpathWriteBarrier ? barrier(call, channel) : wait(call, arguments);
  if (yields_after_each_look(call) && core_.cycle() - begin > kRoutingFirmwareCycles) {
    clock_.firmware_has_run();
  }
  return value;
}

std::uint32_t KernelEthernet::test(int call, int channel) {
  memory_.looking();
  const int polled = call == kTowpathTxqIsBusy ? 0 : channel;
  memory_.count_poll(ethernet_memory_map::bytes_sent_at(polled));
  EthernetCore& core = this->core();
  switch (call) {
    case kTowpathTxqIsBusy: return core.eth_txq_is_busy(channel);
    case kTowpathIsSendAcked: return core.eth_is_receiver_channel_send_acked(channel);
    case kTowpathIsSendDone: return core.eth_is_receiver_channel_send_done(channel);
    default: return core.eth_bytes_are_available_on_channel(channel);
  }
}

std::uint32_t KernelEthernet::barrier(int call, int noc) {
  switch (call) {
    case kTowpathReadBarrier: core().eth_noc_async_read_barrier(noc); break;
    case kTowpathWriteBarrier: core().eth_noc_async_write_barrier(noc); break;
    default: core().check_and_context_switch(); break;
  }
  return 0;
}

std::uint32_t KernelEthernet::channel_call(int call, const std::uint32_t* arguments) {
  EthernetCore& core = this->core();
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

std::uint32_t KernelEthernet::wait(int call, const std::uint32_t* arguments) {
  EthernetCore& core = this->core();
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
    default: refuse(core, "it calls a function that the Ethernet interface does not have");
  }
  return 0;
}

}  // namespace towpath::tenstorrent::metalium
