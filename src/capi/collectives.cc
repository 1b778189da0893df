// The C interface: one function for each collective, blocking and asynchronous.
#include "capi/call.h"

using namespace unisono::c_api;  // NOLINT(google-build-using-namespace): all below is outside

namespace {

using unisono::Collective;

// Calls `make_call` inside the guard, because it may throw.
template <typename MakeCall>
unisono_result_t block(unisono_comm_t comm, const MakeCall& make_call) noexcept {
  return guard([&] { core_of(comm).run(make_call()); });
}

template <typename MakeCall>
unisono_result_t start(unisono_comm_t comm, unisono_request_t* request,
                       const MakeCall& make_call) noexcept {
  return guard([&] {
    unisono::detail::Core& core = core_of(comm);
    start_request(core, request, [&] { return core.run_async(make_call()); });
  });
}

template <typename MakeCall>
unisono_result_t block_v(unisono_comm_t comm, const PartLists& lists,
                         const MakeCall& make_call) noexcept {
  return block(comm, [&] { return with_lists(make_call(), lists, unisono_size(comm)); });
}

template <typename MakeCall>
unisono_result_t start_v(unisono_comm_t comm, const PartLists& lists, unisono_request_t* request,
                         const MakeCall& make_call) noexcept {
  return start(comm, request, [&] { return with_lists(make_call(), lists, unisono_size(comm)); });
}

}  // namespace

unisono_result_t unisono_broadcast(void* data, std::size_t count, unisono_dtype_t dtype, int root,
                                   unisono_comm_t comm) noexcept {
  return block(comm,
               [&] { return call_of(Collective::broadcast, {data, data, count, dtype}, root); });
}

unisono_result_t unisono_broadcast_async(void* data, std::size_t count, unisono_dtype_t dtype,
                                         int root, unisono_comm_t comm,
                                         unisono_request_t* request) noexcept {
  return start(comm, request,
               [&] { return call_of(Collective::broadcast, {data, data, count, dtype}, root); });
}

unisono_result_t unisono_reduce(const void* in, void* out, std::size_t count, unisono_dtype_t dtype,
                                unisono_op_t op, int root, unisono_comm_t comm) noexcept {
  return block(comm,
               [&] { return call_of(Collective::reduce, {in, out, count, dtype}, root, op); });
}

unisono_result_t unisono_reduce_async(const void* in, void* out, std::size_t count,
                                      unisono_dtype_t dtype, unisono_op_t op, int root,
                                      unisono_comm_t comm, unisono_request_t* request) noexcept {
  return start(comm, request,
               [&] { return call_of(Collective::reduce, {in, out, count, dtype}, root, op); });
}

unisono_result_t unisono_all_reduce(const void* in, void* out, std::size_t count,
                                    unisono_dtype_t dtype, unisono_op_t op,
                                    unisono_comm_t comm) noexcept {
  return block(comm,
               [&] { return call_of(Collective::all_reduce, {in, out, count, dtype}, 0, op); });
}

unisono_result_t unisono_all_reduce_async(const void* in, void* out, std::size_t count,
                                          unisono_dtype_t dtype, unisono_op_t op,
                                          unisono_comm_t comm,
                                          unisono_request_t* request) noexcept {
  return start(comm, request,
               [&] { return call_of(Collective::all_reduce, {in, out, count, dtype}, 0, op); });
}

unisono_result_t unisono_scatter(const void* in, void* out, std::size_t count,
                                 unisono_dtype_t dtype, int root, unisono_comm_t comm) noexcept {
  return block(comm, [&] { return call_of(Collective::scatter, {in, out, count, dtype}, root); });
}

unisono_result_t unisono_scatter_async(const void* in, void* out, std::size_t count,
                                       unisono_dtype_t dtype, int root, unisono_comm_t comm,
                                       unisono_request_t* request) noexcept {
  return start(comm, request,
               [&] { return call_of(Collective::scatter, {in, out, count, dtype}, root); });
}

unisono_result_t unisono_gather(const void* in, void* out, std::size_t count, unisono_dtype_t dtype,
                                int root, unisono_comm_t comm) noexcept {
  return block(comm, [&] { return call_of(Collective::gather, {in, out, count, dtype}, root); });
}

