// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/ucx/wire.hpp"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace towpath::transport::ucx {
namespace {

constexpr unsigned kMessageId = 1;
constexpr std::chrono::seconds kCloseFor{1};
constexpr const char* kSharedMemory = "/dev/shm";
// Below this UCX may not get the memory that its ranks of one host share.
constexpr std::uint64_t kSharedBytesLeast = 64 << 20;

// Empty if there is enough shared memory.
std::string shared_memory_hint() {
  struct statvfs found {};
  if (::statvfs(kSharedMemory, &found) != 0) return "";
  const std::uint64_t free_bytes = std::uint64_t{found.f_bavail} * found.f_frsize;
  if (free_bytes >= kSharedBytesLeast) return "";
  return fmt::format("; {} has {} bytes free: remove files there, or set UCX_TLS=tcp",
                     kSharedMemory, free_bytes);
}

}  // namespace

// UCX's buffers until a message has left.
struct Wire::Sending {
  Wire* wire;
  Header header;
  std::function<void()> sent;
};

struct Wire::Receiving {
  Wire* wire;
  std::function<void()> done;
};

Wire::Wire(const std::string& devices) : ucp_(ucp_library()) {
  const auto check = [this](ucs_status_t status, const char* what) {
    if (status == UCS_OK) return;
    throw std::runtime_error(fmt::format("transport 'ucx' cannot {}: {}{}", what,
                                         ucp_.ucs_status_string(status), shared_memory_hint()));
  };
  ucp_config_t* config = nullptr;
  check(ucp_.ucp_config_read(nullptr, nullptr, &config), "read the settings of UCX");
  // Detection time for the death of a silent peer.
  ucp_.ucp_config_modify(config, "KEEPALIVE_INTERVAL", "500ms");
  if (!devices.empty()) ucp_.ucp_config_modify(config, "NET_DEVICES", devices.c_str());
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
  parameters.features = UCP_FEATURE_AM;
  const ucs_status_t status =
      ucp_.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &parameters, config, &context_);
  ucp_.ucp_config_release(config);
  check(status, "begin");
  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SINGLE;
  const std::vector<os::TcpListener> before = os::tcp_listeners();
  const ucs_status_t created = ucp_.ucp_worker_create(context_, &worker, &worker_);
  if (created != UCS_OK) ucp_.ucp_cleanup(context_);
  check(created, "open the network");
  find_listeners(before);
  admit(std::vector<os::Ipv4Address>{});
}

// UCX ends a process that receives unexpected bytes at one of its ports. Another thread may have
// opened a listener in the meantime: UCX's listeners have their port in the worker's address.
void Wire::find_listeners(const std::vector<os::TcpListener>& before) {
  const std::vector<std::byte> own = address();
  for (const os::TcpListener& listener : os::tcp_listeners()) {
    const auto port = std::as_bytes(std::span(&listener.port, 1));
    const bool is_new = std::find(before.begin(), before.end(), listener) == before.end();
    const bool is_ours = std::search(own.begin(), own.end(), port.begin(), port.end()) != own.end();
    if (is_new && is_ours) listeners_.push_back(listener);
  }
}

void Wire::admit(const std::optional<std::vector<os::Ipv4Address>>& hosts) {
  for (const os::TcpListener& listener : listeners_) {
    if (!hosts || !os::admit_only(listener, *hosts)) os::admit_all(listener);
  }
}

// A forked child leaves its parent's connections alone.
Wire::~Wire() {
  if (::getpid() != owner_) return;
  close();
  ucp_.ucp_worker_destroy(worker_);
  ucp_.ucp_cleanup(context_);
}

std::vector<std::byte> Wire::address() const {
  ucp_address_t* address = nullptr;
  std::size_t size = 0;
  if (ucp_.ucp_worker_get_address(worker_, &address, &size) != UCS_OK) {
    throw std::runtime_error("transport 'ucx' finds no network");
  }
  const auto* const bytes = reinterpret_cast<const std::byte*>(address);
  std::vector<std::byte> copy(bytes, bytes + size);
  ucp_.ucp_worker_release_address(worker_, address);
  return copy;
}

