// The C interface of dispatch and combine.
#include "experts/dispatch.h"
#include "unisono/experts.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "capi/call.h"
#include "capi/capi.h"
#include "comm/handles.h"
#include "experts/c_places.h"
#include "unisono/parallel/experts.hpp"

struct unisono_expert_exchange_handle {
  unisono::Communicator comm;  // the exchange keeps its address
  int k = 1;
  std::optional<unisono::ExpertExchange> exchange;
};
struct unisono_routing_handle {
  unisono::Routing routing;
  int k = 1;
  std::vector<int> source_ranks;
  std::vector<std::int64_t> source_tokens;
  std::vector<int> source_slots;
};

namespace unisono::c_api {
namespace {

static_assert(UNISONO_ROWS_I8 == static_cast<int>(RowCoding::i8));
static_assert(UNISONO_ROWS_F8E4M3 == static_cast<int>(RowCoding::f8e4m3));
// If the struct had tail padding, a new member could fit into it without changing the size, and the
// library could not detect callers without that member.
static_assert(offsetof(unisono_payload_t, reserved) + sizeof(int) == sizeof(unisono_payload_t));
static_assert(offsetof(unisono_combine_rows_t, residual) + sizeof(void*) ==
              sizeof(unisono_combine_rows_t));
static_assert(offsetof(unisono_combine_gradient_t, weights_gradient) + sizeof(void*) ==
              sizeof(unisono_combine_gradient_t));
static_assert(offsetof(unisono_routing_shape_t, rows_of_ranks) + sizeof(void*) ==
              sizeof(unisono_routing_shape_t));

ExpertExchange& exchange_of(unisono_expert_exchange_t exchange) {
  if (exchange == nullptr) {
    throw Error(ErrorCode::usage, "the exchange is NULL\nit was never created, or was freed");
  }
  return *exchange->exchange;
}

unisono_routing_handle& routing_of(unisono_routing_t routing) {
  if (routing == nullptr) {
    throw Error(ErrorCode::usage, "the routing is NULL\nit was never created, or was freed");
  }
  return *routing;
}

RowCoding coding_of(int coding) {
  if (coding < UNISONO_ROWS_PLAIN || coding > UNISONO_ROWS_F8E4M3) {
    throw Error(ErrorCode::usage, "coding is " + std::to_string(coding) +
                                      "\ngive UNISONO_ROWS_PLAIN, _I8 or _F8E4M3");
  }
  return static_cast<RowCoding>(coding);
}

std::span<const std::byte> bytes_at(const void* data, std::size_t bytes) {
  return {static_cast<const std::byte*>(data), data == nullptr ? 0 : bytes};
}
std::span<std::byte> bytes_at(void* data, std::size_t bytes) {
  return {static_cast<std::byte*>(data), data == nullptr ? 0 : bytes};
}
template <typename Float>
std::span<Float> floats_at(Float* data, std::size_t count) {
  return {data, data == nullptr ? 0 : count};
}

std::vector<Payload> payloads_of(const unisono_routing_handle& routing,
                                 const unisono_payload_t* given, std::size_t count) {
  std::vector<Payload> payloads;
  for (const unisono_payload_t& one :
       entries_of(given, count, "payloads", unisono_payload_t UNISONO_PAYLOAD_INIT,
                  "UNISONO_PAYLOAD_INIT")) {
    if (one.reserved != 0) {
      throw Error(ErrorCode::usage, "`reserved` is not 0\nstart from UNISONO_PAYLOAD_INIT");
    }
    const std::size_t each = one.one_a_slot != 0 ? static_cast<std::size_t>(routing.k) : 1;
    payloads.push_back(
        {.in = bytes_at(one.in, experts::bytes_of(routing.routing.tokens() * each, one.row_bytes)),
         .out = bytes_at(one.out, experts::bytes_of(routing.routing.rows(), one.row_bytes)),
         .row_bytes = one.row_bytes,
         .one_a_slot = one.one_a_slot != 0,
         .coding = coding_of(one.coding),
         .dtype = one.coding == UNISONO_ROWS_PLAIN ? Payload().dtype : dtype_of(one.dtype)});
  }
  return payloads;
}

CombineRows combine_of(const unisono_routing_handle& routing, const unisono_combine_rows_t* given) {
  const auto known = members_of(given, "combine", unisono_combine_rows_t UNISONO_COMBINE_ROWS_INIT,
                                "UNISONO_COMBINE_ROWS_INIT");
  const Dtype dtype = dtype_of(known.dtype);
  const std::size_t row_bytes = experts::bytes_of(known.hidden, size_of(dtype));
  const std::size_t tokens = routing.routing.tokens();
  return {.rows = bytes_at(known.rows, experts::bytes_of(routing.routing.rows(), row_bytes)),
          .out = bytes_at(known.out, experts::bytes_of(tokens, row_bytes)),
          .dtype = dtype,
          .hidden = known.hidden,
          .weights = floats_at(known.weights, tokens * static_cast<std::size_t>(routing.k)),
          .residual = bytes_at(known.residual, experts::bytes_of(tokens, row_bytes)),
          .coding = coding_of(known.coding)};
}

CombineGradient gradient_of(const unisono_routing_handle& routing,
                            const unisono_combine_gradient_t* given) {
  const auto known =
      members_of(given, "gradient", unisono_combine_gradient_t UNISONO_COMBINE_GRADIENT_INIT,
                 "UNISONO_COMBINE_GRADIENT_INIT");
  const Dtype dtype = dtype_of(known.dtype);
  const std::size_t row_bytes = experts::bytes_of(known.hidden, size_of(dtype));
  const std::size_t tokens = routing.routing.tokens();
  const std::size_t places = tokens * static_cast<std::size_t>(routing.k);
  return {.out_gradient = bytes_at(known.out_gradient, experts::bytes_of(tokens, row_bytes)),
          .rows_gradient =
              bytes_at(known.rows_gradient, experts::bytes_of(routing.routing.rows(), row_bytes)),
          .dtype = dtype,
          .hidden = known.hidden,
          .weights = floats_at(known.weights, places),
          .rows = bytes_at(known.rows, experts::bytes_of(routing.routing.rows(), row_bytes)),
          .weights_gradient = floats_at(known.weights_gradient, places)};
}

// Calls `start` and passes the resulting request to the caller.
template <typename Start>
void start_async(unisono_request_t* request, const Start& start) {
  expect_place(request, "request");
  *request = nullptr;
  auto handle = std::make_unique<unisono_request_handle>();  // nothing may fail after the start
  handle->state = detail::take_state(start());
  *request = handle.release();
}

template <typename Number>
void route(const Number* chosen, std::size_t tokens, unisono_expert_exchange_t exchange,
           unisono_routing_t* routing) {
  expect_place(routing, "routing");
  *routing = nullptr;
  ExpertExchange& open = exchange_of(exchange);
  const auto k = static_cast<std::size_t>(exchange->k);
  auto handle = std::make_unique<unisono_routing_handle>(
      unisono_routing_handle{.routing = open.route(view(chosen, tokens * k, "chosen")),
                             .k = exchange->k,
                             .source_ranks = {},
                             .source_tokens = {},
                             .source_slots = {}});
  for (const RowSource& source : handle->routing.sources()) {
    handle->source_ranks.push_back(source.rank);
    handle->source_tokens.push_back(source.token);
    handle->source_slots.push_back(source.slot);
  }
  *routing = handle.release();
}

}  // namespace
}  // namespace unisono::c_api

