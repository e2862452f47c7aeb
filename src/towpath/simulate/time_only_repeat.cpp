// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/simulate/time_only_block.hpp"
#include "towpath/simulate/time_only_run.hpp"

// Iterations that are as those before. Blocks go ahead of each other as far as they know what they
// need, so there is no moment at which all are. It is made: up to a horizon all that begins earlier
// is simulated, and nothing that begins later, so that in whichever order blocks were taken on they
// stand where they do. Horizons are a period of the leading block apart. What is the same at two of
// them, seen from each, comes again and again, as long as every chunk is as long as it was.

namespace towpath::simulate {

using namespace collective;
using gpu_links::Flows;

namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};
// Fewer are simulated sooner than compared.
constexpr std::uint64_t kIterationsMin = 8;
// Horizons that are compared with one before another one is taken for that, at most; then it is
// not likely that any will be the same.
constexpr std::uint64_t kComparedMax = 64;

}  // namespace

// A block without peers may have a rhythm of its own.
void TimeOnlyRun::choose_lead() {
  const auto has_peer = [](const Block& block) {
    return block.step_count > 0 && (block.send_to != kNobody || block.receive_from != kNobody);
  };
  const auto lead = std::ranges::find_if(blocks_, has_peer);
  if (lead != blocks_.end()) lead_ = lead->number;

  const Chunking& chunking = plan_->chunking;
  whole_iterations_ = one_sided_.empty() ? chunking.iterations() - 1 : 0;
  if (!is_ragged_ || whole_iterations_ == 0) return;
  const std::uint64_t parts =
      works_on_parts(plan_->schedule->collective) ? plan_->schedule->ranks.size() : 1;
  const std::uint64_t others = (plan_->schedule->chunks / parts - 1) * chunking.chunk_elements();
  const std::uint64_t shortest =
      chunking.part_elements() - std::min(chunking.part_elements(), others);
  whole_iterations_ = std::min(whole_iterations_, shortest / chunking.nominal(1, 0));
}

void TimeOnlyRun::look_for_repetition() {
  rhythm_.clear();
  stop_comparing(whole_iterations_ < kIterationsMin ? kNever : 0);
  pause_ = kIterationsMin;
}

void TimeOnlyRun::note_iteration(const Block& lead) {
  rhythm_.add(lead.at);
  if (horizon_ != Flows::kUnknown || lead.iteration < look_at_) return;
  if (rhythm_.period() == Time()) return;
  horizon_ = lead.at;
  limit_ = std::min(limit_, horizon_);
}

void TimeOnlyRun::reach_horizon() {
  const Time period = rhythm_.period();
  if (iterations_left() == 0) {
    stop_comparing(kNever);
  } else if (period == Time()) {
    stop_comparing(blocks_[lead_].iteration + pause_);
    pause_ *= 2;
  } else if (!is_settled_) {
    settle();
  } else {
    compare(period);
  }
  for (const std::uint32_t number : std::exchange(parked_, {})) make_ready(blocks_[number]);
}

// Some went on beyond the horizon before there was one.
void TimeOnlyRun::settle() {
  for (const Block& block : blocks_) {
    if (block.state != State::finished) horizon_ = std::max(horizon_, block.at);
  }
  is_settled_ = true;
}

// The moment that others are compared with is taken anew after 1, 2, 4, ... of them, so that
// neither a long period nor a late begin of it is missed.
void TimeOnlyRun::compare(Time period) {
  if (period != period_) before_.reset();
  period_ = period;
  Moment now = moment();
  if (before_ && now.iteration > before_->iteration &&
      now.snapshot.has_equal_words(before_->snapshot)) {
    repeat(*before_, now, iterations_left() / (now.iteration - before_->iteration));
    return stop_comparing(kNever);
  }
  if (!before_ || ++compared_ == compared_max_) {
    if (before_) compared_max_ *= 2;
    before_ = std::move(now);
    compared_ = 0;
  }
  if (compared_max_ > kComparedMax) return stop_comparing(kNever);
  horizon_ += period_;
}

