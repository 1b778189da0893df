// Replaces the UCX network if unisono was built without UCX's headers.
#include "transport/ucx/ucx_network.h"
#include "unisono/error.hpp"

namespace unisono::ucx {
namespace {

constexpr const char* kProblem = "this unisono was built without UCX";

}  // namespace

std::string why_no_ucx() {
  return kProblem;
}

std::string version() {
  return "";
}

std::vector<std::string> devices() {
  return {};
}

std::unique_ptr<transport::IntroducedNetwork> create(int /*rank*/, int /*ranks*/) {
  throw Error(ErrorCode::config,
              std::string("UNISONO_NETWORK=ucx, but ") + kProblem +
                  "\ninstall UCX's headers (Debian: libucx-dev) and build again, "
                  "or unset UNISONO_NETWORK");
}

}  // namespace unisono::ucx
