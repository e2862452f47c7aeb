// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "backend.hpp"

#include <c10/util/Exception.h>

#include <numeric>
#include <utility>

#include "rendezvous.hpp"
#include "tensors.hpp"

namespace towpath_torch {

using c10d::OpType;
using WorkPointer = TowpathBackend::WorkPointer;

TowpathBackend::TowpathBackend(const towpath_group_api& api,
                               const c10::intrusive_ptr<c10d::Store>& store, BackendOptions options)
    : Backend(options.rank, options.ranks), api_(api), options_(std::move(options)) {
  const Job job =
      meet(api, *store, rank_, {options_.transport, options_.address}, options_.timeout);
  towpath_error error{};
  const towpath_options asked{.transport = job.transport.c_str(),
                              .job = job.name.c_str(),
                              .token = job.token.c_str(),
                              .listener = job.listener,
                              .rank = rank_,
                              .ranks = size_,
                              .timeout_s = static_cast<double>(options_.timeout.count()) / 1e3};
  towpath_group* const joined = api_.connect(&asked, &error);
  if (joined == nullptr) raise(error, options_.global_ranks);
  group_ = std::make_shared<Group>(api_, joined, options_.global_ranks);
  init();
}

c10::intrusive_ptr<c10d::Backend::Options> TowpathBackend::getBackendOptions() {
  auto options = c10::make_intrusive<Options>(options_.name, options_.timeout);
  options->global_ranks_in_group.assign(options_.global_ranks.begin(), options_.global_ranks.end());
  return options;
}

Group& TowpathBackend::group() const {
  TORCH_CHECK(group_ != nullptr, "this process group was shut down");
  return *group_;
}

// What ended the group: nothing can follow on it.
c10d::ErrorType TowpathBackend::getError() {
  towpath_error error{};
  if (group_ == nullptr || api_.failure(group_->group, &error) == TOWPATH_OK) {
    return c10d::ErrorType::SUCCESS;
  }
  if (error.kind == TOWPATH_TIMEOUT) return c10d::ErrorType::TIMEOUT;
  return error.peer == rank_ ? c10d::ErrorType::COMM_ERROR : c10d::ErrorType::REMOTE_ERROR;
}

TowpathBackend::Draft TowpathBackend::draft(const Title& title, std::chrono::milliseconds timeout,
                                            bool is_async, const Tensors& inputs) const {
  group();
  Draft draft;
  if (is_profiled()) {
    const std::string shown = options_.name + ":" + title.name;
    draft.work = c10::make_intrusive<GroupWork>(group_, rank_, title.type, shown.c_str(), inputs);
  } else {
    draft.work = c10::make_intrusive<GroupWork>(group_, rank_, title.type);
  }
  draft.timeout = timeout == c10d::kUnsetTimeout ? options_.timeout : timeout;
  draft.is_async = is_async;
  draft.name = title.name;
  return draft;
}

TowpathBackend::Asked& TowpathBackend::ask(Draft& draft, int kind) const {
  Asked& asked = draft.asked.emplace_back();
  asked.request.kind = kind;
  asked.request.element_bytes = 1;
  return asked;
}

WorkPointer TowpathBackend::begin(Draft& draft) {
  Requests requests;
  for (Asked& asked : draft.asked) {
    towpath_request& request = requests.emplace_back(asked.request);
    request.name = draft.name;
    request.inputs = asked.inputs.data();
    request.input_count = asked.inputs.size();
    request.outputs = asked.outputs.data();
    request.output_count = asked.outputs.size();
    request.timeout_s = static_cast<double>(draft.timeout.count()) / 1e3;
  }
  if (options_.timeline) {
    Event event;
    event.name = draft.name;
    event.size_bytes = draft.size_bytes;
    event.peer = draft.peer;
    event.ranks = group_->global_ranks;
    const uint64_t number = options_.timeline->begin(std::move(event));
    draft.work->follow(options_.timeline, number);
  }
  draft.work->begin(requests, draft.is_async);
  if (coalesces_) coalesced_.push_back(draft.work);
  return draft.work;
}

at::Tensor TowpathBackend::to_send(Draft& draft, const at::Tensor& tensor) const {
  check_tensor(tensor);
  const at::Tensor flat =
      is_plain(tensor) ? tensor : tensor.detach().resolve_conj().resolve_neg().contiguous();
  draft.work->keep(flat);
  return flat;
}

at::Tensor TowpathBackend::to_receive(Draft& draft, const at::Tensor& tensor) const {
  check_tensor(tensor);
  if (is_plain(tensor)) {
    draft.work->keep(tensor);
    return tensor;
  }
  const at::Tensor whole = tensor.detach();
  const at::Tensor flat = at::empty(whole.sizes(), whole.options());
  draft.work->keep(flat);
  draft.work->then([whole, flat] { whole.copy_(flat); });
  return flat;
}

void TowpathBackend::reduce_with(Asked& asked, const at::Tensor& tensor,
                                 const c10d::ReduceOp& operation) const {
  const auto type = tensor.scalar_type();
  Combination& how = group_->combinations.of(type, operation.op_);
  asked.request.combine = how.combine;
  asked.request.finish = how.finish;
  asked.request.combine_context = &how;
  asked.request.element_bytes = static_cast<uint32_t>(tensor.element_size());
  asked.request.element = static_cast<uint32_t>(type) << 8 | static_cast<uint32_t>(operation.op_);
}

// What is reduced: for a premultiplied sum, a copy times the factor. torch multiplies no fp8.
at::Tensor TowpathBackend::scaled(const at::Tensor& tensor, const c10d::ReduceOp& operation) const {
  if (operation.op_ != c10d::ReduceOp::PREMUL_SUM) return tensor;
  const auto* factor = dynamic_cast<c10d::PreMulSumSupplement*>(operation.supplement_.get());
  TORCH_CHECK(factor != nullptr, "a premultiplied sum needs its factor");
  const at::NoGradGuard without_gradients;
  const bool is_fp8 = c10::isFloat8Type(tensor.scalar_type());
  const at::Tensor wide = is_fp8 ? tensor.to(at::kFloat) : tensor;
  const at::Tensor product =
      factor->tensor_factor.defined() ? wide * factor->tensor_factor : wide * factor->double_factor;
  return product.to(tensor.scalar_type());
}

// --- reductions -------------------------------------------------------------------------------

void TowpathBackend::ask_all_reduce(Draft& draft, const at::Tensor& tensor,
                                    const c10d::ReduceOp& operation) const {
  check_tensor(tensor);
  Asked& asked = ask(draft, TOWPATH_ALL_REDUCE);
  reduce_with(asked, tensor, operation);
  asked.inputs = {span_of(to_send(draft, scaled(tensor, operation)))};
  asked.outputs = {span_of(to_receive(draft, tensor))};
  draft.size_bytes += tensor.nbytes();
}

WorkPointer TowpathBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  if (only(tensors).is_sparse()) return allreduce_sparse(tensors, options);
  Draft draft =
      this->draft({OpType::ALLREDUCE, "all_reduce"}, options.timeout, options.asyncOp, tensors);
  ask_all_reduce(draft, tensors.front(), options.reduceOp);
  draft.work->set_results(tensors);
  return begin(draft);
}

