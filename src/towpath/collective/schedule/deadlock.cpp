// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/schedule/deadlock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace towpath::collective {
namespace {

constexpr std::size_t kLinksShown = 8;

const ThreadBlock& block_at(const Schedule& schedule, int rank, int block) {
  return schedule.ranks[static_cast<std::size_t>(rank)].blocks[static_cast<std::size_t>(block)];
}

std::string describe_place_in_block(const ThreadBlock& block, int step) {
  if (step < 0 || static_cast<std::size_t>(step) >= block.steps.size()) return "its end";
  return fmt::format("step {} {}", step, name_of(block.steps[static_cast<std::size_t>(step)].type));
}

std::string describe_wait(const Schedule& schedule, const Blocked& at) {
  std::string whom = fmt::format("rank {}", at.waits_for_rank);
  if (at.waits_for_block != kNone) whom += fmt::format(" thread block {}", at.waits_for_block);
  switch (at.reason) {
    case WaitReason::data: return "waits for data from " + whom;
    case WaitReason::slot: return "waits for a free slot from " + whom;
    case WaitReason::launch: return "waits for the launch of " + whom;
    case WaitReason::signal: return "waits for a signal of " + whom;
    case WaitReason::barrier: return "waits at a barrier for " + whom;
    case WaitReason::semaphore: return "waits for a semaphore that is released by " + whom;
    case WaitReason::packet: return "waits for packets from " + whom;
    case WaitReason::dependency: break;
  }
  const ThreadBlock& block = block_at(schedule, at.rank, at.block);
  return fmt::format("waits for step {} of {}",
                     block.steps[static_cast<std::size_t>(at.step)].depends_on_step, whom);
}

std::vector<Blocked> links_at(std::span<const Blocked> blocked,
                              const std::vector<std::size_t>& places) {
  std::vector<Blocked> links;
  for (const std::size_t place : places) links.push_back(blocked[place]);
  return links;
}

std::vector<Blocked> lowest_first(std::span<const Blocked> blocked,
                                  const std::vector<std::size_t>& cycle) {
  std::vector<Blocked> links = links_at(blocked, cycle);
  const auto lowest =
      std::min_element(links.begin(), links.end(), [](const Blocked& a, const Blocked& b) {
        return std::pair(a.rank, a.block) < std::pair(b.rank, b.block);
      });
  std::rotate(links.begin(), lowest, links.end());
  return links;
}

}  // namespace

std::string_view words_of(WaitReason reason) {
  switch (reason) {
    case WaitReason::data: return "data";
    case WaitReason::slot: return "a free slot";
    case WaitReason::dependency: return "a step";
    case WaitReason::launch: return "the launch";
    case WaitReason::signal: return "a signal";
    case WaitReason::barrier: return "a barrier";
    case WaitReason::semaphore: return "a semaphore";
    case WaitReason::packet: return "packets";
  }
  return "";
}

std::string describe_step(const Schedule& schedule, int rank, int block, int step) {
  const ThreadBlock& program = block_at(schedule, rank, block);
  return fmt::format("rank {} thread block {} (channel {}) {}", rank, block, program.channel,
                     describe_place_in_block(program, step));
}

Blocked blocked_at(const Schedule& schedule, const Wiring& wiring, const Waiting& waiting) {
  const auto rank = static_cast<std::size_t>(waiting.rank);
  const auto block = static_cast<std::size_t>(waiting.block);
  const ThreadBlock& program = block_at(schedule, waiting.rank, waiting.block);
  const BlockWiring& ends = wiring.of(waiting.rank)[block];
  const Step& step = program.steps[static_cast<std::size_t>(waiting.step)];
  Blocked at{waiting.rank, waiting.block, waiting.step, waiting.reason, waiting.rank, kNone};
  switch (waiting.reason) {
    case WaitReason::data:
      at.waits_for_rank = program.receive_peer;
      at.waits_for_block = ends.receive_block;
      break;
    case WaitReason::slot:
      at.waits_for_rank = program.send_peer;
      at.waits_for_block = ends.send_block;
      break;
    case WaitReason::dependency: at.waits_for_block = step.depends_on_block; break;
    case WaitReason::launch: break;
    case WaitReason::signal:
    case WaitReason::barrier:
    case WaitReason::semaphore:
    case WaitReason::packet: {
      const CounterTake& take =
          wiring.one_sided.ranks[rank][block][step.source_chunk].takes[waiting.take];
      at.waits_for_rank = take.from_rank;
      at.waits_for_block = take.from_block;
      break;
    }
  }
  return at;
}

WaitChain find_wait_chain(std::span<const Blocked> blocked) {
  constexpr std::size_t kNowhere = SIZE_MAX;
  std::map<std::pair<int, int>, std::size_t> places;
  for (std::size_t i = 0; i < blocked.size(); ++i) {
    places.emplace(std::pair(blocked[i].rank, blocked[i].block), i);
  }
  const auto next = [&](std::size_t place) {
    const auto found = places.find({blocked[place].waits_for_rank, blocked[place].waits_for_block});
    return found == places.end() ? kNowhere : found->second;
  };
  // Each waits for one other, so a walk along the waits ends outside the list, on an earlier walk,
  // or on itself: a cycle.
  std::vector<std::size_t> seen_by(blocked.size(), kNowhere);
  std::vector<std::size_t> first_path;
  for (std::size_t first = 0; first < blocked.size(); ++first) {
    std::vector<std::size_t> path;
    std::size_t at = first;
    while (at != kNowhere && seen_by[at] == kNowhere) {
      seen_by[at] = first;
      path.push_back(at);
      at = next(at);
    }
    if (at != kNowhere && seen_by[at] == first) {
      path.erase(path.begin(), std::find(path.begin(), path.end(), at));
      return {lowest_first(blocked, path), true};
    }
    if (first == 0) first_path = std::move(path);
  }
  return {links_at(blocked, first_path), false};
}

std::string describe(const Schedule& schedule, const WaitChain& chain) {
  if (chain.links.empty()) return "nothing waits";
  const Blocked& first = chain.links.front();
  std::string text = describe_step(schedule, first.rank, first.block, first.step) + " " +
                     describe_wait(schedule, first);
  const std::size_t shown = std::min(chain.links.size(), kLinksShown);
  for (std::size_t i = 1; i < shown; ++i) {
    const Blocked& at = chain.links[i];
    text += fmt::format(", which at {} {}",
                        describe_place_in_block(block_at(schedule, at.rank, at.block), at.step),
                        describe_wait(schedule, at));
  }
  if (const std::size_t more = chain.links.size() - shown; more > 0) {
    text +=
        fmt::format(", and so on through {} more thread blocks to rank {} thread block {}", more,
                    chain.links.back().waits_for_rank, chain.links.back().waits_for_block);
  }
  return text + (chain.is_cycle ? ", where the circle closes" : ", which does not wait");
}

std::vector<std::string> describe_cycle(const Schedule& schedule, const WaitChain& chain) {
  std::vector<std::string> links;
  if (!chain.is_cycle) return links;
  for (const Blocked& at : chain.links) {
    links.push_back(describe_step(schedule, at.rank, at.block, at.step) + " " +
                    describe_wait(schedule, at));
  }
  return links;
}

std::string describe_deadlock(const Schedule& schedule, std::span<const Blocked> blocked) {
  return describe(schedule, find_wait_chain(blocked));
}

}  // namespace towpath::collective
