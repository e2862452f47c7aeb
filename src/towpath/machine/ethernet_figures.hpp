// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/base/units.hpp"

namespace towpath::machine {

// The Ethernet subsystem of a tile, and its link. The figures come from a spec, each with its
// source (python/towpath/specs/chip_spec.py).
struct EthernetFigures {
  // --- the transmit queues
  int tx_queues = 2;
  int tx_queues_for_kernels = 1;  // the others are reserved, the first so many are not
  int queue_commands_max = 2;     // taken and not yet on the wire to the last byte
  Time command_time;              // from a command's submission until its queue may take the next
  Rate read_rate;                 // plus its bytes at this rate
  // --- frames
  int word_bytes = 16;  // sizes and addresses are multiples of it
  int frame_payload_bytes_max = 1500;
  int frame_overhead_bytes = 50;
  Rate line_rate;
  // --- the way of a frame: it is on the wire at line rate, is checked as a whole at the far end,
  // is handed on there at line rate once more, and all else takes this long, from the submission
  // of its command on
  Time path_time;
  // --- Go-Back-N; an acknowledgement takes path_time and the time of the shortest frame
  int frames_unacknowledged_max = 64;
  Time resend_timeout;  // from a frame being on the wire until all from it on are sent again
  // --- training
  Time training_time;  // from the later end's routing firmware to the link being up

  bool operator==(const EthernetFigures&) const = default;
};

// What software on an Ethernet core pays per call, in cycles of the chip's clock. What is not here
// costs what it costs on a worker (SoftwareFigures).
struct EthernetSoftwareFigures {
  int send_cycles = 0;              // submitting a command to a queue that is free
  int poll_cycles = 1;              // period in which a wait looks again
  int routing_firmware_cycles = 0;  // run_routing(), when the base firmware has nothing to do
  // --- of a fabric router, besides the calls that it makes
  int fabric_loop_cycles = 1;       // period in which it looks for work
  int fabric_send_cycles = 0;       // choosing a packet to send
  int fabric_receive_cycles = 0;    // deciding where a packet goes that has come
  int fabric_cores = 1;             // 2: one sends, the other receives
  int fabric_payload_bytes = 4096;  // of a packet, as transports use it
  bool operator==(const EthernetSoftwareFigures&) const = default;
};

}  // namespace towpath::machine