void TowpathBackend::sum_in_place(const at::Tensor& tensor) {
  group();
  const std::shared_ptr<Group> kept = group_;  // another thread may shut this backend down
  check_tensor(tensor);
  if (coalesces_ || options_.timeline || is_profiled() || !is_plain(tensor)) {
    Tensors tensors{tensor};
    c10d::AllreduceOptions options;
    options.asyncOp = false;
    allreduce(tensors, options)->wait();
    return;
  }
  Asked asked;
  asked.request.kind = TOWPATH_ALL_REDUCE;
  asked.request.name = "all_reduce";
  const towpath_span span = span_of(tensor);
  asked.request.inputs = asked.request.outputs = &span;
  asked.request.input_count = asked.request.output_count = 1;
  asked.request.timeout_s = static_cast<double>(options_.timeout.count()) / 1e3;
  reduce_with(asked, tensor, c10d::ReduceOp::SUM);
  kept->run(asked.request);
}

// Sparse sums are gathered and added up by every rank. Blocks: how much there is to gather, only
// the first step tells.
WorkPointer TowpathBackend::allreduce_sparse(Tensors& tensors,
                                             const c10d::AllreduceOptions& options) {
  const at::NoGradGuard without_gradients;
  at::Tensor tensor = only(tensors);
  TORCH_CHECK(tensor.layout() == at::kSparse && options.reduceOp.op_ == c10d::ReduceOp::SUM,
              "towpath reduces sparse COO tensors by a sum, and no other");
  const at::Tensor own = tensor.detach().coalesce();
  const auto gathered = [&](const at::Tensor& part, const std::vector<int64_t>& rows) {
    Tensors outputs;
    for (const int64_t count : rows) {
      std::vector<int64_t> shape = part.sizes().vec();
      shape.front() = count;
      outputs.push_back(at::empty(shape, part.options()));
    }
    Draft draft = this->draft({OpType::ALLGATHER, "all_reduce_sparse"}, options.timeout, false, {});
    ask_all_gather(draft, outputs, part);
    begin(draft)->wait();
    return outputs;
  };
  const Tensors counts =
      gathered(at::full({1}, own._nnz(), at::kLong), std::vector<int64_t>(size_, 1));
  std::vector<int64_t> rows;
  for (const at::Tensor& count : counts) rows.push_back(count.item<int64_t>());
  const Tensors indices = gathered(own.indices().t().contiguous(), rows);
  const Tensors values = gathered(own.values().contiguous(), rows);
  at::Tensor sum = at::sparse_coo_tensor(at::cat(indices).t(), at::cat(values), own.sizes());
  tensor.copy_(sum.coalesce());
  Draft draft =
      this->draft({OpType::_ALLREDUCE_SPARSE, "all_reduce"}, options.timeout, true, tensors);
  draft.work->set_results(tensors);
  return begin(draft);
}

