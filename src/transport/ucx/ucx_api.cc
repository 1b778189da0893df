#include "transport/ucx/ucx_api.h"

#include <dlfcn.h>

#include <type_traits>

namespace unisono::ucx {
namespace {

constexpr const char* kLibrary = "libucp.so.0";

UcxApi load() {
  UcxApi api;
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    api.problem = std::string(kLibrary) + " cannot be loaded";
    return api;
  }
  const auto find = [&](auto& function, const char* name) {
    void* const found = ::dlsym(library, name);  // also in libraries that it needs, such as libucs
    if (found == nullptr && api.problem.empty()) {
      api.problem = std::string(kLibrary) + " has no " + name;
    }
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  find(api.config_read, "ucp_config_read");
  find(api.config_release, "ucp_config_release");
  find(api.version_string, "ucp_get_version_string");
  find(api.init_version, "ucp_init_version");
  find(api.cleanup, "ucp_cleanup");
  find(api.context_print_info, "ucp_context_print_info");
  find(api.worker_create, "ucp_worker_create");
  find(api.worker_destroy, "ucp_worker_destroy");
  find(api.worker_get_address, "ucp_worker_get_address");
  find(api.worker_release_address, "ucp_worker_release_address");
  find(api.worker_progress, "ucp_worker_progress");
  find(api.worker_get_efd, "ucp_worker_get_efd");
  find(api.worker_arm, "ucp_worker_arm");
  find(api.set_am_recv_handler, "ucp_worker_set_am_recv_handler");
  find(api.ep_create, "ucp_ep_create");
  find(api.ep_close, "ucp_ep_close_nbx");
  find(api.ep_flush, "ucp_ep_flush_nbx");
  find(api.am_send, "ucp_am_send_nbx");
  find(api.am_recv_data, "ucp_am_recv_data_nbx");
  find(api.am_data_release, "ucp_am_data_release");
  find(api.request_check_status, "ucp_request_check_status");
  find(api.request_free, "ucp_request_free");
  find(api.status_string, "ucs_status_string");
  return api;
}

}  // namespace

const UcxApi& UcxApi::get() {
  static const UcxApi api = load();
  return api;
}

}  // namespace unisono::ucx
