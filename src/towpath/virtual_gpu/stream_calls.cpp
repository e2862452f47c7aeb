// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// CUDA's runtime: streams, events and launches. Graphs are not captured.

#include <utility>

#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/streams.hpp"
#include "towpath/virtual_gpu/system.hpp"

using namespace towpath::virtual_gpu;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  *stream = streams().create(current_device(), (flags & cudaStreamNonBlocking) == 0);
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return streams().destroy(stream) ? cudaSuccess : keep(cudaErrorInvalidResourceHandle);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return streams().synchronize(stream); }
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return streams().is_idle(stream) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event == nullptr) return keep(cudaErrorInvalidResourceHandle);
  streams().await(stream, current_device(), event->state);
  return cudaSuccess;
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  // The stream without a name is the legacy one.
  if (stream == nullptr || stream == cudaStreamLegacy) {
    *id = 1;
  } else {
    *id = stream == cudaStreamPerThread ? 2 : stream->state->id;
  }
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id) {
  if (id != nullptr) *id = 0;
  return cudaStreamIsCapturing(stream, status);
}
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                        unsigned long long* id, cudaGraph_t* graph,
                                        const cudaGraphNode_t** dependencies, std::size_t* count) {
  if (graph != nullptr) *graph = nullptr;
  if (dependencies != nullptr) *dependencies = nullptr;
  if (count != nullptr) *count = 0;
  return cudaStreamGetCaptureInfo(stream, status, id);
}
cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                        unsigned long long* id, cudaGraph_t* graph,
                                        const cudaGraphNode_t** dependencies,
                                        const cudaGraphEdgeData** edges, std::size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return cudaStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  thread_local cudaStreamCaptureMode own = cudaStreamCaptureModeGlobal;
  std::swap(own, *mode);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new towpath_event{std::make_shared<EventState>()};
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (event == nullptr) return keep(cudaErrorInvalidResourceHandle);
  streams().record(stream, current_device(), event->state);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event == nullptr) return keep(cudaErrorInvalidResourceHandle);
  return streams().has_happened(*event->state) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event == nullptr) return keep(cudaErrorInvalidResourceHandle);
  streams().synchronize_event(*event->state);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  if (from == nullptr || to == nullptr) return keep(cudaErrorInvalidResourceHandle);
  if (!streams().has_happened(*from->state) || !streams().has_happened(*to->state)) {
    return keep(cudaErrorNotReady);
  }
  *milliseconds = static_cast<float>(streams().elapsed_ms(*from->state, *to->state));
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes, cudaStream_t stream) {
  if (function == nullptr) return keep(cudaErrorInvalidValue);
  return keep(towpath::virtual_gpu::system().launch(
      {current_device(), function, grid, block, shared_bytes, arguments, nullptr, stream}));
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  return cudaLaunchKernel(function, config->gridDim, config->blockDim, arguments,
                          config->dynamicSmemBytes, config->stream);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  streams().add(stream, current_device(), {.host_task = [=] { function(argument); }});
  return cudaSuccess;
}

// No stream captures, so that no program can come here with a graph.
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  stop_at_unknown("cudaStreamBeginCapture");
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t*) {
  stop_at_unknown("cudaStreamEndCapture");
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, cudaGraphNode_t*, char*,
                                 std::size_t) {
  stop_at_unknown("cudaGraphInstantiate");
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) { stop_at_unknown("cudaGraphLaunch"); }
cudaError_t cudaGraphDestroy(cudaGraph_t) { stop_at_unknown("cudaGraphDestroy"); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { stop_at_unknown("cudaGraphExecDestroy"); }
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t, cudaGraphNode_t*, std::size_t,
                                                unsigned) {
  stop_at_unknown("cudaStreamUpdateCaptureDependencies");
}
cudaError_t cudaStreamUpdateCaptureDependencies_v2(cudaStream_t, cudaGraphNode_t*,
                                                   const cudaGraphEdgeData*, std::size_t,
                                                   unsigned) {
  stop_at_unknown("cudaStreamUpdateCaptureDependencies_v2");
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*,
                                     std::size_t) {
  stop_at_unknown("cudaGraphAddDependencies");
}
cudaError_t cudaGraphAddDependencies_v2(cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*,
                                        const cudaGraphEdgeData*, std::size_t) {
  stop_at_unknown("cudaGraphAddDependencies_v2");
}
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*,
                                        std::size_t, cudaEvent_t) {
  stop_at_unknown("cudaGraphAddEventRecordNode");
}
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*,
                                      std::size_t, cudaEvent_t) {
  stop_at_unknown("cudaGraphAddEventWaitNode");
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, std::size_t,
                                 const cudaHostNodeParams*) {
  stop_at_unknown("cudaGraphAddHostNode");
}
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*,
                                   std::size_t, const cudaKernelNodeParams*) {
  stop_at_unknown("cudaGraphAddKernelNode");
}
cudaError_t cudaGraphRetainUserObject(cudaGraph_t, cudaUserObject_t, unsigned, unsigned) {
  stop_at_unknown("cudaGraphRetainUserObject");
}
cudaError_t cudaUserObjectCreate(cudaUserObject_t*, void*, cudaHostFn_t, unsigned, unsigned) {
  stop_at_unknown("cudaUserObjectCreate");
}

// Functions that have an address and no code lead here.
void towpath_function_without_code(const char* name) { stop_at_unknown(name); }

}  // extern "C"
