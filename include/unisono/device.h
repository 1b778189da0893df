/* Collectives on GPU memory for C, between ranks on one host. device.hpp describes buffers, the
 * order of calls on streams, and the time at which errors are reported. unisono.h describes results
 * and errors; each thread has its own unisono_last_error().
 *
 *   unisono_device_options_t options = UNISONO_DEVICE_OPTIONS_INIT;
 *   unisono_device_create(&options, comm, &group);        once, on every rank
 *   unisono_call_t call = UNISONO_CALL_INIT;
 *   call.collective = UNISONO_ALL_REDUCE;
 *   call.in = call.out = gradients;                       device memory
 *   call.count = count;
 *   call.dtype = UNISONO_BF16;
 *   unisono_device_run(&call, stream, group);             starts it, and returns
 *   unisono_device_synchronize(stream, 0, group);
 *
 * Threads: one thread at a time may use a group, except in functions with "Threads: any". */
#pragma once

#include <stddef.h>

#include "unisono/unisono.h"

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct unisono_device_handle* unisono_device_t; /* a rank's handle on a device group */

/* Start from UNISONO_DEVICE_OPTIONS_INIT. */
typedef struct unisono_device_options {
  size_t struct_size;
  int device;           /* CUDA device number */
  int channels;         /* thread blocks per operation, the same on all ranks; 0: automatic */
  int timeout_ms;       /* limit of the wait for a late rank; -1: five minutes; 0: no limit */
  int reserved;         /* 0 */
  size_t scratch_bytes; /* bytes of device memory, the same on all ranks */
} unisono_device_options_t;
#define UNISONO_DEVICE_OPTIONS_INIT \
  {sizeof(unisono_device_options_t), 0, 0, -1, 0, (size_t)32 << 20}

/* Collective. Makes a device group. comm stays usable, and may be freed before the group. If
 * `options` is NULL, UNISONO_DEVICE_OPTIONS_INIT applies. The caller frees *group; *group is NULL
 * after a failure.
 * Errors, on all ranks: CONFIG (no driver, no such device, no kernels, a device that cannot access
 * another device's memory), USAGE (ranks on several hosts, different options), RESOURCE. */
UNISONO_EXPORT unisono_result_t unisono_device_create(const unisono_device_options_t* options,
                                                      unisono_comm_t comm,
                                                      unisono_device_t* group) UNISONO_NOEXCEPT;
/* Local. Stops running operations, frees the group and sets *group to NULL; *group may be NULL. */
UNISONO_EXPORT unisono_result_t unisono_device_free(unisono_device_t* group) UNISONO_NOEXCEPT;

/* Collective. Allocates device memory that all ranks can access until the group is freed. `bytes`
 * may differ between ranks. *data is NULL after a failure.
 * Units: bytes.
 * Errors: USAGE, RESOURCE, the error that has ended the group. */
UNISONO_EXPORT unisono_result_t unisono_device_allocate(size_t bytes, unisono_device_t group,
                                                        void** data) UNISONO_NOEXCEPT;
/* Collective. Starts a collective on `stream` (a CUstream or cudaStream_t; NULL: the legacy default
 * stream), after the work that the stream already holds, and returns. `call` is as for
 * unisono_run(), but its buffers are device memory, and timeout_ms must be -1 (the group's limit).
 * Shapes: see rules.h.
 * In place: see device.hpp.
 * Errors: USAGE at once; TIMEOUT, PEER_LOST, MISMATCH and ABORTED if an earlier call has ended the
 * group. */
UNISONO_EXPORT unisono_result_t unisono_device_run(const unisono_call_t* call, void* stream,
                                                   unisono_device_t group) UNISONO_NOEXCEPT;
/* Local. Returns the error that has ended the group, or UNISONO_SUCCESS.
 * Threads: any. */
UNISONO_EXPORT unisono_result_t unisono_device_check(unisono_device_t group) UNISONO_NOEXCEPT;
/* Local. Returns when all work on the stream is done.
 * Units: timeout_ms in milliseconds; 0: no limit.
 * Threads: any.
 * Errors: TIMEOUT, the error that has ended the group. */
UNISONO_EXPORT unisono_result_t unisono_device_synchronize(void* stream, int timeout_ms,
                                                           unisono_device_t group) UNISONO_NOEXCEPT;

#if defined(__cplusplus)
}
#endif
