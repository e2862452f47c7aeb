// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "backend.hpp"
#include "tensors.hpp"

// The backend's messages, barriers and coalescing.

namespace towpath_torch {

using c10d::OpType;
using WorkPointer = TowpathBackend::WorkPointer;

// --- messages -----------------------------------------------------------------------------------

WorkPointer TowpathBackend::message(Draft& draft, int kind, const at::Tensor& tensor, int peer,
                                    uint64_t tag) {
  Asked& asked = ask(draft, kind);
  asked.request.peer = draft.peer = peer;
  asked.request.tag = tag;
  if (kind == TOWPATH_SEND) {
    asked.inputs = {span_of(to_send(draft, tensor))};
  } else {
    asked.outputs = {span_of(to_receive(draft, tensor))};
  }
  draft.size_bytes = tensor.nbytes();
  draft.work->set_results({tensor});
  return begin(draft);
}

WorkPointer TowpathBackend::send(Tensors& tensors, int destination, int tag) {
  Draft draft = this->draft({OpType::SEND, "send"}, options_.timeout, true, tensors);
  return message(draft, TOWPATH_SEND, only(tensors), destination, static_cast<uint32_t>(tag));
}

WorkPointer TowpathBackend::recv(Tensors& tensors, int source, int tag) {
  Draft draft = this->draft({OpType::RECV, "recv"}, options_.timeout, true, tensors);
  return message(draft, TOWPATH_RECEIVE, only(tensors), source, static_cast<uint32_t>(tag));
}

WorkPointer TowpathBackend::recvAnysource(Tensors& tensors, int tag) {
  Draft draft =
      this->draft({OpType::RECVANYSOURCE, "recvAnySource"}, options_.timeout, true, tensors);
  return message(draft, TOWPATH_RECEIVE, only(tensors), -1, static_cast<uint32_t>(tag));
}

// --- barriers -----------------------------------------------------------------------------------

WorkPointer TowpathBackend::barrier(const c10d::BarrierOptions& options) {
  Draft draft = this->draft({OpType::BARRIER, "barrier"}, options.timeout, options.asyncOp, {});
  ask(draft, TOWPATH_BARRIER);
  return begin(draft);
}

// One byte to or from a rank, outside the tags of users.
void TowpathBackend::pass_signal(int kind, int peer, uint64_t tag,
                                 std::chrono::milliseconds timeout) {
  const bool is_send = kind == TOWPATH_SEND;
  Draft draft =
      this->draft({is_send ? OpType::SEND : OpType::RECV, "monitored_barrier"}, timeout, false, {});
  message(draft, kind, at::zeros({1}, at::kByte), peer, tag)->wait();
}

void TowpathBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool waits_for_all) {
  using Clock = std::chrono::steady_clock;
  constexpr uint64_t kTags = uint64_t{1} << 40;  // above those of users
  const uint64_t arrived = kTags + 2 * ++monitored_barriers_;
  const uint64_t released = arrived + 1;
  const auto timeout = options.timeout == c10d::kUnsetTimeout ? options_.timeout : options.timeout;
  if (rank_ != 0) {
    try {
      pass_signal(TOWPATH_SEND, 0, arrived, timeout);
      pass_signal(TOWPATH_RECEIVE, 0, released, timeout);
    } catch (const std::exception& error) {
      TORCH_CHECK(false, "Rank ", rank_,
                  " successfully reached monitoredBarrier, but received errors while waiting for "
                  "send/recv from rank 0. Please check rank 0 logs for faulty rank.\n "
                  "Original exception: \n",
                  error.what());
    }
    return;
  }
  const auto deadline = Clock::now() + timeout;
  std::vector<int> missing;
  for (int rank = 1; rank < size_; ++rank) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    TORCH_CHECK(left.count() > 0 || waits_for_all,
                "[Rank 0]: Rank 0 timed out in monitoredBarrier after ", timeout.count(), " ms");
    try {
      pass_signal(TOWPATH_RECEIVE, rank, arrived, std::max(left, std::chrono::milliseconds(1)));
    } catch (const std::exception& error) {
      TORCH_CHECK(waits_for_all, "[Rank 0]: Rank ", rank, " failed to pass monitoredBarrier in ",
                  timeout.count(), " ms\n Original exception: \n", error.what());
      missing.push_back(rank);
    }
  }
  TORCH_CHECK(missing.empty(), "[Rank 0]: Ranks ", c10::Join(", ", missing),
              " failed to pass monitoredBarrier in ", timeout.count(), " ms");
  for (int rank = 1; rank < size_; ++rank) pass_signal(TOWPATH_SEND, rank, released, timeout);
}

// --- the group -----------------------------------------------------------------------------------

namespace {

// Several works as one.
class WorkList final : public c10d::Work {
 public:
  explicit WorkList(std::vector<WorkPointer> works)
      : Work(-1, OpType::COALESCED), works_(std::move(works)) {}
  bool isCompleted() override {
    for (const auto& work : works_) {
      if (!work->isCompleted()) return false;
    }
    return true;
  }
  bool isSuccess() const override {
    for (const auto& work : works_) {
      if (!work->isSuccess()) return false;
    }
    return true;
  }
  bool wait(std::chrono::milliseconds timeout) override {
    const Remaining remaining(timeout);
    for (const auto& work : works_) work->wait(remaining.time());
    return true;
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    c10::List<c10::intrusive_ptr<c10::ivalue::Future>> futures(
        c10::FutureType::create(c10::ListType::ofTensors()));
    for (const auto& work : works_) futures.push_back(work->getFuture());
    return c10::collectAll(futures);
  }

 private:
  std::vector<WorkPointer> works_;
};

}  // namespace

void TowpathBackend::startCoalescing() {
  coalesces_ = true;
  coalesced_.clear();
}

WorkPointer TowpathBackend::endCoalescing() {
  coalesces_ = false;
  return c10::make_intrusive<WorkList>(std::exchange(coalesced_, {}));
}

}  // namespace towpath_torch
