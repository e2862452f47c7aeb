// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "towpath/live/shared_call.hpp"

namespace towpath::live {

using Location = Descriptor::Location;

Task run_barrier(SharedCall& call) {
  SharedRank& rank = call.rank;
  const std::uint64_t step = rank.next_step();
  co_await rank.until_free(step);
  rank.publish(step);
  co_await rank.until_arrived(step);
  rank.end(step);
}

Task run_broadcast(SharedCall& call, const Request& request) {
  SharedRank& rank = call.rank;
  const std::uint64_t step = rank.next_step();
  if (call.is_root(request)) {
    const Span& input = request.inputs[0];
    co_await rank.until_free(step);
    call.paths.to_slot(rank.slot_for(step, input.size_bytes), input.data, input.size_bytes);
    rank.publish(step);
  } else {
    const Span& output = request.outputs[0];
    co_await rank.until_arrived(step, request.peer);
    if (output.size_bytes > 0) {
      std::memcpy(output.data, rank.slot_of(request.peer, step, output.size_bytes),
                  output.size_bytes);
    }
  }
  rank.end(step);
}

namespace {

Descriptor describe_input(SharedCall& call, const Request& request) {
  const Span& input = request.inputs[0];
  if (const auto offset = call.rank.heap_offset(input)) {
    return {.location = Location::heap, .first = *offset};
  }
  call.paths.choose(request.kind, input.size_bytes, true);
  if (call.paths.path() != CopyPath::read) return {};
  return {.location = Location::process, .first = reinterpret_cast<std::uintptr_t>(input.data)};
}

Task send_blocks(SharedCall& call, const Request& request) {
  SharedRank& rank = call.rank;
  const Span input = request.inputs[0];
  const Descriptor descriptor = describe_input(call, request);
  const bool is_staged = descriptor.location == Location::stage;
  if (!is_staged) {
    const std::uint64_t step = rank.next_step();
    co_await rank.until_free(step);
    rank.publish(step, descriptor);
    rank.end(step);
  }
  for (std::uint64_t done = 0; is_staged && done < input.size_bytes; done += kBlockBytes) {
    const std::uint64_t step = rank.next_step();
    const std::uint64_t size = std::min(kBlockBytes, input.size_bytes - done);
    co_await rank.until_stage_free(step, size);
    call.paths.to_stage(rank.stage(rank.rank(), rank.take_stage(size, step)), input.data + done,
                        size);
    rank.publish(step, descriptor);
    rank.end(step);
  }
  // A staged root runs ahead of the others, and its time is shorter than the call.
  if (!is_staged || call.paths.is_whole()) co_await rank.until_ended(rank.last_step());
  call.paths.note_end();
}

Task receive_blocks(SharedCall& call, const Request& request) {
  SharedRank& rank = call.rank;
  const Span output = request.outputs[0];
  Location location = Location::stage;
  for (std::uint64_t done = 0; location == Location::stage && done < output.size_bytes;
       done += kBlockBytes) {
    const std::uint64_t step = rank.next_step();
    const std::uint64_t size = std::min(kBlockBytes, output.size_bytes - done);
    co_await rank.until_arrived(step, request.peer);
    const Descriptor descriptor = rank.published(request.peer, step);
    location = descriptor.location;
    if (location == Location::stage) {
      call.paths.to_result(output.data + done,
                           rank.stage(request.peer, rank.take_stage(size, step)), size);
    } else if (location == Location::heap) {
      call.paths.to_result(output.data, rank.heap(request.peer, descriptor.first),
                           output.size_bytes);
    } else {
      rank.read(request.peer, descriptor.first, output);
    }
    rank.end(step);
  }
}

}  // namespace

Task run_large_broadcast(SharedCall& call, const Request& request) {
  return call.is_root(request) ? send_blocks(call, request) : receive_blocks(call, request);
}

}  // namespace towpath::live
