// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/simulate/time_only_run.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/base/invariant.hpp"

namespace towpath::simulate {

using namespace collective;
using gpu_links::Flows;

namespace {

constexpr std::uint32_t kNotPublished = ~std::uint32_t{0};
constexpr std::size_t kTrimMin = 64;    // fewer records of steps are not worth a look
constexpr std::size_t kReadersMax = 8;  // more are not worth one either

}  // namespace

TimeOnlyRun::Work TimeOnlyRun::work_of(StepType type) {
  const bool is_combined = (receives(type) && reads_source(type)) || type == StepType::reduce;
  const bool is_stored_and_sent = sends(type) && writes_destination(type);
  if (is_stored_and_sent) return Work::forward;
  return is_combined ? Work::combine : Work::copy;
}

struct alignas(64) TimeOnlyRun::Block {
  // Where it is: iteration > step > transfer > slice.
  Time at;  // all before is done
  State state = State::ready;
  std::uint8_t slice = 0;
  std::uint32_t step = 0;
  const Transfer* transfer = nullptr;
  Step current;
  std::uint32_t first_chunk = 0;
  std::uint32_t chunk_count = 0;
  std::uint64_t iteration = 0;

  // Since the run was made; they only grow.
  std::uint64_t slots_sent = 0;
  std::uint64_t slots_received = 0;
  std::uint64_t slots_returned = 0;
  std::uint32_t slices_sent = 0;  // modulo 2^32, as all numbers of slices
  std::uint32_t slices_received = 0;
  std::uint32_t slices_returned = 0;
  std::uint32_t next_waiting = kNobody;
  std::uint64_t steps_finished = 0;  // of this invocation

  const Step* steps = nullptr;
  const Price* price = nullptr;
  std::uint32_t step_count = 0;
  std::uint32_t number = 0;
  std::uint32_t number_in_rank = 0;
  std::uint32_t send_to = kNobody;       // the block that receives from it
  std::uint32_t receive_from = kNobody;  // the block that sends to it
  std::uint32_t flow = kNobody;          // none to the own rank
  std::uint32_t progress = kNotPublished;
  std::uint32_t send_slots = 0;
  Time delay;         // of its puts, beyond their links and bytes
  Time latency;       // of its route
  Time credit_delay;  // until its slots are back at its receive peer

