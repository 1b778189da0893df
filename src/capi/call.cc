// The C interface: functions that take a unisono_call_t, plans, groups, send and recv.
#include "capi/call.h"

#include <cstddef>

namespace unisono::c_api {
namespace {

static_assert(offsetof(unisono_call_t, max_error) + sizeof(double) == sizeof(unisono_call_t));

template <typename To, typename From>
To value_of(From value, int count, const char* type) {
  if (value < 0 || value >= count) {
    throw Error(ErrorCode::usage, std::to_string(static_cast<int>(value)) + " is not a " + type +
                                      "\nuse the values of the enumeration in unisono/types.h");
  }
  return static_cast<To>(value);
}

Reduction reduction_of(const unisono_call_t& call) {
  Reduction reduction(op_of(call.op));
  reduction.factor = call.factor;
  reduction.user = {.combine = call.combine, .context = call.context};
  return reduction;
}

unisono_plan_handle& plan_of(unisono_plan_t plan) {
  if (plan == nullptr) {
    throw Error(ErrorCode::usage, "the plan is NULL\nit was never created, or was freed");
  }
  return *plan;
}

void report(const detail::Received& message, std::size_t* received, int* source) {
  if (received != nullptr) {
    *received = message.bytes;
  }
  if (source != nullptr) {
    *source = message.source;
  }
}

comm::PendingTransfer transfer_of(bool send, const void* data, std::size_t bytes, int peer,
                                  int tag) {
  return {.send = send,
          .peer = peer,
          .tag = tag,
          .data = static_cast<std::byte*>(const_cast<void*>(data)),
          .bytes = bytes};
}

}  // namespace

Collective collective_of(unisono_collective_t collective) {
  return value_of<Collective>(collective, kCollectiveCount, "unisono_collective_t");
}

Dtype dtype_of(unisono_dtype_t dtype) {
  return value_of<Dtype>(dtype, kDtypeCount, "unisono_dtype_t");
}

ReduceOp op_of(unisono_op_t op) {
  return value_of<ReduceOp>(op, kReduceOpCount, "unisono_op_t");
}

Reduction plain_reduction(unisono_op_t op) {
  if (op == UNISONO_PREMUL_SUM || op == UNISONO_USER) {
    throw Error(ErrorCode::usage, std::string(to_string(op_of(op))) + " needs a " +
                                      (op == UNISONO_USER ? "function" : "factor") +
                                      "\nset it in a unisono_call_t, and use unisono_run()");
  }
  return op_of(op);
}

Call call_of(Collective collective, const Data& data, int root, unisono_op_t op) {
  return {.collective = collective,
          .in = data.in,
          .out = data.out,
          .count = data.count,
          .dtype = dtype_of(data.dtype),
          .reduction = plain_reduction(op),
          .root = root};
}

Call with_lists(Call call, const PartLists& lists, int ranks) {
  const auto list = [n = static_cast<std::size_t>(ranks)](const std::size_t* first) {
    return first == nullptr ? std::span<const std::size_t>() : std::span(first, n);
  };
  call.counts = list(lists.counts);
  call.displs = list(lists.displs);
  call.recv_counts = list(lists.recv_counts);
  call.recv_displs = list(lists.recv_displs);
  return call;
}

Call call_of(const unisono_call_t* given, int ranks) {
  const unisono_call_t known =
      members_of(given, "call", unisono_call_t UNISONO_CALL_INIT, "UNISONO_CALL_INIT");
  if (known.reserved != 0) {
    throw Error(ErrorCode::usage, "`reserved` is not 0\nstart from UNISONO_CALL_INIT");
  }
  const Call call{.collective = collective_of(known.collective),
                  .in = known.in,
                  .out = known.out,
                  .count = known.count,
                  .dtype = dtype_of(known.dtype),
                  .reduction = reduction_of(known),
                  .root = known.root,
                  .algorithm = known.algorithm == nullptr ? "" : known.algorithm,
                  .timeout_ms = known.timeout_ms,
                  .max_error = known.max_error};
  return with_lists(call,
                    {.counts = known.counts,
                     .displs = known.displs,
                     .recv_counts = known.recv_counts,
                     .recv_displs = known.recv_displs},
                    ranks);
}

}  // namespace unisono::c_api

using namespace unisono::c_api;  // NOLINT(google-build-using-namespace): all below is outside

unisono_result_t unisono_run(const unisono_call_t* call, unisono_comm_t comm) noexcept {
  return guard([&] {
    unisono::detail::Core& core = core_of(comm);
    core.run(call_of(call, core.size()));
  });
}

