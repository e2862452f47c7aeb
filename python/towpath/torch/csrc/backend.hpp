// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "tensors.hpp"
#include "work.hpp"

namespace towpath_torch {

struct BackendOptions {
  int rank = 0;
  int ranks = 1;
  std::string name = "towpath";
  std::string transport = "shm";
  std::string address;  // of this host, where the transport needs one
  std::chrono::milliseconds timeout{0};
  std::vector<int64_t> global_ranks;
  std::shared_ptr<Timeline> timeline;  // null where none is kept
};

// torch.distributed over a live group. What each method does is torch's contract; here is only
// how tensors become the spans of a request.
class TowpathBackend final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using WorkPointer = c10::intrusive_ptr<c10d::Work>;

  // Blocks until all ranks are there. The store tells the ranks the name of their job.
  TowpathBackend(const towpath_group_api& api, const c10::intrusive_ptr<c10d::Store>& store,
                 BackendOptions options);
  ~TowpathBackend() override { shutdown(); }

  const std::string getBackendName() const override { return options_.name; }
  c10::intrusive_ptr<Options> getBackendOptions() override;
  bool supportsCoalescing() const override { return true; }
  bool supportsSplitting() const override { return true; }
  void setTimeout(std::chrono::milliseconds timeout) override { options_.timeout = timeout; }
  c10d::ErrorType getError() override;

  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  // The same as a sum by allreduce() and wait(), without a work that nobody keeps: between two
  // layers of a model all code is cold, and each line of it comes from memory.
  void sum_in_place(const at::Tensor& tensor);
  WorkPointer allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPointer allreduce_coalesced(Tensors& tensors,
                                  const c10d::AllreduceCoalescedOptions& options) override;
  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPointer allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                        const c10d::AllgatherOptions& options) override;
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input,
                              const c10d::AllgatherOptions& options) override;
  WorkPointer allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                  const c10d::AllgatherOptions& options) override;
  WorkPointer allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) override;
  WorkPointer gather(std::vector<Tensors>& outputs, Tensors& inputs,
                     const c10d::GatherOptions& options) override;
  WorkPointer scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                      const c10d::ScatterOptions& options) override;
  WorkPointer reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                             const c10d::ReduceScatterOptions& options) override;
  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& options) override;
  WorkPointer reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::ReduceScatterOptions& options) override;
  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input,
                            std::vector<int64_t>& output_splits, std::vector<int64_t>& input_splits,
                            const c10d::AllToAllOptions& options) override;
  WorkPointer alltoall(Tensors& outputs, Tensors& inputs,
                       const c10d::AllToAllOptions& options) override;
  WorkPointer send(Tensors& tensors, int destination, int tag) override;
  WorkPointer recv(Tensors& tensors, int source, int tag) override;
  WorkPointer recvAnysource(Tensors& tensors, int tag) override;
  WorkPointer barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool waits_for_all) override;

  void startCoalescing() override;
  WorkPointer endCoalescing() override;

  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return api_.sequence(group().group); }

  c10::intrusive_ptr<Backend> split(const c10::intrusive_ptr<c10d::Store>& store,
                                    const std::vector<int>& ranks,
                                    const c10::intrusive_ptr<Options>& options) override;
  void abort() override;
  void shutdown() override;

 private:
  // A request with the spans that it points to.
  struct Asked {
    towpath_request request{};
    Spans inputs;
    Spans outputs;
  };
  struct Title {
    c10d::OpType type;
    const char* name;
  };
  // A work in the making.
  struct Draft {
    c10::intrusive_ptr<GroupWork> work;
    c10::SmallVector<Asked, 1> asked;
    std::chrono::milliseconds timeout;
    bool is_async = true;
    const char* name;
    uint64_t size_bytes = 0;  // for the timeline
    int peer = -1;
  };

  Group& group() const;
  Draft draft(const Title& title, std::chrono::milliseconds timeout, bool is_async,
              const Tensors& inputs) const;
  Asked& ask(Draft& draft, int kind) const;
  WorkPointer begin(Draft& draft);

  // A contiguous tensor with what is sent, and one for what is received; kept by the work.
  at::Tensor to_send(Draft& draft, const at::Tensor& tensor) const;
  at::Tensor to_receive(Draft& draft, const at::Tensor& tensor) const;
  void reduce_with(Asked& asked, const at::Tensor& tensor, const c10d::ReduceOp& operation) const;
  at::Tensor scaled(const at::Tensor& tensor, const c10d::ReduceOp& operation) const;

  void ask_all_reduce(Draft& draft, const at::Tensor& tensor,
                      const c10d::ReduceOp& operation) const;
  void ask_all_gather(Draft& draft, const Tensors& outputs, const at::Tensor& input) const;
  void ask_all_gather_into(Draft& draft, const at::Tensor& output, const at::Tensor& input) const;
  void ask_reduce_scatter(Draft& draft, const at::Tensor& output, const at::Tensor& input,
                          const c10d::ReduceOp& operation) const;
  WorkPointer message(Draft& draft, int kind, const at::Tensor& tensor, int peer, uint64_t tag);
  void pass_signal(int kind, int peer, uint64_t tag, std::chrono::milliseconds timeout);

  const towpath_group_api& api_;
  BackendOptions options_;
  std::shared_ptr<Group> group_;
  bool coalesces_ = false;
  std::vector<WorkPointer> coalesced_;
  uint64_t monitored_barriers_ = 0;
};

}  // namespace towpath_torch