using namespace unisono::c_api;  // NOLINT(google-build-using-namespace): all below is outside

unisono_result_t unisono_expert_exchange_create(const unisono_expert_exchange_options_t* options,
                                                unisono_comm_t comm,
                                                unisono_expert_exchange_t* exchange) noexcept {
  return guard([&] {
    expect_place(exchange, "exchange");
    *exchange = nullptr;
    core_of(comm);  // throws for NULL
    const unisono::ExpertExchangeOptions wanted = options_of(options, unisono_size(comm));
    auto handle = std::make_unique<unisono_expert_exchange_handle>(
        unisono_expert_exchange_handle{.comm = unisono::detail::Handles::communicator(comm->core),
                                       .k = wanted.k,
                                       .exchange = std::nullopt});
    handle->exchange.emplace(handle->comm, wanted);
    *exchange = handle.release();
  });
}

unisono_result_t unisono_expert_exchange_free(unisono_expert_exchange_t* exchange) noexcept {
  return guard([&] {
    expect_place(exchange, "exchange");
    delete std::exchange(*exchange, nullptr);
  });
}

unisono_result_t unisono_expert_exchange_limits(unisono_expert_exchange_t exchange,
                                                std::size_t* max_tokens,
                                                std::size_t* max_rows) noexcept {
  return guard([&] {
    expect_place(max_tokens, "max_tokens");
    expect_place(max_rows, "max_rows");
    const unisono::ExpertExchange& open = exchange_of(exchange);
    *max_tokens = open.max_tokens();
    *max_rows = open.max_rows();
  });
}

unisono_result_t unisono_route(const std::int32_t* chosen, std::size_t tokens,
                               unisono_expert_exchange_t exchange,
                               unisono_routing_t* routing) noexcept {
  return guard([&] { route(chosen, tokens, exchange, routing); });
}

unisono_result_t unisono_route_i64(const std::int64_t* chosen, std::size_t tokens,
                                   unisono_expert_exchange_t exchange,
                                   unisono_routing_t* routing) noexcept {
  return guard([&] { route(chosen, tokens, exchange, routing); });
}

unisono_result_t unisono_routing_free(unisono_routing_t* routing) noexcept {
  return guard([&] {
    expect_place(routing, "routing");
    delete std::exchange(*routing, nullptr);
  });
}

