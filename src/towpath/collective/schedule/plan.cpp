// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/schedule/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "towpath/base/index.hpp"

namespace towpath::collective {
namespace {

constexpr std::uint64_t kSlotAlignment = 256;

constexpr std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

// A slot must hold its share of the largest slice of the largest transfer.
std::uint64_t slot_bytes_for(const Chunking& chunking, std::uint32_t count_max) {
  const std::uint32_t count = std::min(count_max, chunking.chunks_per_transfer());
  const std::uint64_t transfer = chunking.nominal(count, 0);
  const Slice slice = chunking.slice(transfer, 0);
  const std::uint64_t share = divide_up(slice.count * chunking.element_bytes(), slice.slots);
  return divide_up(share, kSlotAlignment) * kSlotAlignment;
}

std::uint64_t buffer_bytes(const Plan& plan, Buffer buffer) {
  const bool is_one_part = chunks_in(*plan.schedule, 0, buffer) < plan.schedule->chunks;
  const std::uint64_t elements =
      is_one_part ? plan.chunking.part_elements() : plan.chunking.elements();
  return elements * plan.chunking.element_bytes();
}

// A plan with its memory, computed from chunking and wiring.
std::shared_ptr<const Plan> sized(std::shared_ptr<const Schedule> of, const Chunking& chunking,
                                  transport::Reduction reduction,
                                  std::shared_ptr<const Wiring> wiring,
                                  std::uint32_t slots_factor) {
  Plan plan{.schedule = std::move(of),
            .reduction = reduction,
            .chunking = chunking,
            .transfers = TransferTable(chunking),
            .wiring = std::move(wiring),
            .slots_factor = slots_factor};
  const Schedule& schedule = *plan.schedule;
  plan.slot_bytes = slot_bytes_for(plan.chunking, plan.wiring->count_max);
  for (const RankProgram& program : schedule.ranks) {
    plan.scratch_bytes =
        std::max(plan.scratch_bytes, plan.chunking.scratch_elements(program.scratch_chunks) *
                                         plan.chunking.element_bytes());
  }
  if (has_one_sided_steps(schedule)) {
    plan.window_bytes =
        divide_up(plan.input_bytes(), kSlotAlignment) * kSlotAlignment + plan.output_bytes();
  }
  return std::make_shared<const Plan>(std::move(plan));
}

}  // namespace

std::uint64_t Plan::input_bytes() const { return buffer_bytes(*this, Buffer::input); }
std::uint64_t Plan::output_bytes() const { return buffer_bytes(*this, Buffer::output); }

std::shared_ptr<const Plan> make_plan(std::shared_ptr<const Schedule> schedule,
                                      std::uint64_t elements, transport::Reduction reduction,
                                      std::uint32_t slots_factor) {
  check_structure(*schedule);
  const Chunking chunking(*schedule, elements, transport::size_of(reduction.type));
  auto wiring = std::make_shared<const Wiring>(wire(*schedule));
  return sized(std::move(schedule), chunking, reduction, std::move(wiring), slots_factor);
}

std::shared_ptr<const Plan> with_elements(const Plan& plan, std::uint64_t elements,
                                          std::uint32_t slots_factor) {
  const Chunking chunking(*plan.schedule, elements, transport::size_of(plan.reduction.type));
  return sized(plan.schedule, chunking, plan.reduction, plan.wiring, slots_factor);
}

std::string statement(const Plan& plan) {
  const Chunking& chunking = plan.chunking;
  return fmt::format(
      "{} of {} bytes of {}, {}, root {}, schedule '{}' ({:016x})",
      name_of(plan.schedule->collective), chunking.elements() * chunking.element_bytes(),
      transport::name_of(plan.reduction.type), transport::name_of(plan.reduction.operation),
      plan.schedule->root, plan.schedule->name, fingerprint(*plan.schedule));
}

}  // namespace towpath::collective