  // What the last slice took, since most are alike.
  std::uint64_t memo_bytes = ~std::uint64_t{0};
  Work memo_work = Work::copy;
  Time memo_duration;
  const Flows::Train* memo_train = nullptr;
};

bool TimeOnlyRun::can_run(const Plan& plan) {
  const Schedule& schedule = *plan.schedule;
  if (plan.window_bytes > 0 || plan.chunking.fifo().slices_per_transfer > 2) return false;
  return std::all_of(schedule.ranks.begin(), schedule.ranks.end(), [](const RankProgram& program) {
    return program.blocks.size() < transport::kNoTurn;
  });
}

// --- what does not change -----------------------------------------------------------------------

TimeOnlyRun::TimeOnlyRun(transport::simulated::GpuRanks& ranks, std::shared_ptr<const Plan> plan,
                         const Fold& fold)
    : ranks_(ranks),
      plan_(std::move(plan)),
      fold_(fold),
      flows_(ranks.network(), plan_->schedule->protocol) {
  const FifoLimits& fifo = plan_->chunking.fifo();
  const std::uint32_t slices = plan_->slots_max() * fifo.slices_per_transfer;
  marks_shift_ = static_cast<std::uint32_t>(std::bit_width(slices / fifo.slots_per_transfer - 1));
  marks_mask_ = (1u << marks_shift_) - 1;
  make_transfers();

  const int count = simulated_ranks();
  first_block_.push_back(0);
  for (int rank = 0; rank < count; ++rank) {
    const std::size_t blocks = plan_->schedule->ranks[index(rank)].blocks.size();
    first_block_.push_back(first_block_.back() + static_cast<std::uint32_t>(blocks));
  }
  blocks_.resize(first_block_.back());
  arrivals_.resize(blocks_.size() << marks_shift_);
  credits_.resize(blocks_.size() << marks_shift_);
  for (int rank = 0; rank < count; ++rank) add_blocks(rank);
  for (int rank = 0; rank < count; ++rank) connect(rank);
  for (int rank = 0; rank < count; ++rank) find_readers(rank);
  flows_.join();
}

TimeOnlyRun::~TimeOnlyRun() = default;

void TimeOnlyRun::make_transfers() {
  const Chunking& chunking = plan_->chunking;
  for (const std::size_t is_last : {0, 1}) {
    const std::uint64_t iteration = is_last ? chunking.iterations() - 1 : 0;
    for (std::uint32_t count = 0; count <= chunking.chunks_per_transfer(); ++count) {
      const std::uint64_t elements = chunking.nominal(count, iteration);
      local_transfers_[is_last].push_back({1, {SlicePart{0, elements, 0}}});
      Transfer& transfer = transfers_[is_last].emplace_back();
      transfer.slices = chunking.slices(elements);
      for (std::uint32_t i = 0; i < transfer.slices; ++i) {
        const Slice slice = chunking.slice(elements, i);
        transfer.slice[i] = {slice.offset, slice.count, slice.slots};
      }
    }
  }
  const std::uint64_t parts =
      works_on_parts(plan_->schedule->collective) ? plan_->schedule->ranks.size() : 1;
  is_ragged_ = chunking.part_elements() % (plan_->schedule->chunks / parts) != 0;
}

const TimeOnlyRun::Price& TimeOnlyRun::price_of(int rank) {
  const machine::GpuCost& gpu = ranks_.cost_of(rank);
  const auto [at, is_new] = prices_.try_emplace(&gpu);
  Price& price = at->second;
  if (!is_new) return price;
  const Protocol protocol = plan_->schedule->protocol;
  const machine::ProtocolCost& cost = gpu.protocol[static_cast<std::size_t>(protocol)];
  price.rate.fill(cost.block_rate);
  if (cost.copy_rate != Rate()) price.rate[Work::copy] = cost.copy_rate;
  if (cost.forward_rate != Rate()) price.rate[Work::forward] = cost.forward_rate;
  for (int work = 0; work < kWorks; ++work) {
    price.pace[index(work)] = on_wire(price.rate[index(work)], protocol);
  }
  price.send_overhead = cost.send_overhead;
  price.receive_overhead = cost.receive_overhead;
  price.start = gpu.launch + cost.start_overhead;
  return price;
}

void TimeOnlyRun::add_blocks(int rank) {
  const RankProgram& program = plan_->schedule->ranks[index(rank)];
  const Price& price = price_of(rank);
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    Block& block = blocks_[first_block_[index(rank)] + b];
    block.number = static_cast<std::uint32_t>(first_block_[index(rank)] + b);
    block.number_in_rank = static_cast<std::uint32_t>(b);
    const Steps& steps = program.blocks[b].steps;
    block.steps = steps.empty() ? nullptr : &steps.unrotated(0);
    if (is_ragged_) rotated_steps_.push_back(&steps);
    block.step_count = static_cast<std::uint32_t>(program.blocks[b].steps.size());
    block.price = &price;
  }
}

// Both ends of a connection find each other, and its puts their way.
void TimeOnlyRun::connect(int rank) {
  const Protocol protocol = plan_->schedule->protocol;
  const auto& wiring = plan_->wiring.of(rank);
  for (std::size_t b = 0; b < wiring.size(); ++b) {
    Block& block = blocks_[first_block_[index(rank)] + b];
    const ThreadBlock& program = plan_->schedule->ranks[index(rank)].blocks[b];
    if (program.receive_peer != kNone && wiring[b].receive_block != kNone) {
      const int peer = program.receive_peer;
      block.receive_from = block_at(peer, wiring[b].receive_block);
      block.credit_delay = ranks_.route(rank, peer).latency + price_of(peer).receive_overhead;
    }
    if (program.send_peer == kNone || wiring[b].send_block == kNone) continue;
    const int peer = program.send_peer;
    block.send_to = block_at(peer, wiring[b].send_block);
    const gpu_links::Route& route = ranks_.route(rank, peer);
    const machine::ProtocolCost& cost =
        ranks_.cost_of(rank).protocol[static_cast<std::size_t>(protocol)];
    block.send_slots = plan_->slots(!route.leaves_host);
    block.latency = route.latency;
    block.delay = price_of(peer).receive_overhead;
    // As a put of GpuRanks: the payload is acknowledged before its flag leaves.
    if (cost.fences) block.delay += route.latency * 2;
    if (route.leaves_host) block.delay += cost.adapter_overhead;
    if (route.links.empty()) continue;
    block.flow = flows_.add(route, static_cast<std::uint64_t>(rank) << 16 | b);
  }
}

