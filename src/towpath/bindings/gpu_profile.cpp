// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/bindings/gpu_profile.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "towpath/bindings/arrays.hpp"

namespace towpath::bindings {

namespace {

using Table = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<2>>;

// Rows of equal length, stored consecutively.
class Rows {
 public:
  explicit Rows(std::size_t columns) : columns_(columns) {}
  void add(std::initializer_list<std::int64_t> row) {
    values_.insert(values_.end(), row.begin(), row.end());
  }
  void add(std::int64_t value) { values_.push_back(value); }
  Table table() {
    const std::size_t rows = values_.size() / columns_;
    return owned<Table>(std::move(values_), {rows, columns_});
  }

 private:
  std::size_t columns_;
  std::vector<std::int64_t> values_;
};

std::int64_t whole(std::uint64_t value) { return static_cast<std::int64_t>(value); }

Table spans_of(const gpu::Profile& profile) {
  Rows rows(10);
  profile.spans().for_each([&](const gpu::Profile::Span& span) {
    rows.add({span.track, static_cast<int>(span.activity), span.name, span.peer, span.calls,
              span.begin.ps(), span.end.ps(), whole(span.size_bytes), whole(span.woken_by.first),
              whole(span.woken_by.size_bytes)});
  });
  return rows.table();
}

Table transfers_of(const gpu::Profile& profile) {
  Rows rows(13);
  profile.transfers().for_each([&](const gpu::Profile::Transfer& transfer) {
    rows.add({transfer.track, static_cast<int>(transfer.activity), transfer.name, transfer.peer,
              transfer.calls, transfer.begin.ps(), transfer.done.ps(), transfer.landed.ps(),
              whole(transfer.size_bytes), whole(transfer.target.first),
              whole(transfer.target.size_bytes), whole(transfer.signal.first),
              whole(transfer.signal.size_bytes)});
  });
  return rows.table();
}

Table work_of(const gpu::Profile& profile) {
  Rows rows(10);
  profile.work().for_each([&](const gpu::Profile::StreamWork& work) {
    rows.add({work.pe, work.stream, work.name, work.queued.ps(), work.begin.ps(), work.end.ps(),
              whole(work.size_bytes), whole(work.blocks), work.threads, work.is_kernel ? 1 : 0});
  });
  return rows.table();
}

Table tracks_of(const gpu::Profile& profile) {
  Rows rows(5 + gpu::kActivities);
  for (const gpu::Profile::Track& track : profile.tracks()) {
    rows.add({track.pe, track.stream, track.block, track.is_kernel ? 1 : 0, whole(track.spans)});
    for (const Time& time : track.times) rows.add(time.ps());
  }
  return rows.table();
}

}  // namespace

nb::dict profile_of(const gpu::Profile& profile) {
  std::vector<std::string> activities;
  for (std::size_t i = 0; i < gpu::kActivities; ++i) {
    activities.emplace_back(gpu::name_of(static_cast<gpu::Activity>(i)));
  }
  std::vector<std::pair<std::string, std::string>> names;
  for (const gpu::Profile::Name& name : profile.names()) names.emplace_back(name.text, name.place);
  nb::dict found;
  found["activities"] = nb::cast(activities);
  found["names"] = nb::cast(names);
  found["spans"] = spans_of(profile);
  found["transfers"] = transfers_of(profile);
  found["work"] = work_of(profile);
  found["tracks"] = tracks_of(profile);
  found["dropped"] = nb::make_tuple(profile.spans().dropped(), profile.transfers().dropped(),
                                    profile.work().dropped());
  return found;
}

nb::dict profile_of(gpu::SimulatedPes& pes) {
  nb::dict found = profile_of(*pes.profile());
  const gpu_links::Network& network = pes.network();
  const machine::Machine& machine = network.machine();
  const gpu_links::LinkHistory& history = *pes.link_history();
  constexpr const char* kKinds[] = {"nvlink", "pcie", "network", "socket"};
  const std::vector<gpu_links::LinkLoad>& loads = network.loads();
  nb::list links;
  for (std::size_t i = 0; i < machine.links().size(); ++i) {
    const machine::Link& link = machine.links()[i];
    const gpu_links::LinkLoad& load = loads[i];
    if (load.bytes == Bytes(0)) continue;
    const std::vector<std::uint64_t>& carried = history.carried(i);
    links.append(nb::make_tuple(
        machine.devices()[static_cast<std::size_t>(link.from)].name,
        machine.devices()[static_cast<std::size_t>(link.to)].name,
        kKinds[static_cast<int>(link.kind)], link.rate.bytes_per_second(), load.bytes.count(),
        load.busy.ps(), column_of(std::vector<std::int64_t>(carried.begin(), carried.end()))));
  }
  found["links"] = links;
  found["interval_ps"] = history.interval().ps();
  Rows latencies(static_cast<std::size_t>(pes.pes()));
  for (int from = 0; from < pes.pes(); ++from) {
    for (int to = 0; to < pes.pes(); ++to) latencies.add(pes.latency(from, to).ps());
  }
  found["latency_ps"] = latencies.table();
  // A CPU proxy forwards messages to other hosts one at a time.
  const machine::KernelCost& cost = gpu::kernel_cost(machine);
  found["proxy_message_ps"] = cost.gpu_initiated_adapters ? 0 : cost.proxy_message.ps();
  std::vector<std::int64_t> hosts;
  for (int pe = 0; pe < pes.pes(); ++pe) hosts.push_back(machine.host_of_rank(pe));
  found["hosts"] = column_of(std::move(hosts));
  found["end_ps"] = pes.finished_at().ps();
  return found;
}

}  // namespace towpath::bindings
