// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/chrono.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "backend.hpp"
#include "symmetric_memory.hpp"

namespace py = pybind11;

using towpath_torch::BackendOptions;
using towpath_torch::Event;
using towpath_torch::Timeline;
using towpath_torch::TowpathBackend;

namespace {

const towpath_group_api& api_from(const py::capsule& capsule) {
  const auto* api = capsule.get_pointer<const towpath_group_api>();
  if (std::string(capsule.name()) != TOWPATH_GROUP_API_NAME ||
      api->version != TOWPATH_GROUP_API_VERSION) {
    throw std::invalid_argument("this extension was built for another version of towpath");
  }
  return *api;
}

const char* name_of(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::begin: return "begin";
    case Event::Kind::wait: return "wait";
    case Event::Kind::future: return "future";
    case Event::Kind::compute: return "compute";
    case Event::Kind::open: return "open";
    case Event::Kind::close: return "close";
  }
  return "";
}

c10::intrusive_ptr<c10d::Backend> create(const py::capsule& api,
                                         const c10::intrusive_ptr<c10d::Store>& store,
                                         const BackendOptions& options) {
  const towpath_group_api& table = api_from(api);
  const py::gil_scoped_release released;
  return c10::make_intrusive<TowpathBackend>(table, store, options);
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  py::class_<Event>(module, "Event")
      .def_property_readonly("kind", [](const Event& event) { return name_of(event.kind); })
      .def_readonly("work", &Event::work)
      .def_readonly("name", &Event::name)
      .def_readonly("size_bytes", &Event::size_bytes)
      .def_readonly("peer", &Event::peer)
      .def_readonly("ranks", &Event::ranks)
      .def_readonly("seconds", &Event::seconds);
  py::class_<Timeline, std::shared_ptr<Timeline>>(module, "Timeline")
      .def(py::init<>())
      .def(
          "compute",
          [](Timeline& self, double seconds) { self.note(Event::Kind::compute, 0, seconds); },
          py::arg("seconds"))
      .def(
          "open", [](Timeline& self, double seconds) { self.note(Event::Kind::open, 0, seconds); },
          py::arg("seconds"))
      .def("close", [](Timeline& self) { self.note(Event::Kind::close, 0); })
      .def("events", &Timeline::events)
      .def("clear", &Timeline::clear);
  py::class_<BackendOptions>(module, "Options")
      .def(py::init<>())
      .def_readwrite("rank", &BackendOptions::rank)
      .def_readwrite("ranks", &BackendOptions::ranks)
      .def_readwrite("name", &BackendOptions::name)
      .def_readwrite("transport", &BackendOptions::transport)
      .def_readwrite("address", &BackendOptions::address)
      .def_readwrite("timeout", &BackendOptions::timeout)
      .def_readwrite("global_ranks", &BackendOptions::global_ranks)
      .def_readwrite("timeline", &BackendOptions::timeline);
  module.def(
      "register_symmetric_memory",
      [](const py::capsule& api) { towpath_torch::register_symmetric_memory(api_from(api)); },
      py::arg("api"));
  module.def(
      "sum_in_place",
      [](const c10::intrusive_ptr<c10d::Backend>& backend, const at::Tensor& tensor) {
        auto* const own = dynamic_cast<TowpathBackend*>(backend.get());
        TORCH_CHECK(own != nullptr, "sum_in_place needs a group of the backend towpath, but got ",
                    backend->getBackendName());
        own->sum_in_place(tensor);
      },
      py::arg("backend"), py::arg("tensor"), py::call_guard<py::gil_scoped_release>());
  module.def("create", &create, py::arg("api"), py::arg("store"), py::arg("options"));
}
