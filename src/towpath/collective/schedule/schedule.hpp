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

// A collective written down: for every rank the thread blocks it runs, for every thread block the
// steps it takes, over numbered chunks of three buffers. The semantics are MSCCL's, so that its XML
// files are Schedules; docs/schedule.md tells them in full.
//
//   - A thread block sends to at most one peer and receives from at most one, on one channel.
//     (sender, receiver, channel) is a *connection*; it belongs to one thread block at either end.
//   - A connection is a FIFO of slots in the receiver's memory: the n-th send meets the n-th
//     receive, and a sender waits while all slots are taken (chunking.hpp has the numbers).
//   - Steps of one thread block run in order; those of different ones are ordered only by data and
//     by dependencies. A step may wait for one step of another thread block of its rank, which must
//     publish its completion; `nop` steps wait for further ones.
//   - One-sided steps have no FIFO: they load from and store to the memory of any rank, and are
//     ordered by signals. Their semantics are those of MSCCL++, so that its plans are Schedules.
//
// A Schedule is plain data. check_structure() says whether it makes sense as a text; verify.hpp
// says whether it computes what it claims.

namespace towpath::collective {

enum class Collective : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  gather,        // every rank's part to the root
  scatter,       // the root's parts, one to each rank
  all_to_all_v,  // as all_to_all, of each part only as many chunks as Schedule::pattern says
  send_recv,     // every rank's array to one rank, as Schedule::pattern says
  barrier        // all_reduce of a token: who has the sum knows that all ranks have come
};

// Whether one rank's part in it differs from that of the others.
constexpr bool has_root(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce ||
         collective == Collective::gather || collective == Collective::scatter;
}

// Why a thread block does not go on.
enum class WaitReason : std::uint8_t {
  data,        // the next slice of its receive peer has not arrived
  slot,        // its send peer has not freed the slots that the next slice takes
  dependency,  // a step of another thread block of its rank is not complete
  launch,      // the rank it waits for has not begun
  signal,      // a peer has not signalled
  barrier,     // another thread block of its rank has not come to the barrier
  semaphore,   // a semaphore of its rank is empty
  packet,      // packets that it reads are not written
};

std::string_view name_of(Collective collective);  // "all_reduce"
std::string_view name_of(Buffer buffer);          // "input"
std::string_view name_of(StepType type);          // "receive_reduce_send"
std::string_view name_of(Protocol protocol);      // "Simple", "LL", "LL128"
std::optional<Collective> collective_from(std::string_view name);
std::optional<Protocol> protocol_from(std::string_view name);

struct ThreadBlock {
  std::int32_t send_peer = kNone;
  std::int32_t receive_peer = kNone;
  std::int32_t channel = 0;
  Steps steps;
  std::vector<Access> accesses{};  // of the one-sided steps, in their order

  const Access& access(const Step& step) const { return accesses[step.source_chunk]; }
  bool operator==(const ThreadBlock&) const = default;
};

struct RankProgram {
  std::uint32_t input_chunks = 0;  // as declared; 0 when the buffer is not named
  std::uint32_t output_chunks = 0;
  std::uint32_t scratch_chunks = 0;
  std::vector<ThreadBlock> blocks;
  std::vector<std::uint32_t> semaphores{};  // what each holds at first

  bool operator==(const RankProgram&) const = default;
};

struct Schedule {
  std::string name;
  Collective collective = Collective::all_reduce;
  Protocol protocol = Protocol::simple;
  std::uint32_t channels = 1;
  std::uint32_t chunks = 1;  // the whole array is this many chunks (nchunksperloop)
  std::int32_t root = 0;     // broadcast, reduce, gather and scatter only
  bool in_place = false;     // may run with input and output in the same memory
  bool out_of_place = true;
  std::uint64_t size_bytes_min = 0;  // the sizes it is meant for; a hint
  std::uint64_t size_bytes_max = 0;  // 0: no limit
  // What goes from which rank to which. all_to_all_v: at s * ranks + d, the number of chunks that
  // rank s sends of its part for rank d. send_recv: at s, the rank that rank s sends to, each rank
  // once. Empty otherwise.
  std::vector<std::uint32_t> pattern;
  std::vector<RankProgram> ranks;

  // One-sided steps only.
  std::vector<std::vector<std::int32_t>> groups{};  // ranks in ascending order, behind one switch
  bool has_double_scratch = false;      // every other invocation has a scratch of its own
  std::uint64_t scratch_bytes_max = 0;  // chunks of a larger scratch are used piece after piece; 0:
                                        // no limit

  int rank_count() const { return static_cast<int>(ranks.size()); }
  bool operator==(const Schedule&) const = default;
};

// How many chunks of a buffer really exist for this collective, whatever is declared: a part is
// 1/ranks of the array for the input of all-gather and gather and for the output of reduce-scatter
// and scatter, the array otherwise.
std::uint32_t chunks_in(const Schedule& schedule, int rank, Buffer buffer);

// In place, input and output share memory. A chunk of either as a chunk of the larger buffer, so
// that equal numbers mean equal memory.
std::uint32_t shared_chunk(const Schedule& schedule, int rank, Buffer buffer, std::uint32_t chunk);

std::size_t step_count(const Schedule& schedule);

// Whether any step is one-sided, or any sends or receives.
bool has_one_sided_steps(const Schedule& schedule);
bool has_fifo_steps(const Schedule& schedule);
// Whether a step waits for one of a thread block that sends or receives.
bool follows_fifo(const RankProgram& program, const Step& step);

// Of schedules with more steps than this no step by step account is worth its time.
inline constexpr std::size_t kStepsWrittenMax = std::size_t{1} << 26;

// 64 bits that differ, almost surely, when any field but the name does. With more steps than
// kStepsWrittenMax, they differ too where thread blocks share other lists of steps.
std::uint64_t fingerprint(const Schedule& schedule);

class ScheduleError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// Throws ScheduleError with one sentence naming rank, thread block and step when a peer, channel,
// dependency, chunk range or count is not possible, a step sends or receives without a peer, two
// thread blocks share a connection end, or a connection has only one end; for one-sided steps, see
// check_accesses.
void check_structure(const Schedule& schedule);

}  // namespace towpath::collective
