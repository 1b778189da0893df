// The C interface: errors, communicators, requests, registered memory. Collectives are in
// collectives.cc, functions that take a unisono_call_t in call.cc.
#include "capi/capi.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/collectives.h"
#include "comm/call_queue.h"
#include "comm/connect.h"
#include "comm/derived.h"
#include "comm/group.h"
#include "comm/handles.h"
#include "comm/labels.h"
#include "comm/region.h"
#include "unisono/statistics.hpp"

namespace unisono::c_api {
namespace {

// The library's only state without an owning object: a C caller has no exception to hold the text,
// and each thread needs its own. It is an array because no memory may be left to report that.
constinit thread_local std::array<char, 4096> last_error = {};

#define UNISONO_TEXT_OF(number) #number
#define UNISONO_TEXT(number) UNISONO_TEXT_OF(number)
static_assert(std::string_view(UNISONO_VERSION) ==
                  UNISONO_TEXT(UNISONO_VERSION_MAJOR) "." UNISONO_TEXT(
                      UNISONO_VERSION_MINOR) "." UNISONO_TEXT(UNISONO_VERSION_PATCH),
              "unisono/version.h and CMakeLists.txt must give the same version");
static_assert(UNISONO_ANY_SOURCE == kAnySource);
static_assert(static_cast<int>(TransportKind::automatic) == UNISONO_TRANSPORT_AUTO);
static_assert(static_cast<int>(TransportKind::shm) == UNISONO_TRANSPORT_SHM);
static_assert(static_cast<int>(TransportKind::tcp) == UNISONO_TRANSPORT_TCP);
static_assert(result_of(ErrorCode::usage) == UNISONO_USAGE);
static_assert(result_of(ErrorCode::config) == UNISONO_CONFIG);
static_assert(result_of(ErrorCode::connection) == UNISONO_CONNECTION);
static_assert(result_of(ErrorCode::peer_lost) == UNISONO_PEER_LOST);
static_assert(result_of(ErrorCode::timeout) == UNISONO_TIMEOUT);
static_assert(result_of(ErrorCode::mismatch) == UNISONO_MISMATCH);
static_assert(result_of(ErrorCode::aborted) == UNISONO_ABORTED);
static_assert(result_of(ErrorCode::corrupt) == UNISONO_CORRUPT);
static_assert(result_of(ErrorCode::resource) == UNISONO_RESOURCE);
static_assert(result_of(ErrorCode::internal) == UNISONO_INTERNAL);
static_assert(result_of(ErrorCode::evicted) == UNISONO_EVICTED);
static_assert(kLastErrorCode == ErrorCode::evicted);

// If the struct had tail padding, a new member could fit into it without changing the size, and the
// library could not detect callers without that member.
static_assert(offsetof(unisono_connect_options_t, max_error) + sizeof(double) ==
              sizeof(unisono_connect_options_t));

std::string text_of(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

std::optional<TransportKind> transport_of(unisono_transport_t transport) {
  if (transport < UNISONO_TRANSPORT_UNSET || transport > UNISONO_TRANSPORT_TCP) {
    throw Error(ErrorCode::config, std::to_string(static_cast<int>(transport)) +
                                       " is not a unisono_transport_t\nuse the values of the "
                                       "enumeration in unisono/types.h");
  }
  return transport == UNISONO_TRANSPORT_UNSET
             ? std::nullopt
             : std::optional(static_cast<TransportKind>(transport));
}

ConnectOptions options_of(const unisono_connect_options_t* given) {
  const auto known =
      members_or_defaults(given, unisono_connect_options_t UNISONO_CONNECT_OPTIONS_INIT,
                          "UNISONO_CONNECT_OPTIONS_INIT");
  return {.rank = known.rank,
          .size = known.size,
          .job = text_of(known.job),
          .token = text_of(known.token),
          .file = text_of(known.file),
          .connect_timeout_ms = known.connect_timeout_ms,
          .timeout_ms = known.timeout_ms,
          .algorithm = text_of(known.algorithm),
          .profile = text_of(known.profile),
          .wait = {.spin = known.wait_spin, .yield_us = known.wait_yield_us},
          .address = text_of(known.address),
          .interface = text_of(known.interface),
          .ports = text_of(known.ports),
          .transport = transport_of(known.transport),
          .host = text_of(known.host),
          .checksum = known.checksum < 0 ? std::nullopt : std::optional(known.checksum != 0),
          .max_error = known.max_error,
          .threads = static_cast<int>(std::min<std::size_t>(known.threads, kMostThreads + 1))};
}

static_assert(sizeof(unisono_statistics_t::skew) ==
              sizeof(unsigned long long) * unisono::Statistics::kSkewBuckets);

void expect_statistics(std::string_view what) {
  const auto is_it = [what](const CollectiveTraits& traits) { return traits.name == what; };
  if (what != "send" && what != "recv" &&
      std::none_of(kCollectives.begin(), kCollectives.end(), is_it)) {
    throw Error(ErrorCode::usage, "there are no statistics of '" + std::string(what) +
                                      "'\nname a collective, \"send\" or \"recv\"");
  }
}

[[noreturn]] void refuse_size(std::size_t given, const char* init) {
  throw Error(ErrorCode::usage,
              "struct_size is " + std::to_string(given) + "\nstart from " + std::string(init));
}

void expect_size(std::size_t given, const char* init) {
  if (given < sizeof(std::size_t) || given > 65536) {
    refuse_size(given, init);
  }
}

// Destroys a handle and sets *place to NULL. The handle may be NULL, `place` may not.
template <typename Handle>
unisono_result_t free_handle(Handle** place, const char* name) noexcept {
  return guard([&] {
    expect_place(place, name);
    delete std::exchange(*place, nullptr);
  });
}

}  // namespace

unisono_result_t fail(unisono_result_t result, const char* text, const char* prefix) noexcept {
  std::snprintf(last_error.data(), last_error.size(), "%s%s", prefix, text);
  return result;
}

void expect_place(const void* place, const char* name) {
  if (place == nullptr) {
    throw Error(ErrorCode::usage, "`" + std::string(name) +
                                      "` is NULL\npass the address of the variable that holds it");
  }
}

detail::Core& core_of(unisono_comm_t comm) {
  if (comm == nullptr) {
    throw Error(ErrorCode::usage,
                "the communicator is NULL\nit was never connected, was freed, or unisono_split() "
                "gave no group for a negative color");
  }
  return *comm->core;
}

detail::RequestState& state_of(unisono_request_t request) {
  if (request == nullptr) {
    throw Error(ErrorCode::usage,
                "the request is NULL\nit has been waited for already, was never started, or "
                "belongs to a group");
  }
  return *request->state;
}

// If `place` holds `comm` itself, the new communicator replaces it, and `comm` is freed.
void replace(unisono_comm_t comm, unisono_comm_t* place,
             std::unique_ptr<unisono_comm_handle> with) {
  const std::unique_ptr<unisono_comm_handle> old(*place == comm ? comm : nullptr);
  *place = with.release();
}

void expect_same_size(std::size_t size, std::size_t first, std::size_t index, const char* init) {
  if (first % alignof(std::size_t) != 0) {
    refuse_size(first, init);
  }
  if (size != first) {
    throw Error(ErrorCode::usage, "entry " + std::to_string(index) + " has struct_size " +
                                      std::to_string(size) + ", and entry 0 has " +
                                      std::to_string(first) + "\nstart each entry from " +
                                      std::string(init));
  }
}

void write_versioned(void* to, std::size_t given, const void* from, std::size_t known,
                     const char* init) {
  expect_size(given, init);
  std::memset(to, 0, given);
  std::memcpy(to, from, std::min(given, known));
  std::memcpy(to, &given, sizeof(given));
}

void copy_versioned(void* to, std::size_t known, const void* from, std::size_t given,
                    const char* init) {
  expect_size(given, init);
  const auto* bytes = static_cast<const unsigned char*>(from);
  const auto unknown = std::span(bytes, given).subspan(std::min(given, known));
  if (std::any_of(unknown.begin(), unknown.end(), [](unsigned char byte) { return byte != 0; })) {
    throw Error(ErrorCode::usage,
                "the struct has members that this library does not know\nthe program was built "
                "for a newer unisono than " UNISONO_VERSION);
  }
  std::memcpy(to, from, std::min(given, known));
}

}  // namespace unisono::c_api

using namespace unisono::c_api;  // NOLINT(google-build-using-namespace): all below is outside

const char* unisono_last_error() noexcept {
  return last_error.data();
}

const char* unisono_result_name(unisono_result_t result) noexcept {
  if (result == UNISONO_SUCCESS) {
    return "success";
  }
  if (result < UNISONO_SUCCESS || result > UNISONO_EVICTED) {
    return "unknown";
  }
  // The views refer to literals, which are null-terminated.
  return unisono::to_string(static_cast<unisono::ErrorCode>(result - 1)).data();
}

const char* unisono_version() noexcept {
  return UNISONO_VERSION;
}

std::size_t unisono_dtype_bytes(unisono_dtype_t dtype) noexcept {
  return dtype < 0 || dtype >= unisono::kDtypeCount
             ? 0
             : unisono::size_of(static_cast<unisono::Dtype>(dtype));
}

unisono_result_t unisono_connect(const unisono_connect_options_t* options,
                                 unisono_comm_t* comm) noexcept {
  return guard([&] {
    expect_place(comm, "comm");
    *comm = nullptr;
    *comm = new unisono_comm_handle{
        unisono::detail::core_of_world(unisono::comm::connect(options_of(options)))};
  });
}

unisono_result_t unisono_comm_free(unisono_comm_t* comm) noexcept {
  return free_handle(comm, "comm");
}

int unisono_rank(unisono_comm_t comm) noexcept {
  return comm == nullptr ? -1 : comm->core->rank();
}

int unisono_size(unisono_comm_t comm) noexcept {
  return comm == nullptr ? 0 : comm->core->size();
}

int unisono_local_rank(unisono_comm_t comm) noexcept {
  return comm == nullptr ? -1 : comm->core->group().ranks_here_below(comm->core->rank());
}

int unisono_local_size(unisono_comm_t comm) noexcept {
  return comm == nullptr ? 0 : comm->core->group().ranks_here_below(comm->core->size());
}

unisono_result_t unisono_split(int color, int key, unisono_comm_t comm,
                               unisono_comm_t* group) noexcept {
  return guard([&] {
    expect_place(group, "group");
    unisono::detail::Core& core = core_of(comm);  // first: `group` may be where `comm` is kept
    *group = nullptr;
    auto handle = std::make_unique<unisono_comm_handle>();
    handle->core = unisono::detail::split(core, color, key);
    if (handle->core != nullptr) {
      *group = handle.release();
    }
  });
}

unisono_result_t unisono_subgroup(const int* members, std::size_t count, unsigned long long id,
                                  unisono_comm_t comm, unisono_comm_t* group) noexcept {
  return guard([&] {
    expect_place(group, "group");
    unisono::detail::Core& core = core_of(comm);  // first: `group` may be where `comm` is kept
    *group = nullptr;
    auto handle = std::make_unique<unisono_comm_handle>();
    handle->core = unisono::detail::subgroup(core, view(members, count, "members"), id);
    *group = handle.release();
  });
}

unisono_result_t unisono_shrink(int timeout_ms, int quorum, unisono_comm_t comm,
                                unisono_comm_t* shrunk) noexcept {
  return guard([&] {
    expect_place(shrunk, "shrunk");
    auto handle = std::make_unique<unisono_comm_handle>();
    handle->core =
        unisono::detail::shrink(core_of(comm), {.timeout_ms = timeout_ms, .quorum = quorum != 0});
    replace(comm, shrunk, std::move(handle));
  });
}

unisono_result_t unisono_grow(int size, const char* address, unisono_comm_t comm,
                              unisono_comm_t* grown) noexcept {
  return guard([&] {
    expect_place(grown, "grown");
    auto handle = std::make_unique<unisono_comm_handle>();
    handle->core = unisono::detail::grow(core_of(comm), size, address == nullptr ? "" : address);
    replace(comm, grown, std::move(handle));
  });
}

unisono_result_t unisono_label(const char* text, unisono_comm_t comm) noexcept {
  return guard(
      [&] { unisono::comm::set_label(*core_of(comm).world(), text == nullptr ? "" : text); });
}

unisono_result_t unisono_abort(const char* reason, unisono_comm_t comm) noexcept {
  return guard([&] { core_of(comm).abort(reason == nullptr ? "" : reason); });
}

unisono_result_t unisono_failure(unisono_comm_t comm, unisono_result_t* failure) noexcept {
  return guard([&] {
    expect_place(failure, "failure");
    const auto found = core_of(comm).failure();
    *failure = found ? fail(result_of(found->code()), found->what()) : UNISONO_SUCCESS;
  });
}

unisono_result_t unisono_late_ranks(unisono_comm_t comm, int* ranks, int* count) noexcept {
  return guard([&] {
    expect_place(ranks, "ranks");
    expect_place(count, "count");
    const std::vector<int> found = core_of(comm).late_ranks();
    std::copy(found.begin(), found.end(), ranks);
    *count = static_cast<int>(found.size());
  });
}

unisono_result_t unisono_statistics(const char* what, unisono_comm_t comm,
                                    unisono_statistics_t* statistics,
                                    double* waiting_for_s) noexcept {
  return guard([&] {
    expect_place(what, "what");
    expect_statistics(what);
    const unisono::Statistics all = core_of(comm).statistics();
    unisono_statistics_t found = UNISONO_STATISTICS_INIT;
    const auto ranks = static_cast<std::size_t>(core_of(comm).size());
    std::vector<double> waiting(ranks);
    for (const unisono::Statistics::Row& row : all.rows) {
      if (row.what == what) {
        found.calls = row.calls;
        found.bytes = row.bytes;
        found.moving_s = row.moving_s;
        found.waiting_s = row.waiting_s;
        std::copy(row.skew.begin(), row.skew.end(), std::begin(found.skew));
        waiting = row.waiting_for_s;
      }
    }
    fill(statistics, "statistics", found, "UNISONO_STATISTICS_INIT");
    if (waiting_for_s != nullptr) {
      std::copy(waiting.begin(), waiting.end(), waiting_for_s);
    }
  });
}

unisono_result_t unisono_wait(unisono_request_t* request, int timeout_ms) noexcept {
  return guard([&] {
    expect_place(request, "request");
    const std::unique_ptr<unisono_request_handle> handle(std::exchange(*request, nullptr));
    unisono::detail::RequestState& state = state_of(handle.get());
    state.driver->wait(state, timeout_ms);
  });
}

unisono_result_t unisono_test(unisono_request_t request, int* done) noexcept {
  return guard([&] {
    expect_place(done, "done");
    unisono::detail::RequestState& state = state_of(request);
    *done = state.driver->test(state) ? 1 : 0;
  });
}

unisono_result_t unisono_allocate(std::size_t bytes, unisono_comm_t comm,
                                  unisono_region_t* region) noexcept {
  return guard([&] {
    expect_place(region, "region");
    *region = nullptr;
    *region = new unisono_region_handle{
        unisono::detail::Handles::region(unisono::detail::allocate(core_of(comm).world(), bytes))};
  });
}

unisono_result_t unisono_register_buffer(void* data, std::size_t bytes, unisono_comm_t comm,
                                         unisono_region_t* region) noexcept {
  return guard([&] {
    expect_place(region, "region");
    *region = nullptr;
    const std::span memory(static_cast<std::byte*>(data), bytes);
    *region = new unisono_region_handle{
        unisono::detail::Handles::region(unisono::detail::adopt(core_of(comm).world(), memory))};
  });
}

void* unisono_region_address(unisono_region_t region) noexcept {
  return region == nullptr ? nullptr : region->region.bytes().data();
}

std::size_t unisono_region_bytes(unisono_region_t region) noexcept {
  return region == nullptr ? 0 : region->region.bytes().size();
}

unisono_result_t unisono_region_free(unisono_region_t* region) noexcept {
  return free_handle(region, "region");
}
