// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/simulate/fold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/machine/route_search.hpp"
#include "towpath/machine/symmetry.hpp"

namespace towpath::simulate {

using collective::kNone;
using collective::Plan;
using collective::RankProgram;
using collective::ThreadBlock;

namespace {

// A rotation of a machine's ranks by a number of ranks.
class Rotated {
 public:
  Rotated(const machine::Machine& machine, const Plan& plan, const std::vector<int>& places,
          int period)
      : machine_(machine), plan_(plan), places_(places), period_(period) {}

  // One per link. Empty if the machine is changed.
  std::vector<gpu_links::FoldedLink> links() {
    std::vector<std::pair<int, int>> images;
    for (int rank = 0; rank < ranks(); ++rank) {
      images.emplace_back(device_of(rank), device_of(rank + period_));
    }
    std::optional<std::vector<int>> moved = machine::moved_links(machine_, images);
    if (!moved) return {};
    moved_ = std::move(*moved);
    find_orbits();
    return has_equal_routes() ? std::move(folded_) : std::vector<gpu_links::FoldedLink>();
  }

 private:
  int ranks() const { return static_cast<int>(places_.size()); }
  int gpu_of(int rank) const { return places_[index(rank % ranks())]; }
  int device_of(int rank) const { return machine_.device_of_rank(gpu_of(rank)); }

  // An orbit is whole if it has as many links as a rank has images. Otherwise several of them are
  // one link, which carries the load of several ranks.
  void find_orbits() {
    folded_.assign(moved_.size(), {kNone, 0});
    is_whole_.assign(moved_.size(), false);
    for (std::size_t first = 0; first < moved_.size(); ++first) {
      if (folded_[first].representative != kNone) continue;
      int length = 0;
      int link = static_cast<int>(first);
      do {
        folded_[index(link)] = {static_cast<int>(first), length};
        link = moved_[index(link)];
        ++length;
      } while (link != static_cast<int>(first));
      is_whole_[first] = length == ranks() / period_;
    }
  }

  bool has_equal_routes() const {
    std::set<std::pair<int, int>> pairs;
    for (int rank = 0; rank < period_; ++rank) {
      for (const ThreadBlock& block : plan_.schedule->ranks[index(rank)].blocks) {
        for (const int peer : {block.send_peer, block.receive_peer}) {
          if (peer != kNone) pairs.emplace(rank, peer);
        }
      }
    }
    machine::RouteSearch search(machine_);
    for (const auto& [from, to] : pairs) {
      for (const int link : search.route(gpu_of(from), gpu_of(to))) {
        if (!is_whole_[index(folded_[index(link)].representative)]) return false;
      }
      for (const machine::RouteTie& tie : search.ties(gpu_of(from), gpu_of(to))) {
        if (!is_kept(tie, from, to)) return false;
      }
    }
    return true;
  }

  // True if all images of a route break a tie between two links in the same way.
  bool is_kept(machine::RouteTie tie, int from, int to) const {
    for (int shift = period_; shift < ranks(); shift += period_) {
      tie = {moved_[index(tie.taken)], moved_[index(tie.other)]};
      if (!machine_.prefers(tie.taken, tie.other, gpu_of(from + shift), gpu_of(to + shift))) {
        return false;
      }
    }
    return true;
  }

  const machine::Machine& machine_;
  const Plan& plan_;
  const std::vector<int>& places_;
  int period_;
  std::vector<int> moved_;                     // per link
  std::vector<gpu_links::FoldedLink> folded_;  // per link: the first link of its orbit
  std::vector<bool> is_whole_;                 // per representative
};

// The reason for no fold, or empty.
std::string refusal_of(const machine::Machine& machine, const Plan& plan,
                       const std::vector<int>& places) {
  const auto is_there = [&](int gpu) { return gpu >= 0 && gpu < machine.ranks(); };
  if (!std::ranges::all_of(places, is_there)) return "a rank is on a GPU that does not exist";
  if (!plan.chunking.has_equal_chunks()) {
    return fmt::format("its {} elements are not cut into equal chunks, as a multiple of {} is",
                       plan.chunking.elements(), plan.schedule->chunks);
  }
  if (plan.wiring->ranks.size() == plan.schedule->ranks.size()) {
    return "no two of its ranks do the same";
  }
  if (machine.has_several_costs()) return "hosts are of different kinds";
  return "";
}

}  // namespace

// In place: a representative is the first link of its orbit.
std::vector<gpu_links::LinkLoad> Fold::unfolded(std::vector<gpu_links::LinkLoad> loads) const {
  if (links == nullptr) return loads;
  for (std::size_t link = loads.size(); link-- > 0;) {
    loads[link] = loads[index((*links)[link].representative)];
  }
  return loads;
}

Fold find_fold(const machine::Machine& machine, const Plan& plan, const std::vector<int>& places) {
  Fold fold;
  fold.refusal = refusal_of(machine, plan, places);
  if (!fold.refusal.empty()) return fold;
  const int ranks = plan.schedule->rank_count();
  const int least = static_cast<int>(plan.wiring->ranks.size());
  for (int period = least; period <= ranks / 2; period += least) {
    if (ranks % period != 0) continue;
    std::vector<gpu_links::FoldedLink> links = Rotated(machine, plan, places, period).links();
    if (links.empty()) continue;
    fold.links = std::make_shared<const std::vector<gpu_links::FoldedLink>>(std::move(links));
    fold.period = period;
    return fold;
  }
  fold.refusal = "the ways between its ranks differ";
  return fold;
}

}  // namespace towpath::simulate
