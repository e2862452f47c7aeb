// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "towpath/bindings/plan.hpp"
#include "towpath/collective/data/call_data.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace towpath;
using collective::CallData;
using collective::RankBuffers;

// A memoryview, so that no array library is loaded.
using View = nb::ndarray<nb::memview, std::uint8_t, nb::ndim<1>, nb::c_contig>;

// A view that keeps its buffers alive.
View view_of(std::span<std::byte> bytes, const RankBuffers& buffers) {
  return View(bytes.data(), {bytes.size()}, nb::find(buffers));
}

}  // namespace

void bind_data(nb::module_& module) {
  nb::class_<CallData>(module, "CallData",
                       "What the ranks of a call bring, and what they must find.")
      .def(nb::new_([](std::shared_ptr<collective::Schedule> schedule, std::uint64_t elements,
                       std::string_view type, std::string_view operation) {
             return std::make_shared<CallData>(std::move(schedule), elements,
                                               bindings::reduction_from(type, operation));
           }),
           "schedule"_a, "elements"_a, "type"_a = "float32", "operation"_a = "sum",
           "`elements` is the size of the whole array, as of a Plan. Raises ValueError.")
      .def("count_wrong", &CallData::count_wrong, "ranks"_a,
           nb::call_guard<nb::gil_scoped_release>(),
           "How many elements of the ranks' outputs are not what they must be. Raises ValueError\n"
           "for an output of another size.");
  nb::class_<RankBuffers>(module, "RankBuffers", "The memory that a rank brings to a call.")
      .def(nb::init<const CallData&, int, bool>(), "data"_a, "rank"_a, nb::kw_only(),
           "in_place"_a = false)
      .def_prop_ro("rank", &RankBuffers::rank)
      .def_prop_ro(
          "input", [](const RankBuffers& self) { return view_of(self.input(), self); },
          "Its bytes, with the rank's test data.")
      .def_prop_ro(
          "output", [](const RankBuffers& self) { return view_of(self.output(), self); },
          "Its bytes, with what is neutral to no operation; in place, of the same memory.")
      .def(
          "clear_input",
          [](const RankBuffers& self) { std::ranges::fill(self.input(), std::byte{0}); },
          "Makes every element of the input zero.");
}
