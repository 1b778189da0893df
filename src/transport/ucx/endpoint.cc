#include "transport/ucx/endpoint.h"

#include <chrono>
#include <utility>

namespace unisono::ucx {
namespace {

// Maximum time that a closing link waits for UCX: for the peer, or only for its own requests.
constexpr std::chrono::milliseconds kGently(200);
constexpr std::chrono::milliseconds kForced(2000);

}  // namespace

void Endpoint::connect(const Introduction& peer) noexcept {
  can_be_lost_ = peer.loses && shared_->worker->can_lose_peers();
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(peer.address.data());
  params.err_mode = can_be_lost_ ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
  params.err_handler.cb = [](void* endpoint, ucp_ep_h, ucs_status_t status) {
    static_cast<Endpoint*>(endpoint)->mark_broken(status);
  };
  params.err_handler.arg = this;
  const UcxApi& api = shared_->worker->api();
  if (const ucs_status_t status = api.ep_create(shared_->worker->get(), &params, &endpoint_);
      status != UCS_OK) {
    endpoint_ = nullptr;
    mark_broken(status);
  }
}

void Endpoint::mark_broken(ucs_status_t status) noexcept {
  if (!broken_) {
    broken_ = true;
    status_ = status;
    shared_->changed();
  }
}

void Endpoint::mark_damaged(const char* detail) noexcept {
  detail_ = broken_ ? detail_ : detail;
  mark_broken(UCS_ERR_IO_ERROR);
}

std::string Endpoint::why_broken() const {
  const std::string connection = "the connection over UCX to rank " + std::to_string(peer_);
  if (detail_ != nullptr) {
    return connection + " carried an invalid message (" + detail_ + ")";
  }
  if (lacks_memory()) {
    return "no memory for data of " + connection;
  }
  const std::string how = shared_->worker->api().status_string(status_);
  if (status_ == UCS_ERR_UNREACHABLE) {
    return connection + " cannot be made: UCX finds no route (" + how +
           "); both hosts need the same kind of device on one network: check UCX_TLS, "
           "UCX_NET_DEVICES and unisono doctor";
  }
  return connection + " broke: " + how;
}

void Endpoint::flush() noexcept {
  ucp_request_param_t param{};
  flushing_ = shared_->worker->api().ep_flush(endpoint_, &param);
}

bool Endpoint::is_flushed() const noexcept {
  return broken_ || endpoint_ == nullptr || !UCS_PTR_IS_PTR(flushing_) ||
         shared_->worker->api().request_check_status(flushing_) != UCS_INPROGRESS;
}

// Closes the endpoint. UCX returns this process's memory only during later calls of progress. If
// UCX does not return it in time, it keeps the memory and is never called again.
void Endpoint::shut(bool gently, const std::function<bool()>& is_quiet) noexcept {
  if (endpoint_ == nullptr || shared_->worker->is_abandoned()) {
    return;
  }
  const auto progress_until = [this](std::chrono::milliseconds limit, const auto& done) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!done() && std::chrono::steady_clock::now() < end) {
      shared_->worker->progress();
    }
    shared_->announced.clear();  // their readers check themselves
  };
  if (gently && !broken_) {
    progress_until(kGently, [&] { return is_quiet() || broken_; });
  }
  const bool force = broken_ || !is_quiet();
  if (force && !can_be_lost_) {
    shared_->worker->abandon();
    endpoint_ = nullptr;
    return;
  }
  const UcxApi& api = shared_->worker->api();
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = force ? UCP_EP_CLOSE_FLAG_FORCE : 0;
  void* const closing = api.ep_close(std::exchange(endpoint_, nullptr), &param);
  progress_until(force ? kForced : kGently, [&] {
    return is_quiet() &&
           (!UCS_PTR_IS_PTR(closing) || api.request_check_status(closing) != UCS_INPROGRESS);
  });
  if (UCS_PTR_IS_PTR(closing)) {
    api.request_free(closing);
  }
  if (UCS_PTR_IS_PTR(flushing_)) {
    api.request_free(std::exchange(flushing_, nullptr));
  }
  if (!is_quiet()) {
    shared_->worker->abandon();
  }
}

}  // namespace unisono::ucx
