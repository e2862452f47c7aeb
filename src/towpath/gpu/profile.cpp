// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/profile.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>

namespace towpath::gpu {

namespace {

// Functions of NVSHMEM.
bool is_collective_call(std::string_view call) {
  if (!call.starts_with("nvshmem")) return false;
  const auto any_of = {"barrier", "sync_all", "team_sync", "broadcast",
                       "collect", "alltoall", "reduce"};
  return std::any_of(any_of.begin(), any_of.end(),
                     [&](const char* part) { return call.find(part) != std::string_view::npos; });
}

bool is_same(const Profile::Span& a, const Profile::Span& b) {
  return a.activity == b.activity && a.name == b.name && a.peer == b.peer;
}

bool is_same(const Profile::Transfer& a, const Profile::Transfer& b) {
  return a.track == b.track && a.activity == b.activity && a.name == b.name && a.peer == b.peer &&
         a.signal.first == b.signal.first && a.signal.size_bytes == b.signal.size_bytes;
}

void extend(Profile::Span& span, const Profile::Span& by) {
  span.end = by.end;
  span.size_bytes += by.size_bytes;
  span.calls += by.calls;
  span.woken_by = by.woken_by;
}

void extend(Profile::Words& words, const Profile::Words& by) {
  const std::uint64_t end = std::max(words.first + words.size_bytes, by.first + by.size_bytes);
  words.first = std::min(words.first, by.first);
  words.size_bytes = end - words.first;
}

}  // namespace

const char* name_of(Activity activity) {
  constexpr const char* kNames[kActivities] = {"put",   "get",  "signal",     "atomic", "compute",
                                               "quiet", "wait", "collective", "sync",   "turn"};
  return kNames[static_cast<std::size_t>(activity)];
}

// --- the records --------------------------------------------------------------------------------

Profile::Profile(std::function<Time()> clock, std::size_t records_max)
    : clock_(std::move(clock)), spans_(records_max), transfers_(records_max), work_(records_max) {}

int Profile::name(const abi::Site& site) {
  const auto found = sites_.find({site.file, site.call, site.line});
  if (found != sites_.end()) return found->second;
  const std::string place =
      site.file == nullptr
          ? ""
          : fmt::format("{}:{}", std::filesystem::path(site.file).filename().string(), site.line);
  const std::string text = site.call == nullptr ? "unknown call" : site.call;
  const auto [added, is_new] =
      name_numbers_.try_emplace({text, place}, static_cast<int>(names_.size()));
  if (is_new) names_.push_back({text, place, is_collective_call(text)});
  sites_.emplace(std::make_tuple(site.file, site.call, site.line), added->second);
  return added->second;
}

int Profile::name(const std::string& text) {
  const auto [added, is_new] =
      name_numbers_.try_emplace({text, ""}, static_cast<int>(names_.size()));
  if (is_new) names_.push_back({text, "", false});
  return added->second;
}

// Zero is the default stream of a PE.
int Profile::stream(int pe, void* handle) {
  if (handle == nullptr) return 0;
  const auto first = streams_.lower_bound({pe, nullptr});
  const auto last = streams_.lower_bound({pe + 1, nullptr});
  const auto number = static_cast<int>(std::distance(first, last)) + 1;
  return streams_.try_emplace({pe, handle}, number).first->second;
}

int Profile::track(const Track& track) {
  const auto [added, is_new] = track_numbers_.try_emplace(
      {track.pe, track.stream, track.block, track.is_kernel}, static_cast<int>(tracks_.size()));
  if (is_new) tracks_.push_back(track);
  return added->second;
}

void Profile::begin_work(std::uint64_t number) {
  if (StreamWork* const work = work_.find(number)) work->begin = now();
}

void Profile::end_work(std::uint64_t number) {
  if (StreamWork* const work = work_.find(number)) work->end = now();
}

void Profile::add(const Span& span) {
  ++tracks_[static_cast<std::size_t>(span.track)].spans;
  spans_.add(span);
}

void Profile::transfer_done(std::uint64_t number) {
  if (Transfer* const found = transfers_.find(number)) found->done = std::max(found->done, now());
}

void Profile::transfer_landed(std::uint64_t number) {
  if (Transfer* const found = transfers_.find(number)) {
    found->landed = std::max(found->landed, now());
  }
}

// --- one block ----------------------------------------------------------------------------------

BlockTimeline::BlockTimeline(Profile& profile, int track, const std::string& kernel)
    : profile_(profile), track_(track), kernel_(profile.name(kernel)), begin_(profile.now()) {
  doing(Activity::compute).name = doing(Activity::turn).name = kernel_;
}

BlockTimeline::~BlockTimeline() {
  close(profile_.now());
  flush(0);
}

Activity BlockTimeline::activity_at(Activity activity, const abi::Site& site) {
  if (activity == Activity::compute) return activity;
  return profile_.is_collective(profile_.name(site)) ? Activity::collective : activity;
}

void BlockTimeline::enter(Activity activity, const abi::Site& site, int peer,
                          std::uint64_t size_bytes) {
  activity = activity_at(activity, site);
  const Time now = profile_.now();
  Doing& what = doing(activity);
  const int name = activity == Activity::compute ? kernel_ : profile_.name(site);
  const bool is_other = what.threads > 0 && (what.name != name || what.peer != peer);
  if (is_other && activity == current_) close(now);
  // Different calls at the same time form one span, with the name of the last.
  const bool has_several = is_other && what.name == name && what.peer != peer;
  what.peer = has_several ? Profile::kSeveral : peer;
  what.name = name;
  what.size_bytes += size_bytes;
  ++what.threads;
  ++what.calls;
  change();
}

void BlockTimeline::leave(Activity activity, const abi::Site& site, int threads) {
  activity = activity_at(activity, site);
  Doing& what = doing(activity);
  what.threads -= threads;
  if (what.threads == 0 && activity != current_) forget(what);
  change();
}

void BlockTimeline::work(std::uint64_t size_bytes) {
  close(profile_.now());
  doing(Activity::compute).size_bytes += size_bytes;
}

std::uint64_t BlockTimeline::start(Profile::Transfer transfer, const abi::Site& site) {
  transfer.track = track_;
  transfer.name = profile_.name(site);
  transfer.begin = transfer.done = profile_.now();
  Profile::Transfer* const last = profile_.transfer(last_transfer_);
  const auto is_of_this_moment = [&](const Profile::Transfer& other) {
    const bool is_of_turn = turn_begin_ != Time() && other.begin >= turn_begin_;
    return other.begin == transfer.begin || is_of_turn;
  };
  if (last == nullptr || !is_same(*last, transfer) || !is_of_this_moment(*last)) {
    return last_transfer_ = profile_.add(transfer);
  }
  ++last->calls;
  last->size_bytes += transfer.size_bytes;
  extend(last->target, transfer.target);
  return last_transfer_;
}

void BlockTimeline::await_turn() {
  ++doing(Activity::turn).threads;
  change();
}

void BlockTimeline::begin_turn() {
  doing(Activity::turn).threads = 0;
  ++doing(Activity::compute).threads;
  turn_begin_ = profile_.now();
  change();
}

void BlockTimeline::end_turn() {
  --doing(Activity::compute).threads;
  change();
}

Activity BlockTimeline::first() const {
  // A block with ready threads waits for its turn, whatever its other threads wait for.
  if (doing_[static_cast<std::size_t>(Activity::turn)].threads > 0) return Activity::turn;
  const auto found = std::find_if(doing_.begin(), doing_.end(),
                                  [](const Doing& what) { return what.threads > 0; });
  return found == doing_.end() ? Activity::compute : static_cast<Activity>(found - doing_.begin());
}

void BlockTimeline::change() {
  const Activity next = first();
  if (next == current_) return;
  close(profile_.now());
  current_ = next;
}

// Loads and stores whose end is computed afterwards come first, because the waiting threads had
// already done them.
void BlockTimeline::close(Time now) {
  Doing& what = doing(current_);
  if (now > begin_) {
    Profile::Span span{.track = track_,
                       .activity = current_,
                       .name = what.name,
                       .peer = what.peer,
                       .calls = std::max(what.calls, 1),
                       .begin = begin_,
                       .end = now,
                       .size_bytes = std::exchange(what.size_bytes, 0),
                       .woken_by = woken_by_};
    if (current_ > Activity::compute) {
      span.begin = std::clamp(works_until_, begin_, now);
      if (span.begin > begin_) {
        emit({.track = track_,
              .name = kernel_,
              .calls = 1,
              .begin = begin_,
              .end = span.begin,
              .size_bytes = std::exchange(doing(Activity::compute).size_bytes, 0)});
      }
    }
    if (span.end > span.begin) emit(span);
    what.calls = what.threads;
    woken_by_ = {};
    goes_on_ = what.threads > 0 || current_ == Activity::compute;
  }
  if (what.threads == 0 && current_ != Activity::compute) forget(what);
  begin_ = now;
}

void BlockTimeline::forget(Doing& what) {
  what.calls = 0;
  what.size_bytes = 0;
}

void BlockTimeline::emit(Profile::Span span) {
  profile_.count_time(track_, span.activity, span.end - span.begin);
  const bool goes_on = std::exchange(goes_on_, span.activity == Activity::compute);
  if (goes_on && !pending_.empty() && is_same(pending_.back(), span) &&
      pending_.back().woken_by.size_bytes == 0) {
    const int calls = pending_.back().calls;
    extend(pending_.back(), span);
    pending_.back().calls = std::max(calls, span.calls);
    return;
  }
  // In a live run, threads take turns: the same call of the next thread follows a short
  // computation.
  if (pending_.size() == 2 && turn_begin_ != Time() && pending_[1].begin >= turn_begin_ &&
      pending_[1].activity == Activity::compute && is_same(pending_[0], span)) {
    pending_.pop_back();
    extend(pending_.back(), span);
    return;
  }
  pending_.push_back(span);
  flush(2);
}

void BlockTimeline::flush(std::size_t keep) {
  while (pending_.size() > keep) {
    profile_.add(pending_.front());
    pending_.erase(pending_.begin());
  }
}

}  // namespace towpath::gpu