unisono_result_t unisono_gather_async(const void* in, void* out, std::size_t count,
                                      unisono_dtype_t dtype, int root, unisono_comm_t comm,
                                      unisono_request_t* request) noexcept {
  return start(comm, request,
               [&] { return call_of(Collective::gather, {in, out, count, dtype}, root); });
}

unisono_result_t unisono_all_gather(const void* in, void* out, std::size_t count,
                                    unisono_dtype_t dtype, unisono_comm_t comm) noexcept {
  return block(comm, [&] { return call_of(Collective::all_gather, {in, out, count, dtype}); });
}

unisono_result_t unisono_all_gather_async(const void* in, void* out, std::size_t count,
                                          unisono_dtype_t dtype, unisono_comm_t comm,
                                          unisono_request_t* request) noexcept {
  return start(comm, request,
               [&] { return call_of(Collective::all_gather, {in, out, count, dtype}); });
}

unisono_result_t unisono_reduce_scatter(const void* in, void* out, std::size_t count,
                                        unisono_dtype_t dtype, unisono_op_t op,
                                        unisono_comm_t comm) noexcept {
  return block(comm,
               [&] { return call_of(Collective::reduce_scatter, {in, out, count, dtype}, 0, op); });
}

unisono_result_t unisono_reduce_scatter_async(const void* in, void* out, std::size_t count,
                                              unisono_dtype_t dtype, unisono_op_t op,
                                              unisono_comm_t comm,
                                              unisono_request_t* request) noexcept {
  return start(comm, request,
               [&] { return call_of(Collective::reduce_scatter, {in, out, count, dtype}, 0, op); });
}

unisono_result_t unisono_all_to_all(const void* in, void* out, std::size_t count,
                                    unisono_dtype_t dtype, unisono_comm_t comm) noexcept {
  return block(comm, [&] { return call_of(Collective::all_to_all, {in, out, count, dtype}); });
}

unisono_result_t unisono_all_to_all_async(const void* in, void* out, std::size_t count,
                                          unisono_dtype_t dtype, unisono_comm_t comm,
                                          unisono_request_t* request) noexcept {
  return start(comm, request,
               [&] { return call_of(Collective::all_to_all, {in, out, count, dtype}); });
}

unisono_result_t unisono_barrier(unisono_comm_t comm) noexcept {
  return block(comm, [&] { return call_of(Collective::barrier, {}); });
}

unisono_result_t unisono_barrier_async(unisono_comm_t comm, unisono_request_t* request) noexcept {
  return start(comm, request, [&] { return call_of(Collective::barrier, {}); });
}

unisono_result_t unisono_scan(const void* in, void* out, std::size_t count, unisono_dtype_t dtype,
                              unisono_op_t op, unisono_comm_t comm) noexcept {
  return block(comm, [&] { return call_of(Collective::scan, {in, out, count, dtype}, 0, op); });
}

unisono_result_t unisono_scan_async(const void* in, void* out, std::size_t count,
                                    unisono_dtype_t dtype, unisono_op_t op, unisono_comm_t comm,
                                    unisono_request_t* request) noexcept {
  return start(comm, request,
               [&] { return call_of(Collective::scan, {in, out, count, dtype}, 0, op); });
}

unisono_result_t unisono_exclusive_scan(const void* in, void* out, std::size_t count,
                                        unisono_dtype_t dtype, unisono_op_t op,
                                        unisono_comm_t comm) noexcept {
  return block(comm,
               [&] { return call_of(Collective::exclusive_scan, {in, out, count, dtype}, 0, op); });
}

unisono_result_t unisono_exclusive_scan_async(const void* in, void* out, std::size_t count,
                                              unisono_dtype_t dtype, unisono_op_t op,
                                              unisono_comm_t comm,
                                              unisono_request_t* request) noexcept {
  return start(comm, request,
               [&] { return call_of(Collective::exclusive_scan, {in, out, count, dtype}, 0, op); });
}