WorkPointer TowpathBackend::allreduce_coalesced(Tensors& tensors,
                                                const c10d::AllreduceCoalescedOptions& options) {
  Draft draft = this->draft({OpType::ALLREDUCE_COALESCED, "all_reduce"}, options.timeout,
                            options.asyncOp, tensors);
  for (const at::Tensor& tensor : tensors) ask_all_reduce(draft, tensor, options.reduceOp);
  draft.work->set_results(tensors);
  return begin(draft);
}

WorkPointer TowpathBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const at::Tensor& tensor = only(tensors);
  check_tensor(tensor);
  Draft draft = this->draft({OpType::REDUCE, "reduce"}, options.timeout, options.asyncOp, tensors);
  Asked& asked = ask(draft, TOWPATH_REDUCE);
  reduce_with(asked, tensor, options.reduceOp);
  asked.request.peer = draft.peer = static_cast<int>(options.rootRank);
  const at::Tensor input = to_send(draft, scaled(tensor, options.reduceOp));
  asked.inputs = {span_of(input)};
  asked.outputs = {span_of(options.rootRank == rank_ ? to_receive(draft, tensor) : input)};
  draft.size_bytes = tensor.nbytes();
  draft.work->set_results(tensors);
  return begin(draft);
}

void TowpathBackend::ask_reduce_scatter(Draft& draft, const at::Tensor& output,
                                        const at::Tensor& input,
                                        const c10d::ReduceOp& operation) const {
  check_tensor(output);
  check_like(output, input);
  TORCH_CHECK(input.numel() == output.numel() * size_, "reduce_scatter needs an input of ", size_,
              " times the elements of its output, but got ", input.numel(), " and ",
              output.numel());
  Asked& asked = ask(draft, TOWPATH_REDUCE_SCATTER);
  reduce_with(asked, output, operation);
  const at::Tensor whole = to_send(draft, scaled(input, operation));
  const uint64_t part = output.nbytes();
  for (int rank = 0; rank < size_; ++rank) {
    asked.inputs.push_back({static_cast<char*>(whole.data_ptr()) + part * rank, part});
  }
  asked.outputs = {span_of(to_receive(draft, output))};
  draft.size_bytes += input.nbytes();
}

