// Shared by all files of the C interface: its handles, and the boundary that no exception crosses.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/private.h"
#include "comm/core.h"
#include "comm/request.h"
#include "unisono/communicator.hpp"
#include "unisono/unisono.h"

// Handles. Cores and states are shared because requests and plans outlive the communicator's
// handle.
struct unisono_comm_handle {
  std::shared_ptr<unisono::detail::Core> core;
};
struct unisono_request_handle {
  std::shared_ptr<unisono::detail::RequestState> state;
};
struct unisono_plan_handle {
  std::string algorithm;  // null-terminated
  std::unique_ptr<unisono::detail::PlanState> state;
};
struct unisono_region_handle {
  unisono::Region region;
};

namespace unisono::c_api {

// Stores `prefix` and `text` for unisono_last_error(), and returns the result.
UNISONO_PRIVATE unisono_result_t fail(unisono_result_t result, const char* text,
                                      const char* prefix = "") noexcept;

constexpr unisono_result_t result_of(ErrorCode code) {
  return static_cast<unisono_result_t>(static_cast<int>(code) + 1);
}

// Carries the result of a group's body through Core::group(). The error text is already stored.
struct BodyFailed {
  unisono_result_t result;
};

// Runs `body` and converts exceptions to result codes. Every function that can fail consists of one
// guard().
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

// Throws Error(usage) if the pointer to a result is NULL.
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

// A caller's struct, which begins with struct_size, may be older or newer than the library. `init`
// names the macro that initialises it. These functions throw Error(usage) for an impossible size.

// Copies a struct from the caller. Members that the caller does not know keep their defaults.
// Members that the library does not know must be zero.
UNISONO_PRIVATE void copy_versioned(void* to, std::size_t known, const void* from,
                                    std::size_t given, const char* init);
// Copies a struct to the caller. Members that the caller does not know are omitted. Members that
// the library does not know become zero. struct_size does not change.
UNISONO_PRIVATE void write_versioned(void* to, std::size_t given, const void* from,
                                     std::size_t known, const char* init);
// Throws Error(usage) unless entry `index` of a list has the struct_size of the first entry, a
// multiple of its alignment.
UNISONO_PRIVATE void expect_same_size(std::size_t size, std::size_t first, std::size_t index,
                                      const char* init);

// Returns the members of `*given` that the library knows. `known` contains the defaults. Throws
// Error(usage) for NULL.
template <typename Struct>
Struct members_of(const Struct* given, const char* name, Struct known, const char* init) {
  expect_place(given, name);
  copy_versioned(&known, sizeof(known), given, given->struct_size, init);
  return known;
}

// Does the same as members_of(), but returns the defaults for NULL.
template <typename Struct>
Struct members_or_defaults(const Struct* given, const Struct& defaults, const char* init) {
  return given == nullptr ? defaults : members_of(given, "options", defaults, init);
}

// Does the same as members_of() for a list, whose entries have the caller's size.
template <typename Struct>
std::vector<Struct> entries_of(const Struct* given, std::size_t count, const char* name,
                               const Struct& known, const char* init) {
  std::vector<Struct> entries;
  if (count == 0) {
    return entries;
  }
  expect_place(given, name);
  const std::size_t size = given->struct_size;
  const auto* place = reinterpret_cast<const std::byte*>(given);
  for (std::size_t i = 0; i < count; ++i, place += size) {
    const auto* entry = reinterpret_cast<const Struct*>(place);
    expect_same_size(entry->struct_size, size, i, init);
    entries.push_back(members_of(entry, name, known, init));
  }
  return entries;
}

// Copies `found` to the caller's struct. Throws Error(usage) for NULL.
template <typename Struct>
void fill(Struct* place, const char* name, const Struct& found, const char* init) {
  expect_place(place, name);
  write_versioned(place, place->struct_size, &found, sizeof(found), init);
}

// Starts an asynchronous operation and passes its request to the caller. Inside a group, the group
// owns the request.
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
      std::make_unique<unisono_request_handle>();  // first: nothing may fail after the start
  handle->state = start();
  *request = handle.release();
}

}  // namespace unisono::c_api