unisono_result_t unisono_explain(const unisono_call_t* call, unisono_comm_t comm, char* text,
                                 std::size_t bytes, std::size_t* length) noexcept {
  return guard([&] {
    unisono::detail::Core& core = core_of(comm);
    if (bytes != 0) {
      expect_place(text, "text");
    }
    const std::string table = core.explain(call_of(call, core.size())).text();
    if (bytes != 0) {
      text[table.copy(text, bytes - 1)] = '\0';
    }
    if (length != nullptr) {
      *length = table.size() + 1;
    }
  });
}

unisono_result_t unisono_run_async(const unisono_call_t* call, unisono_comm_t comm,
                                   unisono_request_t* request) noexcept {
  return guard([&] {
    unisono::detail::Core& core = core_of(comm);
    start_request(core, request, [&] { return core.run_async(call_of(call, core.size())); });
  });
}

unisono_result_t unisono_plan(const unisono_call_t* call, unisono_comm_t comm,
                              unisono_plan_t* plan) noexcept {
  return guard([&] {
    expect_place(plan, "plan");
    *plan = nullptr;
    unisono::detail::Core& core = core_of(comm);
    auto handle = std::make_unique<unisono_plan_handle>();
    handle->state =
        core.plan(call_of(call, core.size()));  // keeps no pointer into the call's lists
    handle->algorithm = handle->state->algorithm();
    *plan = handle.release();
  });
}

unisono_result_t unisono_plan_start(unisono_plan_t plan) noexcept {
  return guard([&] {
    const unisono::detail::PlanState& state = *plan_of(plan).state;
    state.core->start(state);
  });
}

unisono_result_t unisono_plan_start_async(unisono_plan_t plan,
                                          unisono_request_t* request) noexcept {
  return guard([&] {
    const unisono::detail::PlanState& state = *plan_of(plan).state;
    start_request(*state.core, request, [&] { return state.core->start_async(state); });
  });
}

const char* unisono_plan_algorithm(unisono_plan_t plan) noexcept {
  return plan == nullptr ? "" : plan->algorithm.c_str();
}

unisono_result_t unisono_plan_free(unisono_plan_t* plan) noexcept {
  return guard([&] {
    expect_place(plan, "plan");
    delete std::exchange(*plan, nullptr);
  });
}

unisono_result_t unisono_group(unisono_result_t (*body)(void* context), void* context,
                               unisono_comm_t comm) noexcept {
  return guard([&] {
    unisono::detail::Core& core = core_of(comm);
    if (body == nullptr) {
      throw unisono::Error(unisono::ErrorCode::usage,
                           "`body` is NULL\npass the function that starts the operations");
    }
    core.run_together([&] {
      if (const unisono_result_t result = body(context); result != UNISONO_SUCCESS) {
        throw BodyFailed{result};
      }
    });
  });
}

unisono_result_t unisono_send(const void* data, std::size_t bytes, int to, int tag, int timeout_ms,
                              unisono_comm_t comm) noexcept {
  return guard([&] {
    unisono::comm::PendingTransfer transfer = transfer_of(true, data, bytes, to, tag);
    core_of(comm).transfer({&transfer, 1}, timeout_ms);
  });
}

unisono_result_t unisono_send_async(const void* data, std::size_t bytes, int to, int tag,
                                    unisono_comm_t comm, unisono_request_t* request) noexcept {
  return guard([&] {
    unisono::detail::Core& core = core_of(comm);
    start_request(core, request,
                  [&] { return core.transfer_async(transfer_of(true, data, bytes, to, tag)); });
  });
}

unisono_result_t unisono_recv(void* data, std::size_t bytes, int from, int tag, int timeout_ms,
                              unisono_comm_t comm, std::size_t* received, int* source) noexcept {
  return guard([&] {
    unisono::comm::PendingTransfer transfer = transfer_of(false, data, bytes, from, tag);
    core_of(comm).transfer({&transfer, 1}, timeout_ms);
    report({.source = transfer.peer, .bytes = transfer.bytes}, received, source);
  });
}

unisono_result_t unisono_wait_received(unisono_request_t* request, int timeout_ms,
                                       std::size_t* received, int* source) noexcept {
  return guard([&] {
    expect_place(request, "request");
    const std::unique_ptr<unisono_request_handle> handle(std::exchange(*request, nullptr));
    unisono::detail::RequestState& state = unisono::c_api::state_of(handle.get());
    state.driver->wait(state, timeout_ms);
    report(state.driver->received(state), received, source);
  });
}

unisono_result_t unisono_recv_async(void* data, std::size_t bytes, int from, int tag,
                                    unisono_comm_t comm, unisono_request_t* request) noexcept {
  return guard([&] {
    unisono::detail::Core& core = core_of(comm);
    start_request(core, request,
                  [&] { return core.transfer_async(transfer_of(false, data, bytes, from, tag)); });
  });
}