unisono_result_t unisono_scatter_v(const void* in, void* out, const std::size_t* counts,
                                   const std::size_t* displs, unisono_dtype_t dtype, int root,
                                   unisono_comm_t comm) noexcept {
  return block_v(comm, {counts, displs},
                 [&] { return call_of(Collective::scatter_v, {in, out, 0, dtype}, root); });
}

unisono_result_t unisono_scatter_v_async(const void* in, void* out, const std::size_t* counts,
                                         const std::size_t* displs, unisono_dtype_t dtype, int root,
                                         unisono_comm_t comm, unisono_request_t* request) noexcept {
  return start_v(comm, {counts, displs}, request,
                 [&] { return call_of(Collective::scatter_v, {in, out, 0, dtype}, root); });
}

unisono_result_t unisono_gather_v(const void* in, void* out, const std::size_t* counts,
                                  const std::size_t* displs, unisono_dtype_t dtype, int root,
                                  unisono_comm_t comm) noexcept {
  return block_v(comm, {counts, displs},
                 [&] { return call_of(Collective::gather_v, {in, out, 0, dtype}, root); });
}

unisono_result_t unisono_gather_v_async(const void* in, void* out, const std::size_t* counts,
                                        const std::size_t* displs, unisono_dtype_t dtype, int root,
                                        unisono_comm_t comm, unisono_request_t* request) noexcept {
  return start_v(comm, {counts, displs}, request,
                 [&] { return call_of(Collective::gather_v, {in, out, 0, dtype}, root); });
}

unisono_result_t unisono_all_gather_v(const void* in, void* out, const std::size_t* counts,
                                      const std::size_t* displs, unisono_dtype_t dtype,
                                      unisono_comm_t comm) noexcept {
  return block_v(comm, {counts, displs},
                 [&] { return call_of(Collective::all_gather_v, {in, out, 0, dtype}); });
}

unisono_result_t unisono_all_gather_v_async(const void* in, void* out, const std::size_t* counts,
                                            const std::size_t* displs, unisono_dtype_t dtype,
                                            unisono_comm_t comm,
                                            unisono_request_t* request) noexcept {
  return start_v(comm, {counts, displs}, request,
                 [&] { return call_of(Collective::all_gather_v, {in, out, 0, dtype}); });
}

unisono_result_t unisono_reduce_scatter_v(const void* in, void* out, const std::size_t* counts,
                                          const std::size_t* displs, unisono_dtype_t dtype,
                                          unisono_op_t op, unisono_comm_t comm) noexcept {
  return block_v(comm, {counts, displs},
                 [&] { return call_of(Collective::reduce_scatter_v, {in, out, 0, dtype}, 0, op); });
}

unisono_result_t unisono_reduce_scatter_v_async(const void* in, void* out,
                                                const std::size_t* counts,
                                                const std::size_t* displs, unisono_dtype_t dtype,
                                                unisono_op_t op, unisono_comm_t comm,
                                                unisono_request_t* request) noexcept {
  return start_v(comm, {counts, displs}, request,
                 [&] { return call_of(Collective::reduce_scatter_v, {in, out, 0, dtype}, 0, op); });
}

unisono_result_t unisono_all_to_all_v(const void* in, const std::size_t* counts,
                                      const std::size_t* displs, void* out,
                                      const std::size_t* recv_counts,
                                      const std::size_t* recv_displs, unisono_dtype_t dtype,
                                      unisono_comm_t comm) noexcept {
  return block_v(comm, {counts, displs, recv_counts, recv_displs},
                 [&] { return call_of(Collective::all_to_all_v, {in, out, 0, dtype}); });
}

unisono_result_t unisono_all_to_all_v_async(const void* in, const std::size_t* counts,
                                            const std::size_t* displs, void* out,
                                            const std::size_t* recv_counts,
                                            const std::size_t* recv_displs, unisono_dtype_t dtype,
                                            unisono_comm_t comm,
                                            unisono_request_t* request) noexcept {
  return start_v(comm, {counts, displs, recv_counts, recv_displs}, request,
                 [&] { return call_of(Collective::all_to_all_v, {in, out, 0, dtype}); });
}
