// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "towpath/base/protocol.hpp"
#include "towpath/collective/schedule/access.hpp"
#include "towpath/collective/schedule/steps.hpp"

// A collective as data: thread blocks per rank, and steps per thread block, over numbered chunks of
// three buffers. The semantics are MSCCL's, so its XML files are Schedules. docs/schedule.md has
// the full description.
//
//   - A thread block sends to at most one peer and receives from at most one, on one channel.
//     (sender, receiver, channel) is a *connection*, owned by one thread block at either end.
//   - A connection is a FIFO of slots in the receiver's memory: the n-th send matches the n-th
//     receive, and a sender waits while all slots are full (chunking.hpp has the numbers).
//   - Steps of one thread block run in order. Steps of different thread blocks are ordered only by
//     data and by dependencies. A step may wait for one step of another thread block of its rank,
//     which must publish its completion. `nop` steps wait for further ones.
//   - One-sided steps have no FIFO: they load from and store to the memory of any rank, and are
//     ordered by signals. Their semantics are MSCCL++'s, so its plans are Schedules.
//
// A Schedule is plain data. check_structure() checks its form, verify.hpp its result.

namespace towpath::collective {

enum class Collective : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  gather,        // every rank's part to the root
  scatter,       // one part of the root to each rank
  all_to_all_v,  // all_to_all with the chunk counts of Schedule::pattern
  send_recv,     // every rank's array to the rank in Schedule::pattern
  barrier        // all_reduce of a token: the sum is complete when all ranks have arrived
};

// True if one rank has a special role.
constexpr bool has_root(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce ||
         collective == Collective::gather || collective == Collective::scatter;
}

// Reasons for a blocked thread block.
enum class WaitReason : std::uint8_t {
  data,        // the next slice of its receive peer has not arrived
  slot,        // its send peer has not freed the slots for the next slice
  dependency,  // a step of another thread block of its rank is not complete
  launch,      // the awaited rank has not started
  signal,      // a peer has not signalled
  barrier,     // another thread block of its rank has not reached the barrier
  semaphore,   // a semaphore of its rank is empty
  packet,      // its input packets are not written
};

// The other ranks that must have called before a rank begins, on machines whose ranks rendezvous.
enum class Rendezvous : std::uint8_t {
  all,    // all of them, if packets can be multicast to them; otherwise as peers
  peers,  // the ranks that it exchanges data with
};

// The notification of a receiver that data has arrived, on machines that send data in packets.
enum class Notification : std::uint8_t {
  trailing,  // a packet behind the data
  attached,  // round a ring the last packet of the data, once all of it is written; else trailing
  deferred,  // the last packet of the data, which waits for no acknowledgement of a write
};

std::string_view name_of(Collective collective);      // "all_reduce"
std::string_view name_of(Buffer buffer);              // "input"
std::string_view name_of(StepType type);              // "receive_reduce_send"
std::string_view name_of(Protocol protocol);          // "Simple", "LL", "LL128"
std::string_view name_of(Rendezvous rendezvous);      // "all"
std::string_view name_of(Notification notification);  // "trailing"
std::optional<Collective> collective_from(std::string_view name);
std::optional<Protocol> protocol_from(std::string_view name);

struct ThreadBlock {
  std::int32_t send_peer = kNone;
  std::int32_t receive_peer = kNone;
  std::int32_t channel = 0;
  Steps steps;
  std::vector<Access> accesses{};  // one-sided steps only, in order

  const Access& access(const Step& step) const { return accesses[step.source_chunk]; }
  bool operator==(const ThreadBlock&) const = default;
};

struct RankProgram {
  std::uint32_t input_chunks = 0;  // as declared; 0 if the buffer is absent
  std::uint32_t output_chunks = 0;
  std::uint32_t scratch_chunks = 0;
  std::vector<ThreadBlock> blocks;
  std::vector<std::uint32_t> semaphores{};  // initial values

  bool operator==(const RankProgram&) const = default;
};

struct Schedule {
  std::string name;
  Collective collective = Collective::all_reduce;
  Protocol protocol = Protocol::simple;
  std::uint32_t channels = 1;
  std::uint32_t chunks = 1;  // chunks of the whole array (nchunksperloop)
  std::int32_t root = 0;     // broadcast, reduce, gather and scatter only
  bool in_place = false;     // may run with input and output in the same memory
  bool out_of_place = true;
  std::uint64_t size_bytes_min = 0;  // intended sizes; a hint
  std::uint64_t size_bytes_max = 0;  // 0: no limit
  // all_to_all_v: at s * ranks + d, the number of chunks from rank s to rank d. send_recv: at s,
  // the destination of rank s, each rank once. Empty otherwise.
  std::vector<std::uint32_t> pattern;
  std::vector<RankProgram> ranks;
  Rendezvous rendezvous = Rendezvous::all;
  Notification notification = Notification::trailing;

  // One-sided steps only.
  std::vector<std::vector<std::int32_t>> groups{};  // ascending ranks behind one switch
  bool has_double_scratch = false;                  // alternate invocations use separate scratch
  // Copies and direct steps are stages of a pipeline through the switch of a group.
  bool has_switch_stages = false;
  // Each thread block has half of the threads of one, and hands on one slice per transfer.
  bool has_half_blocks = false;
  std::uint64_t scratch_bytes_max = 0;  // a larger scratch is reused piece by piece; 0: no limit

  int rank_count() const { return static_cast<int>(ranks.size()); }
  bool operator==(const Schedule&) const = default;
};

// The number of chunks of a buffer that the collective defines, independent of the declared number.
// The input of all_gather and gather and the output of reduce_scatter and scatter are one part,
// 1/ranks of the array. All other buffers are the array.
std::uint32_t chunks_in(const Schedule& schedule, int rank, Buffer buffer);

// In place, input and output share memory. Maps a chunk of either to a chunk of the larger buffer,
// so that equal numbers mean equal memory.
std::uint32_t shared_chunk(const Schedule& schedule, int rank, Buffer buffer, std::uint32_t chunk);

std::size_t step_count(const Schedule& schedule);

// True if any step is one-sided, or sends or receives.
bool has_one_sided_steps(const Schedule& schedule);
bool has_fifo_steps(const Schedule& schedule);
// True if a step depends on a thread block that sends or receives.
bool follows_fifo(const RankProgram& program, const Step& step);

// Above this number of steps, step-by-step output is not worth its time.
inline constexpr std::size_t kStepsWrittenMax = std::size_t{1} << 26;

// 64 bits that almost surely differ if any field other than the name differs. Above
// kStepsWrittenMax steps, they also depend on the sharing of step lists.
std::uint64_t fingerprint(const Schedule& schedule);

class ScheduleError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// Throws ScheduleError with one sentence that names rank, thread block and step if a peer, channel,
// dependency, chunk range or count is invalid, a step sends or receives without a peer, two thread
// blocks share a connection end, or a connection has only one end. For one-sided steps, see
// check_accesses.
void check_structure(const Schedule& schedule);

}  // namespace towpath::collective