void Wire::connect(int rank, const std::vector<std::vector<std::byte>>& addresses,
                   const os::KeyedDigest& key, Handlers handlers) {
  rank_ = rank;
  key_ = key;
  handlers_ = std::move(handlers);
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kMessageId;
  handler.cb = [](void* wire, const void* header, std::size_t header_bytes, void* data,
                  std::size_t size_bytes, const ucp_am_recv_param_t* attributes) {
    if (header_bytes != sizeof(Header)) return UCS_OK;
    const bool waits_at_sender = (attributes->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    return static_cast<Wire*>(wire)->take(header, data, size_bytes, waits_at_sender);
  };
  handler.arg = this;
  if (ucp_.ucp_worker_set_am_recv_handler(worker_, &handler) != UCS_OK) {
    throw std::runtime_error("transport 'ucx' cannot receive messages");
  }
  connections_.resize(addresses.size());
  for (std::size_t peer = 0; peer < addresses.size(); ++peer) {
    if (static_cast<int>(peer) != rank) connect_to(static_cast<int>(peer), addresses[peer]);
  }
}

void Wire::connect_to(int peer, const std::vector<std::byte>& address) {
  auto connection = std::make_unique<Connection>(Connection{this, peer});
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                          UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler = {&Wire::on_error, connection.get()};
  const ucs_status_t status = ucp_.ucp_ep_create(worker_, &parameters, &connection->endpoint);
  if (status != UCS_OK) {
    throw std::runtime_error(fmt::format("transport 'ucx' finds no way to rank {}: {}", peer,
                                         ucp_.ucs_status_string(status)));
  }
  connections_[static_cast<std::size_t>(peer)] = std::move(connection);
}

// --- sending -----------------------------------------------------------------------------------

void Wire::send(int peer, Header header, std::span<const std::byte> bytes,
                std::function<void()> sent) {
  Connection& connection = *connections_[static_cast<std::size_t>(peer)];
  if (connection.is_lost || connection.endpoint == nullptr) {
    if (sent) sent();
    return;
  }
  header.key = key_;
  header.source = rank_;
  header.size_bytes = bytes.size();
  auto* const sending = new Sending{this, header, std::move(sent)};
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.cb.send = &Wire::on_sent;
  parameters.user_data = sending;
  ++sending_;
  void* const request =
      ucp_.ucp_am_send_nbx(connection.endpoint, kMessageId, &sending->header, sizeof(Header),
                           bytes.data(), bytes.size(), &parameters);
  if (UCS_PTR_IS_ERR(request)) lose(connection);
  if (UCS_PTR_IS_PTR(request)) return;
  --sending_;
  const std::unique_ptr<Sending> over(sending);
  if (over->sent) over->sent();
}

void Wire::on_sent(void* request, ucs_status_t, void* context) {
  const std::unique_ptr<Sending> sending(static_cast<Sending*>(context));
  Wire& wire = *sending->wire;
  // A message without a completion, such as an answer to a query, does not count as progress.
  if (sending->sent) ++wire.events_;
  --wire.sending_;
  if (request != nullptr) wire.ucp_.ucp_request_free(request);
  // Exceptions of `sent` must not pass through UCX.
  if (sending->sent) wire.sent_.push_back(std::move(sending->sent));
}

// --- receiving ---------------------------------------------------------------------------------

ucs_status_t Wire::take(const void* header, void* data, std::size_t size_bytes,
                        bool waits_at_sender) {
  Incoming message;
  std::memcpy(&message.header_, header, sizeof(Header));
  const Header& is = message.header_;
  const bool is_of_job = os::is_same(is.key, key_) && is.size_bytes == size_bytes &&
                         is.source >= 0 && is.source != rank_ &&
                         static_cast<std::size_t>(is.source) < connections_.size();
  if (!is_of_job) return UCS_OK;
  // A presence query or its answer does not count as progress.
  if (is.kind != MessageKind::ask && is.kind != MessageKind::here) ++events_;
  if (waits_at_sender) {
    message.descriptor_ = data;
  } else {
    message.bytes_ = {static_cast<const std::byte*>(data), size_bytes};
  }
  is_kept_ = false;
  handlers_.arrived(message);
  return waits_at_sender && is_kept_ ? UCS_INPROGRESS : UCS_OK;
}

Incoming Wire::keep(Incoming& message) {
  Incoming kept = std::move(message);
  if (kept.is_here()) {
    kept.kept_.assign(kept.bytes_.begin(), kept.bytes_.end());
    kept.bytes_ = kept.kept_;
  }
  is_kept_ = true;
  return kept;
}

void Wire::receive(Incoming& message, std::byte* to, std::function<void()> done) {
  if (message.is_here()) {
    if (!message.bytes_.empty()) std::memcpy(to, message.bytes_.data(), message.bytes_.size());
    return done();
  }
  is_kept_ = true;
  auto* const receiving = new Receiving{this, std::move(done)};
  ucp_request_param_t parameters{};
  parameters.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  parameters.cb.recv_am = &Wire::on_received;
  parameters.user_data = receiving;
  void* const request = ucp_.ucp_am_recv_data_nbx(worker_, message.descriptor_, to,
                                                  message.header_.size_bytes, &parameters);
  message.descriptor_ = nullptr;
  // On failure, the sender is about to be reported lost.
  if (UCS_PTR_IS_ERR(request)) delete receiving;
}

void Wire::on_received(void* request, ucs_status_t status, std::size_t, void* context) {
  const std::unique_ptr<Receiving> receiving(static_cast<Receiving*>(context));
  ++receiving->wire->events_;
  if (status == UCS_OK) receiving->done();
  ucp_library().ucp_request_free(request);
}

// --- connections ---------------------------------------------------------------------------------

void Wire::on_error(void* context, ucp_ep_h, ucs_status_t) {
  auto& connection = *static_cast<Connection*>(context);
  connection.wire->lose(connection);
}

void Wire::lose(Connection& connection) {
  if (std::exchange(connection.is_lost, true)) return;
  failed_.push_back(&connection);
}

// A peer is reported lost after its last messages have been received. UCX's internal events, such
// as keepalives, do not count.
bool Wire::progress() {
  const std::uint64_t before = events_;
  while (ucp_.ucp_worker_progress(worker_) != 0) {
  }
  for (const std::function<void()>& sent : std::exchange(sent_, {})) sent();
  for (Connection* connection : std::exchange(failed_, {})) {
    if (handlers_.lost) handlers_.lost(connection->peer);
  }
  return events_ != before;
}

void Wire::close() {
  std::vector<void*> requests;
  for (const auto& connection : connections_) {
    if (connection == nullptr || connection->endpoint == nullptr) continue;
    ucp_request_param_t parameters{};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    parameters.flags = connection->is_lost ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    void* const request = ucp_.ucp_ep_close_nbx(connection->endpoint, &parameters);
    connection->endpoint = nullptr;
    if (request != nullptr && !UCS_PTR_IS_ERR(request)) requests.push_back(request);
  }
  const auto end = std::chrono::steady_clock::now() + kCloseFor;
  for (void* const request : requests) {
    while (ucp_.ucp_request_check_status(request) == UCS_INPROGRESS &&
           std::chrono::steady_clock::now() < end) {
      ucp_.ucp_worker_progress(worker_);
    }
    ucp_.ucp_request_free(request);
  }
}

}  // namespace towpath::transport::ucx
