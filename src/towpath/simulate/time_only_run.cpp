// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/simulate/time_only_run.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/base/invariant.hpp"
#include "towpath/simulate/time_only_block.hpp"

namespace towpath::simulate {

using namespace collective;
using gpu_links::Flows;

namespace {

// Partitions that know less of each other are not worth going to and fro.
constexpr Time kLookaheadMin = Time::from_ps(1'000'000);

}  // namespace

TimeOnlyRun::Work TimeOnlyRun::work_of(StepType type) {
  const bool is_combined = (receives(type) && reads_source(type)) || type == StepType::reduce;
  const bool is_stored_and_sent = sends(type) && writes_destination(type);
  if (is_stored_and_sent) return Work::forward;
  return is_combined ? Work::combine : Work::copy;
}

bool TimeOnlyRun::can_run(const Plan& plan) {
  const Schedule& schedule = *plan.schedule;
  if (plan.chunking.fifo().slices_per_transfer > 2 || !has_simple_accesses(plan)) return false;
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
  add_one_sided();
  flows_.join();
  divide();
  choose_lead();
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
  const auto& wiring = plan_->wiring->of(rank);
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
    block.leaves_host = route.leaves_host;
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
      if (last_step == kNone) progress.steps.add_reader(first + b);
      if (step.depends_on_step < last_step) progress.steps.goes_back();
      last_step = step.depends_on_step;
    }
  }
}

// Those of a host are together, and those whose messages meet. Where none meet, there is no order
// of time to keep.
void TimeOnlyRun::divide() {
  Partitioning partitioning(static_cast<std::uint32_t>(blocks_.size()));
  bool has_meetings = false;
  for (Block& block : blocks_) {
    partitioning.join(block.number, block.number - block.number_in_rank);
    if (block.send_to == kNobody) continue;
    const Block& receiver = blocks_[block.send_to];
    block.lookahead = block.latency + block.delay;
    if (block.flow != kNobody) {
      block.lookahead = flows_.latency_after_meeting(block.flow) + block.delay;
      flows_.for_each_meeting(block.flow, [&](int link) {
        partitioning.join_at(link, block.number);
        has_meetings = true;
      });
    }
    const Time lookahead = std::min(block.lookahead, receiver.credit_delay);
    if (!block.leaves_host || lookahead < kLookaheadMin)
      partitioning.join(block.number, receiver.number);
  }
  has_meetings |= join_one_sided(partitioning);
  partitions_.resize(1);
  if (!has_meetings) return;
  const Partitions partitions = partitioning.divide();
  partitions_.resize(partitions.count);
  std::vector<std::uint32_t> of_flow;
  for (Block& block : blocks_) {
    block.partition = partitions.of_block[block.number];
    if (block.flow != kNobody) of_flow.push_back(block.partition);
  }
  for (const std::uint32_t block : owner_of_way_) of_flow.push_back(blocks_[block].partition);
  flows_.divide(of_flow, partitions.count);
  const auto is_across = [this](const Block& block, std::uint32_t peer) {
    return peer != kNobody && blocks_[peer].partition != block.partition;
  };
  for (Block& block : blocks_) {
    block.sends_across = is_across(block, block.send_to);
    block.receives_across = is_across(block, block.receive_from);
  }
}

// --- an invocation ------------------------------------------------------------------------------

TimeOnlyRun::Outcome TimeOnlyRun::invoke(Time limit) {
  const Time one = Time::from_ps(1);
  deadline_ = limit < Time::max() - now_ - one ? now_ + limit + one : Flows::kUnknown;
  begin_invocation();
  run_partitions();
  now_ = std::max(now_, finished_);
  if (unfinished_ == 0) return {End::finished, finished_};
  const bool goes_on = !parked_.empty() || flows_.first_time() != Flows::kUnknown;
  return {goes_on ? End::beyond_limit : End::stands_still, now_};
}

// Each goes as far as it can without knowing more of the others; then the next one does.
void TimeOnlyRun::run_partitions() {
  for (Partition& each : partitions_) each.reached = now_;
  for (;;) {
    for (std::uint32_t number = 0; number < partitions_.size(); ++number) run_partition(number);
    if (ready_count_ > 0) continue;
    const Time first = flows_.first_time();
    if (first >= deadline_ && deadline_ <= horizon_) return;
    if (first >= horizon_ && horizon_ != Flows::kUnknown) {
      reach_horizon();
      continue;
    }
    if (first == Flows::kUnknown) return;
    // Nothing happens anywhere before the first message that waits.
    for (Partition& each : partitions_) each.reached = std::max(each.reached, first);
  }
}

