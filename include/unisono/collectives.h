/* The C functions of the collectives; unisono.h includes them. unisono_run() runs every collective
 * with all its options. */
#pragma once

#include "unisono/types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Collectives. All ranks must call each function. A blocking function returns when its buffers may
 * be used again. An _async function starts the operation and sets *request. The operation
 * progresses while the caller computes. Until unisono_wait() returns, the buffers must live, and
 * `out` must not be read or written. Inside unisono_group(), unisono_group() waits for the
 * operation: *request becomes NULL, and `request` may be NULL.
 *
 * Shapes: see rules.h.
 * In place: see rules.h.
 * Errors: USAGE, before this rank sends anything; PEER_LOST, TIMEOUT, MISMATCH and ABORTED, on all
 * ranks. */

/* Copies the root's vector to all ranks. */
UNISONO_EXPORT unisono_result_t unisono_broadcast(void* data, size_t count, unisono_dtype_t dtype,
                                                  int root, unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t
unisono_broadcast_async(void* data, size_t count, unisono_dtype_t dtype, int root,
                        unisono_comm_t comm, unisono_request_t* request) UNISONO_NOEXCEPT;
/* Reduces the vectors of all ranks; the root gets the result. */
UNISONO_EXPORT unisono_result_t unisono_reduce(const void* in, void* out, size_t count,
                                               unisono_dtype_t dtype, unisono_op_t op, int root,
                                               unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_reduce_async(const void* in, void* out, size_t count,
                                                     unisono_dtype_t dtype, unisono_op_t op,
                                                     int root, unisono_comm_t comm,
                                                     unisono_request_t* request) UNISONO_NOEXCEPT;
/* Reduces the vectors of all ranks; every rank gets the result. */
UNISONO_EXPORT unisono_result_t unisono_all_reduce(const void* in, void* out, size_t count,
                                                   unisono_dtype_t dtype, unisono_op_t op,
                                                   unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_all_reduce_async(
    const void* in, void* out, size_t count, unisono_dtype_t dtype, unisono_op_t op,
    unisono_comm_t comm, unisono_request_t* request) UNISONO_NOEXCEPT;
/* Sends each rank its part of the root's vector. */
UNISONO_EXPORT unisono_result_t unisono_scatter(const void* in, void* out, size_t count,
                                                unisono_dtype_t dtype, int root,
                                                unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_scatter_async(const void* in, void* out, size_t count,
                                                      unisono_dtype_t dtype, int root,
                                                      unisono_comm_t comm,
                                                      unisono_request_t* request) UNISONO_NOEXCEPT;
/* Collects the parts of all ranks on the root, in rank order. */
UNISONO_EXPORT unisono_result_t unisono_gather(const void* in, void* out, size_t count,
                                               unisono_dtype_t dtype, int root,
                                               unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_gather_async(const void* in, void* out, size_t count,
                                                     unisono_dtype_t dtype, int root,
                                                     unisono_comm_t comm,
                                                     unisono_request_t* request) UNISONO_NOEXCEPT;
/* Collects the parts of all ranks on every rank, in rank order. */
UNISONO_EXPORT unisono_result_t unisono_all_gather(const void* in, void* out, size_t count,
                                                   unisono_dtype_t dtype,
                                                   unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t
unisono_all_gather_async(const void* in, void* out, size_t count, unisono_dtype_t dtype,
                         unisono_comm_t comm, unisono_request_t* request) UNISONO_NOEXCEPT;
/* Reduces the vectors of all ranks; each rank gets its part of the result. */
UNISONO_EXPORT unisono_result_t unisono_reduce_scatter(const void* in, void* out, size_t count,
                                                       unisono_dtype_t dtype, unisono_op_t op,
                                                       unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_reduce_scatter_async(
    const void* in, void* out, size_t count, unisono_dtype_t dtype, unisono_op_t op,
    unisono_comm_t comm, unisono_request_t* request) UNISONO_NOEXCEPT;
/* Sends part j of each rank's vector to rank j. */
UNISONO_EXPORT unisono_result_t unisono_all_to_all(const void* in, void* out, size_t count,
                                                   unisono_dtype_t dtype,
                                                   unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t
unisono_all_to_all_async(const void* in, void* out, size_t count, unisono_dtype_t dtype,
                         unisono_comm_t comm, unisono_request_t* request) UNISONO_NOEXCEPT;
/* unisono_barrier() returns when all ranks have called it. The _async form returns at once. */
UNISONO_EXPORT unisono_result_t unisono_barrier(unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_barrier_async(unisono_comm_t comm,
                                                      unisono_request_t* request) UNISONO_NOEXCEPT;

/* unisono_scan() gives rank r the reduction of the vectors of ranks 0 to r.
 * unisono_exclusive_scan() gives rank r the reduction of the vectors of ranks 0 to r-1. Rank 0 gets
 * the operation's identity, such as 0 for a sum; UNISONO_USER leaves `out` of rank 0 unchanged.
 * Errors: those above; UNISONO_AVG is also a USAGE error. */
UNISONO_EXPORT unisono_result_t unisono_scan(const void* in, void* out, size_t count,
                                             unisono_dtype_t dtype, unisono_op_t op,
                                             unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_scan_async(const void* in, void* out, size_t count,
                                                   unisono_dtype_t dtype, unisono_op_t op,
                                                   unisono_comm_t comm,
                                                   unisono_request_t* request) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_exclusive_scan(const void* in, void* out, size_t count,
                                                       unisono_dtype_t dtype, unisono_op_t op,
                                                       unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_exclusive_scan_async(
    const void* in, void* out, size_t count, unisono_dtype_t dtype, unisono_op_t op,
    unisono_comm_t comm, unisono_request_t* request) UNISONO_NOEXCEPT;

/* Collective. The v-forms, in which parts may differ in length. rules.h describes the lists
 * `counts` and `displs`; if `displs` is NULL, parts are packed. Only the root uses `in` of
 * scatter_v and `out` of gather_v. The in-place rule and the errors are the same as for the other
 * collectives. */
UNISONO_EXPORT unisono_result_t unisono_scatter_v(const void* in, void* out, const size_t* counts,
                                                  const size_t* displs, unisono_dtype_t dtype,
                                                  int root, unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_scatter_v_async(
    const void* in, void* out, const size_t* counts, const size_t* displs, unisono_dtype_t dtype,
    int root, unisono_comm_t comm, unisono_request_t* request) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_gather_v(const void* in, void* out, const size_t* counts,
                                                 const size_t* displs, unisono_dtype_t dtype,
                                                 int root, unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_gather_v_async(const void* in, void* out,
                                                       const size_t* counts, const size_t* displs,
                                                       unisono_dtype_t dtype, int root,
                                                       unisono_comm_t comm,
                                                       unisono_request_t* request) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_all_gather_v(const void* in, void* out,
                                                     const size_t* counts, const size_t* displs,
                                                     unisono_dtype_t dtype,
                                                     unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_all_gather_v_async(
    const void* in, void* out, const size_t* counts, const size_t* displs, unisono_dtype_t dtype,
    unisono_comm_t comm, unisono_request_t* request) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_reduce_scatter_v(const void* in, void* out,
                                                         const size_t* counts, const size_t* displs,
                                                         unisono_dtype_t dtype, unisono_op_t op,
                                                         unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_reduce_scatter_v_async(
    const void* in, void* out, const size_t* counts, const size_t* displs, unisono_dtype_t dtype,
    unisono_op_t op, unisono_comm_t comm, unisono_request_t* request) UNISONO_NOEXCEPT;
/* Sends counts[i] elements to rank i and receives recv_counts[i] elements from rank i. */
UNISONO_EXPORT unisono_result_t unisono_all_to_all_v(const void* in, const size_t* counts,
                                                     const size_t* displs, void* out,
                                                     const size_t* recv_counts,
                                                     const size_t* recv_displs,
                                                     unisono_dtype_t dtype,
                                                     unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_all_to_all_v_async(
    const void* in, const size_t* counts, const size_t* displs, void* out,
    const size_t* recv_counts, const size_t* recv_displs, unisono_dtype_t dtype,
    unisono_comm_t comm, unisono_request_t* request) UNISONO_NOEXCEPT;
#if defined(__cplusplus)
}
#endif