unisono_result_t unisono_get_routing_shape(unisono_routing_t routing,
                                           unisono_routing_shape_t* shape) noexcept {
  return guard([&] {
    const unisono_routing_handle& handle = routing_of(routing);
    const unisono_routing_shape_t found{.struct_size = sizeof(found),
                                        .tokens = handle.routing.tokens(),
                                        .rows = handle.routing.rows(),
                                        .experts_here = handle.routing.experts_here().size(),
                                        .dropped = handle.routing.dropped(),
                                        .source_ranks = handle.source_ranks.data(),
                                        .source_tokens = handle.source_tokens.data(),
                                        .source_slots = handle.source_slots.data(),
                                        .experts = handle.routing.experts().data(),
                                        .numbers_here = handle.routing.experts_here().data(),
                                        .chosen = handle.routing.chosen().data(),
                                        .rows_of_ranks = handle.routing.rows_of_ranks().data()};
    fill(shape, "shape", found, "UNISONO_ROUTING_SHAPE_INIT");
  });
}

unisono_result_t unisono_routing_expert(int local, unisono_routing_t routing,
                                        std::size_t* first_row, std::size_t* rows) noexcept {
  return guard([&] {
    expect_place(first_row, "first_row");
    expect_place(rows, "rows");
    const unisono_routing_handle& handle = routing_of(routing);
    *first_row = handle.routing.first_row(local);
    *rows = handle.routing.rows_of(local);
  });
}

unisono_result_t unisono_dispatch(unisono_routing_t routing, const unisono_payload_t* payloads,
                                  std::size_t count, unisono_expert_exchange_t exchange) noexcept {
  return guard([&] {
    const unisono_routing_handle& handle = routing_of(routing);
    exchange_of(exchange).dispatch(handle.routing, payloads_of(handle, payloads, count));
  });
}

unisono_result_t unisono_dispatch_async(unisono_routing_t routing,
                                        const unisono_payload_t* payloads, std::size_t count,
                                        unisono_expert_exchange_t exchange,
                                        unisono_request_t* request) noexcept {
  return guard([&] {
    const unisono_routing_handle& handle = routing_of(routing);
    start_async(request, [&] {
      return exchange_of(exchange).dispatch_async(handle.routing,
                                                  payloads_of(handle, payloads, count));
    });
  });
}

unisono_result_t unisono_gather_list(unisono_routing_t routing, const void* in,
                                     std::size_t row_bytes, const void** rows,
                                     unisono_expert_exchange_t exchange) noexcept {
  return guard([&] {
    const unisono::Routing& made = routing_of(routing).routing;
    if (made.rows() != 0) {
      expect_place(rows, "rows");
    }
    const auto list =
        exchange_of(exchange).gather_list(made, bytes_at(in, made.tokens() * row_bytes), row_bytes);
    std::copy(list.begin(), list.end(), rows);
  });
}

unisono_result_t unisono_end_gather(unisono_expert_exchange_t exchange) noexcept {
  return guard([&] { exchange_of(exchange).end_gather(); });
}

unisono_result_t unisono_combine(unisono_routing_t routing, const unisono_combine_rows_t* combine,
                                 unisono_expert_exchange_t exchange) noexcept {
  return guard([&] {
    const unisono_routing_handle& handle = routing_of(routing);
    exchange_of(exchange).combine(handle.routing, combine_of(handle, combine));
  });
}

unisono_result_t unisono_combine_async(unisono_routing_t routing,
                                       const unisono_combine_rows_t* combine,
                                       unisono_expert_exchange_t exchange,
                                       unisono_request_t* request) noexcept {
  return guard([&] {
    const unisono_routing_handle& handle = routing_of(routing);
    start_async(request, [&] {
      return exchange_of(exchange).combine_async(handle.routing, combine_of(handle, combine));
    });
  });
}

unisono_result_t unisono_combine_backward(unisono_routing_t routing,
                                          const unisono_combine_gradient_t* gradient,
                                          unisono_expert_exchange_t exchange) noexcept {
  return guard([&] {
    const unisono_routing_handle& handle = routing_of(routing);
    exchange_of(exchange).combine_backward(handle.routing, gradient_of(handle, gradient));
  });
}

unisono_result_t unisono_mask(const int* ranks, std::size_t count,
                              unisono_expert_exchange_t exchange) noexcept {
  return guard([&] { exchange_of(exchange).mask(view(ranks, count, "ranks")); });
}

unisono_result_t unisono_mask_for(const int* ranks, std::size_t count, std::int64_t routes,
                                  unisono_expert_exchange_t exchange) noexcept {
  return guard([&] { exchange_of(exchange).mask(view(ranks, count, "ranks"), routes); });
}

unisono_result_t unisono_masked(int* ranks, std::size_t* count,
                                unisono_expert_exchange_t exchange) noexcept {
  return guard([&] {
    expect_place(count, "count");
    const std::vector<int> out = exchange_of(exchange).masked();
    if (!out.empty()) {
      expect_place(ranks, "ranks");
    }
    std::copy(out.begin(), out.end(), ranks);
    *count = out.size();
  });
}
