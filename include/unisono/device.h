/* Collectives on the memory of GPUs for C, between ranks of one host. What a buffer may be, how
 * calls follow each other on streams, and when an error is told is as in device.hpp; results and
 * errors are as in unisono.h, and unisono_last_error() is that of the calling thread.
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
 */
#pragma once

#include <stddef.h>

#include "unisono/unisono.h"

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct unisono_device_handle* unisono_device_t;

/* Start from UNISONO_DEVICE_OPTIONS_INIT. */
typedef struct unisono_device_options {
  size_t struct_size;
  int device;           /* as CUDA counts them */
  int channels;         /* thread blocks of an operation, the same on all ranks; 0: chosen */
  int timeout_ms;       /* for a rank that does not come; -1: five minutes; 0: for ever */
  int reserved;         /* 0 */
  size_t scratch_bytes; /* of device memory, the same on all ranks */
} unisono_device_options_t;
#define UNISONO_DEVICE_OPTIONS_INIT \
  {sizeof(unisono_device_options_t), 0, 0, -1, 0, (size_t)32 << 20}

/* All ranks of comm call it; comm stays usable, and may be freed first. options NULL: as
 * UNISONO_DEVICE_OPTIONS_INIT. *group is the caller's to free; NULL after a failure. Errors, on all
 * ranks: CONFIG (no driver, no such device, no kernels, a device that does not reach the memory of
 * another), USAGE (ranks on several hosts, options that differ), RESOURCE. */
UNISONO_EXPORT unisono_result_t unisono_device_create(const unisono_device_options_t* options,
                                                      unisono_comm_t comm,
                                                      unisono_device_t* group) UNISONO_NOEXCEPT;
/* Sets *group to NULL; it may be NULL. Stops what still runs. */
UNISONO_EXPORT unisono_result_t unisono_device_free(unisono_device_t* group) UNISONO_NOEXCEPT;

/* Device memory that all ranks can reach, until the group is freed. All ranks call it, for as many
 * bytes as each needs. *data is NULL after a failure. */
UNISONO_EXPORT unisono_result_t unisono_device_allocate(size_t bytes, unisono_device_t group,
                                                        void** data) UNISONO_NOEXCEPT;
/* Starts a collective on `stream` (a CUstream or cudaStream_t; NULL: the legacy default stream),
 * after what was put there before, and returns. `call`: as of unisono_run(), its buffers device
 * memory, its timeout_ms -1 (the group's). Errors: USAGE at once; TIMEOUT, PEER_LOST, MISMATCH,
 * ABORTED where an earlier call has ended the group. */
UNISONO_EXPORT unisono_result_t unisono_device_run(const unisono_call_t* call, void* stream,
                                                   unisono_device_t group) UNISONO_NOEXCEPT;
/* What has ended the group. Any thread. */
UNISONO_EXPORT unisono_result_t unisono_device_check(unisono_device_t group) UNISONO_NOEXCEPT;
/* Returns when all of the stream is done, or TIMEOUT after timeout_ms; 0: no limit. Any thread.
 * Errors: besides, those of unisono_device_check(). */
UNISONO_EXPORT unisono_result_t unisono_device_synchronize(void* stream, int timeout_ms,
                                                           unisono_device_t group) UNISONO_NOEXCEPT;

#if defined(__cplusplus)
}
#endif