WorkPointer TowpathBackend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                           const c10d::ReduceScatterOptions& options) {
  const at::Tensor& output = only(outputs);
  check_tensor(output);
  TORCH_CHECK(inputs.size() == 1 && inputs.front().size() == static_cast<size_t>(size_),
              "reduce_scatter needs a list of ", size_, " tensors");
  Draft draft = this->draft({OpType::REDUCE_SCATTER, "reduce_scatter"}, options.timeout,
                            options.asyncOp, inputs.front());
  Asked& asked = ask(draft, TOWPATH_REDUCE_SCATTER);
  reduce_with(asked, output, options.reduceOp);
  for (const at::Tensor& input : inputs.front()) {
    check_like(output, input);
    asked.inputs.push_back(span_of(to_send(draft, scaled(input, options.reduceOp))));
  }
  asked.outputs = {span_of(to_receive(draft, output))};
  draft.size_bytes = bytes_of(inputs.front());
  draft.work->set_results(outputs);
  return begin(draft);
}

WorkPointer TowpathBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                 const c10d::ReduceScatterOptions& options) {
  Draft draft = this->draft({OpType::_REDUCE_SCATTER_BASE, "reduce_scatter"}, options.timeout,
                            options.asyncOp, {input});
  ask_reduce_scatter(draft, output, input, options.reduceOp);
  draft.work->set_results({output});
  return begin(draft);
}

WorkPointer TowpathBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  TORCH_CHECK(outputs.size() == inputs.size(), "as many outputs as inputs are needed");
  Draft draft = this->draft({OpType::REDUCE_SCATTER_TENSOR_COALESCED, "reduce_scatter"},
                            options.timeout, options.asyncOp, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    ask_reduce_scatter(draft, outputs[i], inputs[i], options.reduceOp);
  }
  draft.work->set_results(outputs);
  return begin(draft);
}

// --- what only moves --------------------------------------------------------------------------

WorkPointer TowpathBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const at::Tensor& tensor = only(tensors);
  Draft draft =
      this->draft({OpType::BROADCAST, "broadcast"}, options.timeout, options.asyncOp, tensors);
  Asked& asked = ask(draft, TOWPATH_BROADCAST);
  asked.request.peer = draft.peer = static_cast<int>(options.rootRank);
  const bool is_root = options.rootRank == rank_;
  const at::Tensor flat = is_root ? to_send(draft, tensor) : to_receive(draft, tensor);
  asked.inputs = asked.outputs = {span_of(flat)};
  draft.size_bytes = tensor.nbytes();
  draft.work->set_results(tensors);
  return begin(draft);
}

void TowpathBackend::ask_all_gather(Draft& draft, const Tensors& outputs,
                                    const at::Tensor& input) const {
  TORCH_CHECK(outputs.size() == static_cast<size_t>(size_), "all_gather needs a list of ", size_,
              " tensors, but got ", outputs.size());
  Asked& asked = ask(draft, TOWPATH_ALL_GATHER);
  asked.inputs = {span_of(to_send(draft, input))};
  for (const at::Tensor& output : outputs) {
    check_like(output, input);
    asked.outputs.push_back(span_of(to_receive(draft, output)));
  }
  draft.size_bytes += bytes_of(outputs);
}

WorkPointer TowpathBackend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                      const c10d::AllgatherOptions& options) {
  TORCH_CHECK(outputs.size() == 1, "towpath takes one list of outputs, but got ", outputs.size());
  Draft draft =
      this->draft({OpType::ALLGATHER, "all_gather"}, options.timeout, options.asyncOp, inputs);
  ask_all_gather(draft, outputs.front(), only(inputs));
  draft.work->set_results(outputs.front());
  return begin(draft);
}

WorkPointer TowpathBackend::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                                const c10d::AllgatherOptions& options) {
  TORCH_CHECK(outputs.size() == static_cast<size_t>(size_), "allgather_coalesced needs ", size_,
              " lists, but got ", outputs.size());
  Draft draft = this->draft({OpType::ALLGATHER_COALESCED, "all_gather"}, options.timeout,
                            options.asyncOp, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensors of_all;
    for (const Tensors& of_rank : outputs) of_all.push_back(of_rank.at(i));
    ask_all_gather(draft, of_all, inputs[i]);
  }
  return begin(draft);
}