void TimeOnlyRun::find_readers(int rank) {
  const std::uint32_t first = first_block_[index(rank)];
  const std::uint32_t count = first_block_[index(rank) + 1] - first;
  if (count < 2) return;
  std::vector<std::int32_t> last(count);  // step that a block asks for, per block that is asked
  for (std::uint32_t b = 0; b < count; ++b) {
    std::fill(last.begin(), last.end(), kNone);
    for (const Step& step : plan_->schedule->ranks[index(rank)].blocks[b].steps) {
      if (step.depends_on_block == kNone) continue;
      Block& other = blocks_[first + static_cast<std::uint32_t>(step.depends_on_block)];
      if (other.progress == kNotPublished) {
        other.progress = static_cast<std::uint32_t>(progress_.size());
        progress_.emplace_back();
      }
      Progress& progress = progress_[other.progress];
      std::int32_t& last_step = last[index(step.depends_on_block)];
      if (last_step == kNone) progress.readers.push_back({first + b, 0});
      progress.is_kept |= step.depends_on_step < last_step || progress.readers.size() > kReadersMax;
      last_step = step.depends_on_step;
    }
  }
}

// --- an invocation ------------------------------------------------------------------------------

std::optional<Time> TimeOnlyRun::invoke() {
  begin_invocation();
  call_ready();
  for (Flows::Notice notice; flows_.next(notice);) {
    note(notice);
    call_ready();
  }
  now_ = std::max(now_, finished_);
  if (unfinished_ > 0) return std::nullopt;
  return finished_;
}

void TimeOnlyRun::begin_invocation() {
  unfinished_ = blocks_.size();
  for (Progress& progress : progress_) {
    progress.recent.fill({});
    progress.complete.clear();
    for (Progress::Reader& reader : progress.readers) reader.seen = 0;
  }
  finished_ = now_;
  for (std::size_t rank = 0; rank + 1 < first_block_.size(); ++rank) {
    const Time start = now_ + price_of(static_cast<int>(rank)).start;
    finished_ = std::max(finished_, start);
    for (std::uint32_t b = first_block_[rank]; b < first_block_[rank + 1]; ++b) {
      Block& block = blocks_[b];
      block.iteration = 0;
      block.step = 0;
      block.steps_finished = 0;
      block.at = start;
      block.state = State::finished;
      if (block.step_count == 0) {
        --unfinished_;
        continue;
      }
      start_step(block);
      block.state = State::ready;
      ready_.push_back(b);
    }
  }
}

void TimeOnlyRun::call_ready() {
  while (!ready_.empty()) {
    std::swap(ready_, going_);
    for (const std::uint32_t number : going_) advance(blocks_[number]);
    going_.clear();
  }
}

void TimeOnlyRun::advance(Block& block) {
  while (block.state == State::ready && may_start(block) && move(block)) finish_slice(block);
}

// Which chunks it is about matters only where they differ in size.
Step TimeOnlyRun::step_of(const Block& block) const {
  return is_ragged_ ? (*rotated_steps_[block.number])[block.step] : block.steps[block.step];
}

void TimeOnlyRun::start_step(Block& block) {
  block.current = step_of(block);
  block.first_chunk = 0;
  start_transfer(block);
}

void TimeOnlyRun::start_transfer(Block& block) {
  const Chunking& chunking = plan_->chunking;
  const StepType type = block.current.type;
  const bool is_last = block.iteration + 1 == chunking.iterations();
  const bool is_local = !sends(type) && !receives(type);
  block.chunk_count =
      std::min(block.current.count - block.first_chunk, chunking.chunks_per_transfer());
  block.transfer = &(is_local ? local_transfers_ : transfers_)[is_last][block.chunk_count];
  block.slice = 0;
}

bool TimeOnlyRun::may_start(Block& block) {
  const std::uint32_t slots = block.transfer->slice[block.slice].slots;
  if (block.current.depends_on_block != kNone && !dependency_met(block)) return false;
  if (receives(block.current.type) && !slice_arrived(block, slots)) return false;
  return !sends(block.current.type) || slots_free(block, slots);
}

