// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// The reason for which a thread of NCCL polls a word: its rank, channel, peer and slot. Compiled with
// the device code of a release, whose connections it reads.

#include <cstdio>
#include <cstring>

#include "collectives.h"
#include "common.h"
#include "device.h"

namespace {

constexpr const char* kProtocols[] = {"LL", "LL128", "Simple"};

struct Text {
  char* to;
  unsigned long size;
  template <typename... Values>
  void add(const char* format, Values... values) {
    const int count = std::snprintf(to, size, format, values...);
    const unsigned long taken = count < 0 ? 0 : static_cast<unsigned long>(count);
    const unsigned long moved = taken < size ? taken : size - 1;
    to += moved;
    size -= moved;
  }
};

// A line of LL holds the number of its step, plus one, as its flags. The receiver has read as many
// steps as it has posted to the sender.
void add_line(Text& text, const char* line, int slot, unsigned long long step) {
  unsigned flag = 0;
  std::memcpy(&flag, line + 4, sizeof flag);
  const auto own = static_cast<int>(step % NCCL_STEPS);
  text.add(", for step %llu", step);
  if (flag != 0) text.add(", whose line has the flag of step %u", flag - 1);
  if (own == slot) return;
  text.add(": step %llu has slot %d, and its data reaches beyond the end of it", step, own);
  if (flag > step + 1) text.add(", where step %u has overwritten it before it was read", flag - 1);
}

bool add_receive(Text& text, const ncclConnInfo& connection, int peer, const char* address) {
  if (reinterpret_cast<const char*>(connection.tail) == address) {
    text.add("waits for step %llu of rank %d, which has stored %llu steps",
             static_cast<unsigned long long>(connection.step), peer,
             static_cast<unsigned long long>(*connection.tail));
    return true;
  }
  for (int protocol = 0; protocol < NCCL_NUM_PROTOCOLS; ++protocol) {
    const char* const begin = connection.buffs[protocol];
    const int bytes = ncclShmem.comm.buffSizes[protocol];
    if (begin == nullptr || address < begin || address >= begin + bytes) continue;
    const int slot_bytes = bytes / NCCL_STEPS;
    const auto offset = static_cast<int>(address - begin);
    const int slot = offset / slot_bytes;
    text.add("waits for data of rank %d in slot %d (%s), byte %d", peer, slot, kProtocols[protocol],
             offset % slot_bytes);
    if (protocol == NCCL_PROTO_LL && connection.head != nullptr) {
      add_line(text, address, slot, *connection.head);
    }
    return true;
  }
  return false;
}

}  // namespace

// `address` is a word that a thread polls. The block's shared memory is the current one. False if the
// word is not part of a connection.
extern "C" bool towpath_nccl_waiting(const void* address, char* text, unsigned long size) {
  Text written{text, size};
  const auto& comm = ncclShmem.comm;
  const auto* const word = static_cast<const char*>(address);
  written.add("rank %d, channel %d ", comm.rank, static_cast<int>(ncclShmem.channelId));
  for (int peer = 0; peer < comm.nRanks; ++peer) {
    ncclDevChannelPeer* const found = ncclShmem.channel.peers[peer];
    if (found == nullptr) continue;
    for (int i = 0; i < NCCL_MAX_CONNS; ++i) {
      if (add_receive(written, found->recv[i], peer, word)) return true;
      if (reinterpret_cast<const char*>(found->send[i].head) != word) continue;
      written.add("waits until rank %d has emptied a slot: it has emptied %llu steps", peer,
                  static_cast<unsigned long long>(*found->send[i].head));
      return true;
    }
  }
  return false;
}
