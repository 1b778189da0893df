#include "transport/ucx/worker.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "unisono/error.hpp"

namespace unisono::ucx {
namespace {

[[noreturn]] void fail(const UcxApi& api, ErrorCode code, const std::string& what,
                       ucs_status_t status, const char* advice) {
  throw Error(code, what + ": " + api.status_string(status) + "\n" + advice);
}

ucp_context_h make_context(const UcxApi& api, const std::string& name, std::size_t peers) {
  if (!api.problem.empty()) {
    throw Error(ErrorCode::config,
                "UNISONO_NETWORK=ucx, but " + api.problem + "\ninstall UCX (Debian: libucx0)");
  }
  ucp_config_t* config = nullptr;
  if (const ucs_status_t status = api.config_read(nullptr, nullptr, &config); status != UCS_OK) {
    fail(api, ErrorCode::config, "UCX cannot read its configuration", status,
         "check the environment variables UCX_*");
  }
  ucp_params_t params{};
  params.field_mask =
      UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.estimated_num_eps = peers;
  params.name = name.c_str();
  ucp_context_h context = nullptr;
  const ucs_status_t status =
      api.init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context);
  api.config_release(config);
  if (status != UCS_OK) {
    fail(api, ErrorCode::config, "UCX cannot start", status,
         "check UCX_TLS, UCX_NET_DEVICES and the UCX lines of unisono doctor");
  }
  return context;
}

// A line of UCX's report is "# resource 2 : md 1 dev 2 flags -- tcp/eth0".
std::vector<std::string> devices_of(const UcxApi& api, ucp_context_h context) {
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* const stream = ::open_memstream(&text, &bytes);
  if (stream == nullptr) {
    return {};
  }
  api.context_print_info(context, stream);
  std::fclose(stream);
  std::istringstream lines(std::string(text, bytes));
  std::free(text);  // NOLINT(cppcoreguidelines-no-malloc): open_memstream allocated it
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string mark;
    std::string what;
    std::string last;
    words >> mark >> what;
    for (std::string word; words >> word;) {
      last = word;
    }
    if (what == "resource" && last.find('/') != std::string::npos) {
      names.push_back(last);
    }
  }
  return names;
}

std::string transport_of(const std::string& device) {
  return device.substr(0, device.find('/'));
}

// Returns true if UCX reports lost peers on this device. It does not over shared memory or within
// this process.
bool notices_losses(const std::string& device) {
  const std::string transport = transport_of(device);
  return transport != "self" && transport != "posix" && transport != "sysv" && transport != "cma" &&
         transport != "knem" && transport != "xpmem";
}

// Returns true if UCX has only one device, on which it copies. The loopback device does not count
// as a second one, because it leads to no other host.
bool copies_over_one_device(const std::vector<std::string>& devices) {
  int ways = 0;
  bool loops = false;
  for (const std::string& device : devices) {
    if (device == "tcp/lo") {
      loops = true;
    } else if (transport_of(device) == "tcp") {
      ++ways;
    } else if (transport_of(device) != "self") {
      return false;
    }
  }
  return ways == 1 || (ways == 0 && loops);
}

}  // namespace

std::vector<std::string> list_devices() {
  const UcxApi& api = UcxApi::get();
  const ucp_context_h context = make_context(api, "unisono", 1);
  std::vector<std::string> names = devices_of(api, context);
  api.cleanup(context);
  std::erase_if(names, [](const std::string& name) { return !notices_losses(name); });
  return names;
}

Worker::Worker(int rank, int ranks) : api_(UcxApi::get()) {
  const std::string name = "unisono rank " + std::to_string(rank);
  context_ = make_context(api_, name, static_cast<std::size_t>(ranks));
  devices_ = devices_of(api_, context_);
  can_lose_peers_ = std::any_of(devices_.begin(), devices_.end(), notices_losses);
  only_copies_ = copies_over_one_device(devices_);
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  params.flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK;
  ucs_status_t status = api_.worker_create(context_, &params, &worker_);
  if (status == UCS_OK) {
    status = api_.worker_get_efd(worker_, &descriptor_);
    if (status != UCS_OK) {
      api_.worker_destroy(worker_);
    }
  }
  if (status != UCS_OK) {
    api_.cleanup(context_);
    fail(api_, ErrorCode::resource, "UCX cannot make a worker", status,
         "check the limit of open files (ulimit -n) and UCX_TLS");
  }
}

Worker::~Worker() {
  if (abandoned_) {
    return;
  }
  api_.worker_destroy(worker_);
  api_.cleanup(context_);
}

std::string Worker::address() const {
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  if (const ucs_status_t status = api_.worker_get_address(worker_, &address, &bytes);
      status != UCS_OK) {
    fail(api_, ErrorCode::resource, "UCX returns no address for its worker", status,
         "check UCX_TLS and UCX_NET_DEVICES");
  }
  std::string text(reinterpret_cast<const char*>(address), bytes);
  api_.worker_release_address(worker_, address);
  return text;
}

void Worker::handle(unsigned id, ucp_am_recv_callback_t callback, void* context) {
  ucp_am_handler_param_t param{};
  param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                     UCP_AM_HANDLER_PARAM_FIELD_ARG;
  param.id = id;
  param.cb = callback;
  param.arg = context;
  if (const ucs_status_t status = api_.set_am_recv_handler(worker_, &param); status != UCS_OK) {
    fail(api_, ErrorCode::resource, "UCX does not accept a message handler", status,
         "use UCX 1.13 or later");
  }
}

}  // namespace unisono::ucx