void TimeOnlyRun::run_partition(std::uint32_t number) {
  Partition& partition = partitions_[number];
  limit_ = simulated_until();
  std::erase_if(partition.stalled, [&](std::uint32_t block) { return !stays_stalled(block); });
  call_ready(partition.ready);
  for (Flows::Notice notice; flows_.next(number, limit_, notice);) {
    note(notice);
    call_ready(partition.ready);
  }
  if (partitions_.size() > 1) partition.reached = std::min(limit_, flows_.first_time(number));
}

// A block waits for another partition. Of its own one, nothing may be taken on beyond the time at
// which that may end.
void TimeOnlyRun::stall(const Block& block) {
  partitions_[block.partition].stalled.push_back(block.number);
  limit_ = std::min(limit_, earliest_resumption(block));
}

bool TimeOnlyRun::stays_stalled(std::uint32_t number) {
  const Block& block = blocks_[number];
  if (block.state == State::ready) return false;
  limit_ = std::min(limit_, earliest_resumption(block));
  return true;
}

Time TimeOnlyRun::earliest_resumption(const Block& block) const {
  const bool is_receiver = block.state == State::data;
  const Block& peer = blocks_[is_receiver ? block.receive_from : block.send_to];
  const Time lookahead = is_receiver ? peer.lookahead : peer.credit_delay;
  return std::max(block.at, partitions_[peer.partition].reached + lookahead);
}

void TimeOnlyRun::begin_invocation() {
  unfinished_ = blocks_.size();
  look_for_repetition();
  for (Progress& progress : progress_) progress.steps.clear();
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
      if (block.one_sided != kNobody) {
        resume_at(block);
      } else {
        make_ready(block);
      }
    }
  }
}

void TimeOnlyRun::call_ready(std::vector<std::uint32_t>& ready) {
  while (!ready.empty()) {
    std::swap(ready, going_);
    ready_count_ -= going_.size();
    for (const std::uint32_t number : going_) advance(blocks_[number]);
    going_.clear();
  }
}

void TimeOnlyRun::advance(Block& block) {
  while (block.state == State::ready) {
    if (block.at >= simulated_until()) return parked_.push_back(block.number);
    if (block.one_sided != kNobody) {
      if (!advance_one_sided(block)) return;
      finish_step(block);
      continue;
    }
    if (!may_start(block) || !move(block)) return;
    finish_slice(block);
  }
}

// Which chunks it is about matters only where they differ in size.
Step TimeOnlyRun::step_of(const Block& block) const {
  const bool is_rotated = is_ragged_ && !is_one_sided(block.steps[block.step].type);
  return is_rotated ? (*rotated_steps_[block.number])[block.step] : block.steps[block.step];
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
  const Time* const complete = progress.steps.find(needed, block.number);
  if (complete == nullptr) {
    block.state = State::dependency;
    block.next_waiting = std::exchange(progress.first_waiting, block.number);
    return false;
  }
  block.at = std::max(block.at, *complete);
  block.current.depends_on_block = kNone;
  return true;
}

// What arrives has the same place among the slices of its connection at either end. Where that is
// not so, the block waits for ever, and the schedule is run in the plain way.
bool TimeOnlyRun::slice_arrived(Block& block, std::uint32_t slots) {
  const Mark& arrival = mark(arrivals_, block.number, block.slices_received);
  if (arrival.slots != block.slots_received + slots || arrival.time == Flows::kUnknown) {
    block.state = State::data;
    if (block.receives_across) stall(block);
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
      if (block.sends_across) stall(block);
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
    if (block.number == lead_) note_iteration(block);
  }
  if (block.iteration < plan_->chunking.iterations()) return start_step(block);
  block.state = State::finished;
  finished_ = std::max(finished_, block.at);
  --unfinished_;
}

void TimeOnlyRun::publish(Block& block) {
  Progress& progress = progress_[block.progress];
  progress.steps.add(block.steps_finished, block.at);
  std::uint32_t waiting = std::exchange(progress.first_waiting, kNobody);
  while (waiting != kNobody) {
    const std::uint32_t next = blocks_[waiting].next_waiting;
    if (block.one_sided != kNobody && blocks_[waiting].one_sided != kNobody) {
      // Where there are no turns, at once, as executors do.
      blocks_[waiting].state = State::ready;
      advance(blocks_[waiting]);
    } else {
      wake(waiting, State::dependency);
    }
    waiting = next;
  }
}

void TimeOnlyRun::note(const Flows::Notice& notice) {
  if (is_one_sided_notice(notice)) return note_one_sided(notice);
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
  if (block.state == reason) make_ready(block);
}

void TimeOnlyRun::make_ready(Block& block) {
  block.state = State::ready;
  partitions_[block.partition].ready.push_back(block.number);
  ++ready_count_;
}

}  // namespace towpath::simulate