bool TimeOnlyRun::dependency_met(Block& block) {
  const std::uint32_t first = block.number - block.number_in_rank;
  const Block& other = blocks_[first + static_cast<std::uint32_t>(block.current.depends_on_block)];
  Progress& progress = progress_[other.progress];
  const std::uint64_t needed = block.iteration * other.step_count +
                               static_cast<std::uint64_t>(block.current.depends_on_step) + 1;
  const Mark* const complete = find(progress, needed);
  if (complete == nullptr) {
    block.state = State::dependency;
    block.next_waiting = std::exchange(progress.first_waiting, block.number);
    return false;
  }
  block.at = std::max(block.at, complete->time);
  block.current.depends_on_block = kNone;
  if (progress.is_kept) return true;
  for (Progress::Reader& reader : progress.readers) {
    if (reader.block == block.number) reader.seen = needed;
  }
  return true;
}

const TimeOnlyRun::Mark* TimeOnlyRun::find(const Progress& progress, std::uint64_t step) {
  for (const Mark& mark : progress.recent) {
    if (mark.slots == step) return &mark;
  }
  const auto at =
      std::lower_bound(progress.complete.begin(), progress.complete.end(), step,
                       [](const Mark& mark, std::uint64_t n) { return mark.slots < n; });
  return at == progress.complete.end() ? nullptr : &*at;
}

// What arrives has the same place among the slices of its connection at either end. Where that is
// not so, the block waits for ever, and the schedule is run in the plain way.
bool TimeOnlyRun::slice_arrived(Block& block, std::uint32_t slots) {
  const Mark& arrival = mark(arrivals_, block.number, block.slices_received);
  if (arrival.slots != block.slots_received + slots || arrival.time == Flows::kUnknown) {
    block.state = State::data;
    return false;
  }
  block.at = std::max(block.at, arrival.time);
  return true;
}

bool TimeOnlyRun::slots_free(Block& block, std::uint32_t slots) {
  const std::uint64_t after = block.slots_sent + slots;
  while (after > block.send_slots + block.slots_returned) {
    const Mark& credit = mark(credits_, block.number, block.slices_returned);
    if (credit.slots <= block.slots_returned) {
      block.state = State::slots;
      return false;
    }
    block.slots_returned = credit.slots;
    ++block.slices_returned;
    block.at = std::max(block.at, credit.time);
  }
  return true;
}

// Returns whether it is known when the slice is done.
bool TimeOnlyRun::move(Block& block) {
  const StepType type = block.current.type;
  ++slices_;
  if (type == StepType::nop) return true;
  const std::uint64_t size_bytes = size_of_slice(block);
  const Work work = work_of(type);
  if (size_bytes != block.memo_bytes || work != block.memo_work) {
    set_memo(block, size_bytes, work);
  }
  if (sends(type)) return put(block);
  block.at += block.memo_duration;
  return true;
}

void TimeOnlyRun::set_memo(Block& block, std::uint64_t size_bytes, Work work) {
  block.memo_bytes = size_bytes;
  block.memo_work = work;
  block.memo_duration = transfer_time(Bytes(size_bytes), block.price->rate[work]);
  block.memo_train = nullptr;
  if (block.flow == kNobody || size_bytes == 0) return;
  block.memo_train = &flows_.train(
      block.flow, on_wire(Bytes(size_bytes), plan_->schedule->protocol), block.price->pace[work]);
}

bool TimeOnlyRun::put(Block& block) {
  const std::uint32_t slice = block.slices_sent++;
  Mark& arrival = mark(arrivals_, block.send_to, slice);
  arrival.slots = block.slots_sent + block.transfer->slice[block.slice].slots;
  arrival.time = Flows::kUnknown;
  const Time when = block.at + block.price->send_overhead;
  if (block.memo_train == nullptr) {
    // To itself, or empty: no link is loaded.
    const Bytes size = on_wire(Bytes(block.memo_bytes), plan_->schedule->protocol);
    block.at = when + transfer_time(size, block.price->pace[block.memo_work]);
    note_arrival(block, slice, block.at + block.latency);
    return true;
  }
  const std::uint64_t tag = std::uint64_t{block.number} << 32 | slice;
  const Flows::Notice notice = flows_.send(block.flow, *block.memo_train, when, tag);
  if (notice.arrived != Flows::kUnknown) note_arrival(block, slice, notice.arrived);
  if (notice.left == Flows::kUnknown) {
    block.state = State::link;
    return false;
  }
  block.at = notice.left;
  return true;
}

