// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/time_only/repetition.hpp"

#include <algorithm>
#include <utility>

namespace towpath::collective::time_only {

namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};
// Simulating fewer iterations than this is faster than comparing them.
constexpr std::uint64_t kIterationsMin = 8;
// Maximum number of comparisons with one reference moment. After that, a match is unlikely.
constexpr std::uint64_t kComparedMax = 64;

}  // namespace

Repetition::Repetition(BlockTable& table, Flows& flows, Agenda& agenda, TimeEngine& engine)
    : table_(table), flows_(flows), agenda_(agenda), engine_(engine) {
  choose_lead();
  engine_.observed = lead_;
  engine_.on_iteration = [this] { note_iteration(); };
}

// A block without peers may have another period.
void Repetition::choose_lead() {
  const auto& blocks = table_.blocks();
  const auto found = std::ranges::find_if(blocks, [](const Block& block) {
    return block.cursor.step_count > 0 &&
           (block.send_to != kNobody || block.receive_from != kNobody);
  });
  if (found != blocks.end()) lead_ = found->number;
  const bool has_one_sided =
      std::ranges::any_of(blocks, [](const Block& block) { return block.one_sided != kNobody; });

  const Plan& plan = table_.plan();
  const Chunking& chunking = plan.chunking;
  whole_iterations_ = has_one_sided ? 0 : chunking.iterations() - 1;
  if (!table_.is_ragged() || whole_iterations_ == 0) return;
  const std::uint64_t parts =
      works_on_parts(plan.schedule->collective) ? plan.schedule->ranks.size() : 1;
  const std::uint64_t others = (plan.schedule->chunks / parts - 1) * chunking.chunk_elements();
  const std::uint64_t shortest =
      chunking.part_elements() - std::min(chunking.part_elements(), others);
  whole_iterations_ = std::min(whole_iterations_, shortest / chunking.nominal(1, 0));
}

void Repetition::begin_invocation() {
  rhythm_.clear();
  stop_comparing(whole_iterations_ < kIterationsMin ? kNever : 0);
  pause_ = kIterationsMin;
}

void Repetition::note_iteration() {
  rhythm_.add(lead().at);
  if (agenda_.horizon() != Flows::kUnknown || lead().cursor.iteration < look_at_) return;
  if (rhythm_.period() != Time()) agenda_.set_horizon(lead().at);
}

void Repetition::reach_horizon() {
  const Time period = rhythm_.period();
  if (iterations_left() == 0) {
    stop_comparing(kNever);
  } else if (period == Time()) {
    stop_comparing(lead().cursor.iteration + pause_);
    pause_ *= 2;
  } else if (!is_settled_) {
    settle();
  } else {
    compare(period);
  }
  agenda_.unpark();
}

// Some blocks had passed the horizon before it was set.
void Repetition::settle() {
  Time horizon = agenda_.horizon();
  for (const Block& block : table_.blocks()) {
    if (block.state != State::finished) horizon = std::max(horizon, block.at);
  }
  agenda_.set_horizon(horizon);
  is_settled_ = true;
}

// The reference moment is replaced after 1, 2, 4, ... comparisons, so that neither a long period
// nor a late one is missed.
void Repetition::compare(Time period) {
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
  agenda_.set_horizon(agenda_.horizon() + period_);
}

// The iterations that every block can still repeat with chunks of equal size.
std::uint64_t Repetition::iterations_left() const {
  std::uint64_t furthest = 0;
  for (const Block& block : table_.blocks()) {
    if (block.cursor.step_count > 0) furthest = std::max(furthest, block.cursor.iteration);
  }
  return whole_iterations_ - std::min(whole_iterations_, furthest + 1);
}

Repetition::Moment Repetition::moment() {
  Moment now{sim::Snapshot(agenda_.horizon()), lead().cursor.iteration, engine_.slices(),
             flows_.counts()};
  for (const Block& block : table_.blocks()) {
    if (block.cursor.step_count > 0) describe(now.snapshot, block);
  }
  flows_.describe(now.snapshot, [this](std::uint64_t tag) {
    const Block& sender = table_[static_cast<std::uint32_t>(tag >> 32)];
    return (tag & ~std::uint64_t{0xffffffff}) |
           (sender.slices_sent - static_cast<std::uint32_t>(tag));
  });
  return now;
}

void Repetition::describe(sim::Snapshot& snapshot, const Block& block) {
  const BlockCursor& at = block.cursor;
  snapshot.add(block.at);
  snapshot.add(at.iteration - lead().cursor.iteration);
  snapshot.add(at.step, at.first_chunk);
  snapshot.add(std::uint32_t{at.slice_number} << 8 | static_cast<std::uint32_t>(block.state),
               static_cast<std::uint32_t>(at.is_dependency_met));
  if (block.send_to != kNobody) describe_connection(snapshot, block);
  if (block.progress != kNobody) describe_times(snapshot, block);
}

// The slices in flight, and the slots that are being returned.
void Repetition::describe_connection(sim::Snapshot& snapshot, const Block& sender) {
  const Block& receiver = table_[sender.send_to];
  const auto add = [&](const Mark& mark, std::uint64_t slots) {
    snapshot.add(mark.slots - slots);
    snapshot.add(mark.time);
  };
  snapshot.add(sender.cursor.slots_sent - sender.slots_returned);
  snapshot.add(sender.cursor.slots_sent - receiver.cursor.slots_received);
  snapshot.add(sender.slices_sent - receiver.slices_received,
               receiver.slices_received - sender.slices_returned);
  for (std::uint32_t i = receiver.slices_received; i != sender.slices_sent; ++i) {
    add(table_.arrival(receiver.number, i), receiver.cursor.slots_received);
  }
  for (std::uint32_t i = sender.slices_returned; i != receiver.slices_received; ++i) {
    add(table_.credit(sender.number, i), sender.slots_returned);
  }
}

void Repetition::describe_times(sim::Snapshot& snapshot, const Block& block) {
  const StepTimes& times = table_.times_of(block);
  std::uint64_t least = block.cursor.iteration;
  times.for_each_reader(
      [&](std::uint32_t reader) { least = std::min(least, table_[reader].cursor.iteration); });
  times.describe(snapshot, least * block.cursor.step_count, block.cursor.steps_finished());
}

// Continues as if the iterations between two moments had been simulated `times` times more.
void Repetition::repeat(const Moment& before, const Moment& now, std::uint64_t times) {
  const Time by =
      (now.snapshot.since() - before.snapshot.since()) * static_cast<std::int64_t>(times);
  const std::uint64_t iterations = (now.iteration - before.iteration) * times;
  table_.shift(by, iterations);
  agenda_.shift(by);
  flows_.shift(by);
  flows_.count_again(before.counts, times);
  engine_.count_again((engine_.slices() - before.slices) * times);
  counted_ += iterations;
}

// Runs until the leading block reaches that iteration.
void Repetition::stop_comparing(std::uint64_t look_at) {
  look_at_ = look_at;
  agenda_.set_horizon(Flows::kUnknown);
  is_settled_ = false;
  before_.reset();
  compared_ = 0;
  compared_max_ = 1;
}

}  // namespace towpath::collective::time_only
