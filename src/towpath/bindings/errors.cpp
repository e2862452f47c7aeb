// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/hazards/errors.hpp"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <stdexcept>
#include <typeinfo>
#include <utility>

#include "towpath/base/deadlock_error.hpp"
#include "towpath/machine/checks.hpp"
#include "towpath/transport/transport.hpp"

// Maps errors of the core to towpath/errors.py, with their fields.

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace towpath;
using machine::DescriptionError;
using tenstorrent::Hazard;
using tenstorrent::HazardError;
using transport::TransportError;

const char* name_of(TransportError::Kind kind) {
  switch (kind) {
    case TransportError::Kind::peer_died: return "peer_died";
    case TransportError::Kind::timeout: return "timeout";
    case TransportError::Kind::disagreement: return "disagreement";
  }
  return "";
}

template <typename... Fields>
void raise(const char* type_name, const std::exception& error, Fields&&... fields) {
  const nb::object type = nb::module_::import_("towpath.errors").attr(type_name);
  const nb::object raised = type(error.what(), std::forward<Fields>(fields)...);
  PyErr_SetObject(type.ptr(), raised.ptr());
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const DeadlockError& error) {
    raise("DeadlockError", error, "cycle"_a = error.cycle());
  } catch (const HazardError& error) {
    const tenstorrent::KernelName& culprit = error.culprit();
    raise("HazardError", error, "hazard"_a = tenstorrent::name_of(error.hazard()),
          "culprit"_a = culprit.kernel, "chip"_a = culprit.chip,
          "core"_a = std::pair(culprit.core.x, culprit.core.y));
  } catch (const TransportError& error) {
    const bool has_peer = error.peer() != transport::kNoPeer;
    raise("TransportError", error, "kind"_a = name_of(error.kind()),
          "peer"_a = has_peer ? nb::object(nb::int_(error.peer())) : nb::object(nb::none()));
  } catch (const DescriptionError& error) {
    raise("DescriptionError", error, "field"_a = error.field(), "problem"_a = error.problem());
  } catch (const std::runtime_error& error) {
    // Derived types have separate translators.
    if (typeid(error) != typeid(std::runtime_error)) throw;
    raise("RunError", error);
  } catch (const std::invalid_argument& error) {
    if (typeid(error) != typeid(std::invalid_argument)) throw;
    raise("ConfigError", error);
  }
}

// One error of each type, for tests of the translation: no Python call can make a kernel break a
// rule.
void throw_example(std::string_view type) {
  if (type == "DeadlockError") throw DeadlockError("a waits for b", {"a", "b"});
  if (type == "HazardError") {
    throw HazardError(Hazard::source_overwritten, {2, {1, 3}, "sender"}, "sender overwrites");
  }
  if (type == "TransportError") {
    throw TransportError(TransportError::Kind::peer_died, 3, "rank 3 died");
  }
  if (type == "RunError") throw std::runtime_error("kernel 'a' goes on at the limit");
  throw std::invalid_argument(fmt::format("'{}' is not an error of the core", type));
}

}  // namespace

void bind_errors(nb::module_& module) {
  nb::register_exception_translator(translate);
  module.def("throw_example", &throw_example, "type"_a);
}