// How many more of them each block may be in, so that every chunk is as long as it was.
std::uint64_t TimeOnlyRun::iterations_left() const {
  std::uint64_t furthest = 0;
  for (const Block& block : blocks_) {
    if (block.step_count > 0) furthest = std::max(furthest, block.iteration);
  }
  return whole_iterations_ - std::min(whole_iterations_, furthest + 1);
}

TimeOnlyRun::Moment TimeOnlyRun::moment() {
  Moment now{sim::Snapshot(horizon_), blocks_[lead_].iteration, slices_, flows_.counts()};
  for (const Block& block : blocks_) {
    if (block.step_count > 0) describe(now.snapshot, block);
  }
  flows_.describe(now.snapshot, [this](std::uint64_t tag) {
    const Block& sender = blocks_[tag >> 32];
    return (tag & ~std::uint64_t{0xffffffff}) |
           (sender.slices_sent - static_cast<std::uint32_t>(tag));
  });
  return now;
}

void TimeOnlyRun::describe(sim::Snapshot& snapshot, const Block& block) {
  snapshot.add(block.at);
  snapshot.add(block.iteration - blocks_[lead_].iteration);
  snapshot.add(block.step, block.first_chunk);
  snapshot.add(std::uint32_t{block.slice} << 8 | static_cast<std::uint32_t>(block.state),
               static_cast<std::uint32_t>(block.current.depends_on_block));
  if (block.send_to != kNobody) describe_marks(snapshot, block);
  if (block.progress != kNotPublished) describe_progress(snapshot, block);
}

// A connection: what is on its way, and what comes back.
void TimeOnlyRun::describe_marks(sim::Snapshot& snapshot, const Block& sender) {
  const Block& receiver = blocks_[sender.send_to];
  const auto add = [&](const Mark& mark, std::uint64_t slots) {
    snapshot.add(mark.slots - slots);
    snapshot.add(mark.time);
  };
  snapshot.add(sender.slots_sent - sender.slots_returned);
  snapshot.add(sender.slots_sent - receiver.slots_received);
  snapshot.add(sender.slices_sent - receiver.slices_received,
               receiver.slices_received - sender.slices_returned);
  for (std::uint32_t i = receiver.slices_received; i != sender.slices_sent; ++i) {
    add(mark(arrivals_, receiver.number, i), receiver.slots_received);
  }
  for (std::uint32_t i = sender.slices_returned; i != receiver.slices_received; ++i) {
    add(mark(credits_, sender.number, i), sender.slots_returned);
  }
}

void TimeOnlyRun::describe_progress(sim::Snapshot& snapshot, const Block& block) const {
  const StepProgress& steps = progress_[block.progress].steps;
  std::uint64_t least = block.iteration;
  steps.for_each_reader(
      [&](std::uint32_t reader) { least = std::min(least, blocks_[reader].iteration); });
  steps.describe(snapshot, least * block.step_count, block.steps_finished);
}

// Goes on as if what came between two moments had come so many times more.
void TimeOnlyRun::repeat(const Moment& before, const Moment& now, std::uint64_t times) {
  const Time by =
      (now.snapshot.since() - before.snapshot.since()) * static_cast<std::int64_t>(times);
  const std::uint64_t iterations = (now.iteration - before.iteration) * times;
  for (Block& block : blocks_) {
    if (block.step_count == 0) continue;
    block.at += by;
    block.iteration += iterations;
    block.steps_finished += iterations * block.step_count;
    if (block.progress != kNotPublished) {
      progress_[block.progress].steps.shift(iterations * block.step_count, by);
    }
  }
  for (std::vector<Mark>* marks : {&arrivals_, &credits_}) {
    for (Mark& mark : *marks) mark.time = mark.time == Flows::kUnknown ? mark.time : mark.time + by;
  }
  for (Partition& each : partitions_) each.reached += by;
  flows_.shift(by);
  flows_.count_again(before.counts, times);
  slices_ += (slices_ - before.slices) * times;
  repeated_ += iterations;
}

// Until an iteration of the leading block.
void TimeOnlyRun::stop_comparing(std::uint64_t look_at) {
  look_at_ = look_at;
  horizon_ = Flows::kUnknown;
  is_settled_ = false;
  before_.reset();
  compared_ = 0;
  compared_max_ = 1;
}

}  // namespace towpath::simulate
