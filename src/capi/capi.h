// Shared by the parts of the C interface: its handles, and the boundary that no exception crosses.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "base/private.h"
#include "comm/core.h"
#include "comm/request.h"
#include "unisono/communicator.hpp"
#include "unisono/unisono.h"

// The handles. Cores and states are shared: requests and plans outlive the communicator's handle.
struct unisono_comm_handle {
  std::shared_ptr<unisono::detail::Core> core;
};
struct unisono_request_handle {
  std::shared_ptr<unisono::detail::RequestState> state;
};
struct unisono_plan_handle {
  std::string algorithm;  // ends with a zero
  std::unique_ptr<unisono::detail::PlanState> state;
};
struct unisono_region_handle {
  unisono::Region region;
};

namespace unisono::c_api {

// Keeps `prefix` and `text` for unisono_last_error(), and returns the result.
UNISONO_PRIVATE unisono_result_t fail(unisono_result_t result, const char* text,
                                      const char* prefix = "") noexcept;

constexpr unisono_result_t result_of(ErrorCode code) {
  return static_cast<unisono_result_t>(static_cast<int>(code) + 1);
}

// Carries the result of a group's body through Core::group(). Its text is stored already.
struct BodyFailed {
  unisono_result_t result;
};

// Every function that can fail is one guard().
template <typename Body>
unisono_result_t guard(const Body& body) noexcept {
  try {
    body();
    return UNISONO_SUCCESS;
  } catch (const Error& error) {
    return fail(result_of(error.code()), error.what());
  } catch (const BodyFailed& failed) {
    return failed.result;
  } catch (const std::bad_alloc&) {
    return fail(UNISONO_RESOURCE,
                "resource: out of memory\ncheck the limits on memory (ulimit -v, cgroup)");
  } catch (const std::exception& error) {
    return fail(UNISONO_INTERNAL, error.what(), "internal: ");
  } catch (...) {
    return fail(UNISONO_INTERNAL, "internal: an unknown exception\nplease report it");
  }
}

// Throws usage unless the caller passed somewhere to write the answer to.
UNISONO_PRIVATE void expect_place(const void* place, const char* name);

template <typename Element>
std::span<const Element> view(const Element* data, std::size_t count, const char* name) {
  if (count != 0) {
    expect_place(data, name);
  }
  return {data, count};
}

// Throws usage for NULL.
UNISONO_PRIVATE detail::Core& core_of(unisono_comm_t comm);

// Throws usage for NULL.
detail::RequestState& state_of(unisono_request_t request);

// A struct that may be older or newer than the library: what the caller does not know keeps its
// default; what the library does not know must be zero.
UNISONO_PRIVATE void copy_versioned(void* to, std::size_t known, const void* from,
                                    std::size_t given, const char* init);

// Starts an asynchronous operation of the core, and hands its request to the caller; inside a group
// the request is the group's.
template <typename Start>
void start_request(detail::Core& core, unisono_request_t* request, const Start& start) {
  if (request != nullptr) {
    *request = nullptr;
  }
  if (core.is_together()) {
    start();
    return;
  }
  expect_place(request, "request");
  auto handle =
      std::make_unique<unisono_request_handle>();  // first: nothing may fail once it has started
  handle->state = start();
  *request = handle.release();
}

}  // namespace unisono::c_api
