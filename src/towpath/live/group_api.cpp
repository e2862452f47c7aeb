// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/group_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "towpath/live/group.hpp"
#include "towpath/live/shared_array.hpp"
#include "towpath/os/stream.hpp"
#include "towpath/transport/reduction.hpp"

using towpath::Time;
using towpath::live::CallPointer;
using towpath::live::Group;
using towpath::live::Kind;
using towpath::live::Request;
using towpath::live::SharedArray;
using towpath::live::Span;
using towpath::transport::DataType;
using towpath::transport::ReductionOperation;
using towpath::transport::timeout_from;
using towpath::transport::TransportError;

struct towpath_group {
  Group group;
};

struct towpath_call {
  CallPointer call;
};

struct towpath_array {
  SharedArray array;
};

namespace {

int number_of(TransportError::Kind kind) {
  switch (kind) {
    case TransportError::Kind::peer_died: return TOWPATH_PEER_DIED;
    case TransportError::Kind::timeout: return TOWPATH_TIMEOUT;
    case TransportError::Kind::disagreement: return TOWPATH_DISAGREEMENT;
  }
  return TOWPATH_WRONG;
}

void say(towpath_error* error, int kind, int peer, std::string_view sentence) {
  error->kind = kind;
  error->peer = peer;
  const std::size_t size = sentence.copy(error->sentence, sizeof(error->sentence) - 1);
  error->sentence[size] = '\0';
}

// Calls function(). An exception goes into the error, and null is returned.
template <typename Function>
auto guarded(towpath_error* error, const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (const TransportError& thrown) {
    say(error, number_of(thrown.kind()), thrown.peer(), thrown.what());
  } catch (const std::exception& thrown) {
    say(error, TOWPATH_WRONG, -1, thrown.what());
  }
  return nullptr;
}

std::vector<Span> spans_from(const towpath_span* spans, std::uint64_t count) {
  std::vector<Span> result(count);
  std::transform(spans, spans + count, result.begin(), [](const towpath_span& span) {
    return Span{static_cast<std::byte*>(span.data), span.size_bytes};
  });
  return result;
}

// Numbers come from another program, which may have been compiled against another header.
static_assert(static_cast<int>(Kind::barrier) == TOWPATH_BARRIER);
static_assert(static_cast<int>(DataType::int8) == TOWPATH_INT8);
static_assert(static_cast<int>(DataType::uint8) == TOWPATH_UINT8);
static_assert(static_cast<int>(DataType::int32) == TOWPATH_INT32);
static_assert(static_cast<int>(DataType::uint32) == TOWPATH_UINT32);
static_assert(static_cast<int>(DataType::int64) == TOWPATH_INT64);
static_assert(static_cast<int>(DataType::uint64) == TOWPATH_UINT64);
static_assert(static_cast<int>(DataType::float16) == TOWPATH_FLOAT16);
static_assert(static_cast<int>(DataType::bfloat16) == TOWPATH_BFLOAT16);
static_assert(static_cast<int>(DataType::float32) == TOWPATH_FLOAT32);
static_assert(static_cast<int>(DataType::float64) == TOWPATH_FLOAT64);
static_assert(static_cast<int>(ReductionOperation::sum) == TOWPATH_SUM);
static_assert(static_cast<int>(ReductionOperation::prod) == TOWPATH_PROD);
static_assert(static_cast<int>(ReductionOperation::min) == TOWPATH_MIN);
static_assert(static_cast<int>(ReductionOperation::max) == TOWPATH_MAX);

int checked(int number, int count, std::string_view what) {
  if (number >= 0 && number < count) return number;
  throw std::invalid_argument(fmt::format("{} is {}; it must be 0 to {}", what, number, count - 1));
}

Request request_from(const towpath_request& asked) {
  Request request;
  request.kind =
      static_cast<Kind>(checked(asked.kind, towpath::live::kKinds, "the kind of a request"));
  request.name = asked.name;
  request.peer = asked.peer;
  request.tag = asked.tag;
  request.element = asked.element;
  request.inputs = spans_from(asked.inputs, asked.input_count);
  request.outputs = spans_from(asked.outputs, asked.output_count);
  // std::byte* and void* are passed alike.
  request.combination.combine =
      reinterpret_cast<decltype(request.combination.combine)>(asked.combine);
  request.combination.finish = reinterpret_cast<decltype(request.combination.finish)>(asked.finish);
  request.combination.context = asked.combine_context;
  request.combination.element_bytes = asked.element_bytes;
  request.timeout = timeout_from(asked.timeout_s);
  request.done = asked.done;
  request.context = asked.context;
  return request;
}

int listen(const char* host, char* job, std::uint64_t job_bytes, towpath_error* error) {
  try {
    std::string address;
    towpath::os::FileDescriptor socket = towpath::os::listen_anywhere(host, address);
    if (address.size() >= job_bytes) {
      throw std::invalid_argument(
          fmt::format("the address \"{}\" has {} bytes; it must have at most {}", address,
                      address.size(), job_bytes - 1));
    }
    job[address.copy(job, address.size())] = '\0';
    return socket.release();
  } catch (const std::exception& thrown) {
    say(error, TOWPATH_WRONG, towpath::transport::kNoPeer, thrown.what());
    return -1;
  }
}

towpath::transport::LiveOptions options_from(const towpath_options& asked) {
  towpath::transport::LiveOptions options;
  options.rendezvous = asked.job;
  options.token = asked.token;
  options.listener = asked.listener;
  options.rank = asked.rank;
  options.ranks = asked.ranks;
  options.timeout = timeout_from(asked.timeout_s);
  return options;
}

towpath_group* connect(const towpath_options* asked, towpath_error* error) {
  return guarded(error,
                 [&] { return new towpath_group{Group(asked->transport, options_from(*asked))}; });
}

towpath_array* share(const towpath_options* asked, void* place, std::uint64_t size_bytes,
                     towpath_error* error) {
  return guarded(error, [&] {
    return new towpath_array{
        SharedArray(options_from(*asked), static_cast<std::byte*>(place), size_bytes)};
  });
}

int wait_for(towpath_array* array, const towpath_condition* condition, towpath_error* error) {
  const auto* const ended = guarded(error, [&] {
    array->array.wait([&] { return condition->holds(condition->context) != 0; },
                      timeout_from(condition->timeout_s), condition->peer, condition->what);
    return condition;
  });
  return ended != nullptr ? TOWPATH_OK : error->kind;
}

towpath_call* post(towpath_group* group, const towpath_request* request, towpath_error* error) {
  return guarded(error,
                 [&] { return new towpath_call{group->group.post(request_from(*request))}; });
}

int say_if_any(const std::optional<TransportError>& thrown, towpath_error* error) {
  if (!thrown) return TOWPATH_OK;
  say(error, number_of(thrown->kind()), thrown->peer(), thrown->what());
  return error->kind;
}

DataType type_from(int number) {
  return static_cast<DataType>(checked(number, towpath::transport::kDataTypes, "the type"));
}

ReductionOperation operation_from(int number) {
  return static_cast<ReductionOperation>(
      checked(number, towpath::transport::kReductionOperations, "the operation"));
}

int reduce(void* result, const void* a, const void* b, std::uint64_t size_bytes,
           towpath_reduction reduction) {
  try {
    towpath::transport::reduce(static_cast<std::byte*>(result), static_cast<const std::byte*>(a),
                               static_cast<const std::byte*>(b), size_bytes,
                               {type_from(reduction.type), operation_from(reduction.operation)});
    return TOWPATH_OK;
  } catch (const std::exception&) {
    return TOWPATH_WRONG;
  }
}

int divide(void* data, std::uint64_t size_bytes, int type, std::int64_t divisor) {
  try {
    towpath::transport::divide(static_cast<std::byte*>(data), size_bytes, type_from(type), divisor);
    return TOWPATH_OK;
  } catch (const std::exception&) {
    return TOWPATH_WRONG;
  }
}

constexpr towpath_group_api kApi{
    .version = TOWPATH_GROUP_API_VERSION,
    .listen = listen,
    .connect = connect,
    .leave = [](towpath_group* group) { group->group.leave(); },
    .destroy = [](towpath_group* group) { delete group; },
    .abort = [](towpath_group* group, const char* reason) { group->group.abort(reason); },
    .failure = [](towpath_group* group,
                  towpath_error* error) { return say_if_any(group->group.failure(), error); },
    .sequence = [](const towpath_group* group) { return group->group.sequence(); },
    .post = post,
    .wake = [](towpath_group* group) { group->group.wake(); },
    .wait =
        [](towpath_group* group, towpath_call* call, double timeout_s) {
          return static_cast<int>(group->group.wait(call->call, timeout_from(timeout_s)));
        },
    .has_ended = [](const towpath_call* call) { return static_cast<int>(call->call->has_ended()); },
    .result = [](const towpath_call* call,
                 towpath_error* error) { return say_if_any(call->call->error, error); },
    .source = [](const towpath_call* call) { return call->call->source; },
    .sequence_of = [](const towpath_call* call) { return call->call->sequence; },
    .release = [](towpath_call* call) { delete call; },
    .reduce = reduce,
    .divide = divide,
    .share = share,
    .array_of = [](const towpath_array* array,
                   int rank) { return static_cast<void*>(array->array.of(rank)); },
    .wait_for = wait_for,
    .wake_peers = [](towpath_array* array) { array->array.wake_peers(); },
    .unshare = [](towpath_array* array) { delete array; },
};

}  // namespace

extern "C" const towpath_group_api* towpath_get_group_api(void) { return &kApi; }
