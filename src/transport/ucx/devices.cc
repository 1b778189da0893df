// Lists the devices that UCX finds on this machine.
#include "transport/ucx/ucx_network.h"
#include "transport/ucx/worker.h"

namespace unisono::ucx {

std::string why_no_ucx() {
  return UcxApi::get().problem;
}

std::string version() {
  const UcxApi& api = UcxApi::get();
  return api.problem.empty() ? api.version_string() : "";
}

std::vector<std::string> devices() {
  return list_devices();
}

}  // namespace unisono::ucx