void TowpathBackend::ask_all_gather_into(Draft& draft, const at::Tensor& output,
                                         const at::Tensor& input) const {
  check_like(output, input);
  TORCH_CHECK(output.numel() == input.numel() * size_, "all_gather needs an output of ", size_,
              " times the elements of its input, but got ", output.numel(), " and ", input.numel());
  Asked& asked = ask(draft, TOWPATH_ALL_GATHER);
  const at::Tensor flat = to_send(draft, input);
  asked.inputs = {span_of(flat)};
  const at::Tensor whole = to_receive(draft, output);
  const uint64_t part = flat.nbytes();
  for (int rank = 0; rank < size_; ++rank) {
    asked.outputs.push_back({static_cast<char*>(whole.data_ptr()) + part * rank, part});
  }
  draft.size_bytes += output.nbytes();
}

WorkPointer TowpathBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                            const c10d::AllgatherOptions& options) {
  Draft draft = this->draft({OpType::_ALLGATHER_BASE, "all_gather"}, options.timeout,
                            options.asyncOp, {input});
  ask_all_gather_into(draft, output, input);
  draft.work->set_results({output});
  return begin(draft);
}

WorkPointer TowpathBackend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                            const c10d::AllgatherOptions& options) {
  TORCH_CHECK(outputs.size() == inputs.size(), "as many outputs as inputs are needed");
  Draft draft = this->draft({OpType::ALLGATHER_COALESCED, "all_gather"}, options.timeout,
                            options.asyncOp, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) ask_all_gather_into(draft, outputs[i], inputs[i]);
  draft.work->set_results(outputs);
  return begin(draft);
}

WorkPointer TowpathBackend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                   const c10d::GatherOptions& options) {
  const at::Tensor& input = only(inputs);
  const bool is_root = options.rootRank == rank_;
  TORCH_CHECK(!is_root || (outputs.size() == 1 && outputs[0].size() == static_cast<size_t>(size_)),
              "gather needs a list of ", size_, " tensors at its root");
  Draft draft = this->draft({OpType::GATHER, "gather"}, options.timeout, options.asyncOp, inputs);
  draft.peer = static_cast<int>(options.rootRank);
  Asked& asked = ask(draft, TOWPATH_EXCHANGE);
  asked.inputs.resize(size_);
  asked.outputs.resize(size_);
  asked.inputs.at(options.rootRank) = span_of(to_send(draft, input));
  for (int rank = 0; is_root && rank < size_; ++rank) {
    check_like(outputs[0][rank], input);
    asked.outputs[rank] = span_of(to_receive(draft, outputs[0][rank]));
  }
  draft.size_bytes = input.nbytes() * size_;
  if (is_root) draft.work->set_results(outputs[0]);
  return begin(draft);
}

WorkPointer TowpathBackend::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                    const c10d::ScatterOptions& options) {
  const at::Tensor& output = only(outputs);
  const bool is_root = options.rootRank == rank_;
  TORCH_CHECK(!is_root || (inputs.size() == 1 && inputs[0].size() == static_cast<size_t>(size_)),
              "scatter needs a list of ", size_, " tensors at its root");
  Draft draft = this->draft({OpType::SCATTER, "scatter"}, options.timeout, options.asyncOp,
                            is_root ? inputs[0] : outputs);
  draft.peer = static_cast<int>(options.rootRank);
  Asked& asked = ask(draft, TOWPATH_EXCHANGE);
  asked.inputs.resize(size_);
  asked.outputs.resize(size_);
  for (int rank = 0; is_root && rank < size_; ++rank) {
    check_like(inputs[0][rank], output);
    asked.inputs[rank] = span_of(to_send(draft, inputs[0][rank]));
  }
  asked.outputs.at(options.rootRank) = span_of(to_receive(draft, output));
  draft.size_bytes = output.nbytes() * size_;
  draft.work->set_results(outputs);
  return begin(draft);
}

