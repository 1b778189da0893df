// The C interface of collectives on GPU memory.
#include "unisono/device.h"

#include <cstddef>
#include <utility>

#include "capi/call.h"
#include "comm/handles.h"
#include "unisono/device.hpp"

// The communicator comes first because it must outlive the group.
struct unisono_device_handle {
  unisono_device_handle(unisono::Communicator ranks, const unisono::DeviceOptions& options)
      : comm(std::move(ranks)), group(comm, options) {}
  unisono::Communicator comm;
  unisono::DeviceGroup group;
};

namespace unisono::c_api {
namespace {

static_assert(offsetof(unisono_device_options_t, scratch_bytes) + sizeof(std::size_t) ==
              sizeof(unisono_device_options_t));

DeviceOptions options_of(const unisono_device_options_t* given) {
  const auto known = members_or_defaults(
      given, unisono_device_options_t UNISONO_DEVICE_OPTIONS_INIT, "UNISONO_DEVICE_OPTIONS_INIT");
  if (known.reserved != 0) {
    throw Error(ErrorCode::usage, "`reserved` is not 0\nstart from UNISONO_DEVICE_OPTIONS_INIT");
  }
  return {.device = known.device,
          .channels = known.channels,
          .timeout_ms = known.timeout_ms,
          .scratch_bytes = known.scratch_bytes};
}

unisono_device_handle& handle_of(unisono_device_t group) {
  if (group == nullptr) {
    throw Error(ErrorCode::usage, "the device group is NULL\nit was never created, or was freed");
  }
  return *group;
}

}  // namespace
}  // namespace unisono::c_api

using namespace unisono::c_api;  // NOLINT(google-build-using-namespace): all below is outside

unisono_result_t unisono_device_create(const unisono_device_options_t* options, unisono_comm_t comm,
                                       unisono_device_t* group) noexcept {
  return guard([&] {
    expect_place(group, "group");
    *group = nullptr;
    core_of(comm);
    const unisono::DeviceOptions known = options_of(options);
    *group = new unisono_device_handle(unisono::detail::Handles::communicator(comm->core), known);
  });
}

unisono_result_t unisono_device_free(unisono_device_t* group) noexcept {
  return guard([&] {
    expect_place(group, "group");
    delete std::exchange(*group, nullptr);
  });
}

unisono_result_t unisono_device_allocate(std::size_t bytes, unisono_device_t group,
                                         void** data) noexcept {
  return guard([&] {
    expect_place(data, "data");
    *data = nullptr;
    *data = handle_of(group).group.allocate(bytes);
  });
}

unisono_result_t unisono_device_run(const unisono_call_t* call, void* stream,
                                    unisono_device_t group) noexcept {
  return guard([&] {
    unisono_device_handle& handle = handle_of(group);
    handle.group.run(call_of(call, handle.comm.size()), stream);
  });
}

unisono_result_t unisono_device_check(unisono_device_t group) noexcept {
  return guard([&] { handle_of(group).group.check(); });
}

unisono_result_t unisono_device_synchronize(void* stream, int timeout_ms,
                                            unisono_device_t group) noexcept {
  return guard([&] { handle_of(group).group.synchronize(stream, timeout_ms); });
}