// What does not exist of a ragged chunk in one of the buffers is left out of all.
std::uint64_t TimeOnlyRun::size_of_slice(const Block& block) const {
  const Step& step = block.current;
  std::uint64_t count = block.transfer->slice[block.slice].count;
  if (is_ragged_ && writes_destination(step.type)) {
    count = std::min(count, existing(block, step.destination, step.destination_chunk));
  }
  if (is_ragged_ && reads_source(step.type)) {
    count = std::min(count, existing(block, step.source, step.source_chunk));
  }
  return count * plan_->chunking.element_bytes();
}

std::uint64_t TimeOnlyRun::existing(const Block& block, Buffer buffer, std::uint32_t chunk) const {
  const Range range =
      plan_->chunking.range(buffer, chunk + block.first_chunk, block.chunk_count, block.iteration);
  return range.count - std::min(block.transfer->slice[block.slice].offset, range.count);
}

// Hands the slots back, then goes to the next slice, transfer, step or iteration.
void TimeOnlyRun::finish_slice(Block& block) {
  const std::uint32_t slots = block.transfer->slice[block.slice].slots;
  if (sends(block.current.type)) block.slots_sent += slots;
  if (receives(block.current.type)) {
    block.slots_received += slots;
    Mark& credit = mark(credits_, block.receive_from, block.slices_received++);
    credit = {block.slots_received, block.at + block.credit_delay};
    now_ = std::max(now_, credit.time);
    wake(block.receive_from, State::slots);
  }
  if (++block.slice < block.transfer->slices) return;
  block.first_chunk += block.chunk_count;
  if (block.first_chunk < block.current.count) {
    start_transfer(block);
  } else {
    finish_step(block);
  }
}

void TimeOnlyRun::finish_step(Block& block) {
  ++block.steps_finished;
  if (block.current.publishes && block.progress != kNotPublished) publish(block);
  if (++block.step == block.step_count) {
    block.step = 0;
    ++block.iteration;
  }
  if (block.iteration < plan_->chunking.iterations()) return start_step(block);
  block.state = State::finished;
  finished_ = std::max(finished_, block.at);
  --unfinished_;
}

void TimeOnlyRun::publish(Block& block) {
  Progress& progress = progress_[block.progress];
  if (progress.complete.size() >= progress.trim_at) trim(progress);
  Mark& recent = progress.recent[progress.published++ % progress.recent.size()];
  if (recent.slots != 0) progress.complete.push_back(recent);
  recent = {block.steps_finished, block.at};
  std::uint32_t waiting = std::exchange(progress.first_waiting, kNobody);
  while (waiting != kNobody) {
    const std::uint32_t next = blocks_[waiting].next_waiting;
    wake(waiting, State::dependency);
    waiting = next;
  }
}

// Forgets what no reader asks for any more.
void TimeOnlyRun::trim(Progress& progress) {
  if (progress.is_kept) return;
  std::uint64_t seen = ~std::uint64_t{0};
  for (const Progress::Reader& reader : progress.readers) seen = std::min(seen, reader.seen);
  std::erase_if(progress.complete, [seen](const Mark& mark) { return mark.slots < seen; });
  progress.trim_at = std::max<std::size_t>(kTrimMin, 2 * progress.complete.size());
}

void TimeOnlyRun::note(const Flows::Notice& notice) {
  Block& block = blocks_[notice.tag >> 32];
  if (notice.arrived != Flows::kUnknown) {
    note_arrival(block, static_cast<std::uint32_t>(notice.tag), notice.arrived);
  }
  if (notice.left == Flows::kUnknown) return;
  block.at = notice.left;
  block.state = State::ready;
  finish_slice(block);
  advance(block);
}

void TimeOnlyRun::note_arrival(const Block& from, std::uint32_t slice, Time time) {
  const Time visible = time + from.delay;
  mark(arrivals_, from.send_to, slice).time = visible;
  now_ = std::max(now_, visible);
  wake(from.send_to, State::data);
}

void TimeOnlyRun::wake(std::uint32_t number, State reason) {
  Block& block = blocks_[number];
  if (block.state != reason) return;
  block.state = State::ready;
  ready_.push_back(number);
}

}  // namespace towpath::simulate