namespace {

// Consecutive parts of a contiguous tensor, cut along its first dimension as c10d says: by the
// splits, or equally where there are none.
Spans parts_of(const at::Tensor& flat, const std::vector<int64_t>& splits, int ranks) {
  std::vector<int64_t> rows = splits;
  const int64_t all_rows = flat.dim() == 0 ? 1 : flat.size(0);
  if (rows.empty()) {
    TORCH_CHECK(all_rows % ranks == 0,
                "Tensor's dim 0 does not divide equally across group size: ", all_rows,
                " rows among ", ranks, " ranks");
    rows.assign(ranks, all_rows / ranks);
  }
  TORCH_CHECK(rows.size() == static_cast<size_t>(ranks),
              "Number of tensor splits not equal to group size: ", rows.size(), " splits for ",
              ranks, " ranks");
  for (const int64_t count : rows) {
    TORCH_CHECK(count >= 0, "a split has ", count, " rows; 0 or more are allowed");
  }
  TORCH_CHECK(std::accumulate(rows.begin(), rows.end(), int64_t{0}) == all_rows,
              "Split sizes doesn't match total dim 0 size of ", all_rows);
  const uint64_t row_bytes = all_rows == 0 ? 0 : flat.nbytes() / static_cast<uint64_t>(all_rows);
  Spans spans;
  auto* place = static_cast<char*>(flat.data_ptr());
  for (const int64_t count : rows) {
    spans.push_back({place, row_bytes * static_cast<uint64_t>(count)});
    place += spans.back().size_bytes;
  }
  return spans;
}

}  // namespace

WorkPointer TowpathBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                          std::vector<int64_t>& output_splits,
                                          std::vector<int64_t>& input_splits,
                                          const c10d::AllToAllOptions& options) {
  check_like(output, input);
  Draft draft =
      this->draft({OpType::ALLTOALL_BASE, "all_to_all"}, options.timeout, options.asyncOp, {input});
  // Without splits all parts of all ranks are equal. With splits no rank knows those of the others.
  const bool is_equal = output_splits.empty() && input_splits.empty();
  if (!is_equal) draft.name = "all_to_all with splits";
  Asked& asked = ask(draft, is_equal ? TOWPATH_ALL_TO_ALL : TOWPATH_EXCHANGE);
  asked.inputs = parts_of(to_send(draft, input), input_splits, size_);
  asked.outputs = parts_of(to_receive(draft, output), output_splits, size_);
  draft.size_bytes = input.nbytes();
  draft.work->set_results({output});
  return begin(draft);
}

WorkPointer TowpathBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                     const c10d::AllToAllOptions& options) {
  TORCH_CHECK(outputs.size() == static_cast<size_t>(size_) && inputs.size() == outputs.size(),
              "all_to_all needs lists of ", size_, " tensors, but got ", inputs.size(), " and ",
              outputs.size());
  Draft draft =
      this->draft({OpType::ALLTOALL, "all_to_all"}, options.timeout, options.asyncOp, inputs);
  Asked& asked = ask(draft, TOWPATH_EXCHANGE);
  for (const at::Tensor& input : inputs) asked.inputs.push_back(span_of(to_send(draft, input)));
  for (const at::Tensor& output : outputs) {
    check_like(output, inputs.front());
    asked.outputs.push_back(span_of(to_receive(draft, output)));
  }
  draft.size_bytes = bytes_of(inputs);
  draft.work->set_results(outputs);
  return begin(draft);
}

// --- the group -----------------------------------------------------------------------------------

c10::intrusive_ptr<c10d::Backend> TowpathBackend::split(
    const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
    const c10::intrusive_ptr<Options>& options) {
  BackendOptions of_part = options_;
  if (options) of_part.timeout = options->timeout;
  of_part.global_ranks.clear();
  of_part.rank = -1;
  of_part.ranks = static_cast<int>(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) {
    of_part.global_ranks.push_back(options_.global_ranks.at(ranks[i]));
    if (ranks[i] == rank_) of_part.rank = static_cast<int>(i);
  }
  if (of_part.rank < 0) return nullptr;
  return c10::make_intrusive<TowpathBackend>(api_, store, std::move(of_part));
}

void TowpathBackend::shutdown() {
  if (group_ != nullptr) api_.leave(group_->group);
  group_.reset();
}

void TowpathBackend::abort() {
  if (group_ != nullptr) api_.abort(group_->group, "aborted the process group");
}

}  // namespace towpath_torch
