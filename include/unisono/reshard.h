/* Reshard for C: moves tensors from one mesh of ranks to another mesh. parallel/reshard.hpp
 * describes the moves. unisono.h describes results and errors.
 *
 *   unisono_reshard_tensor_t tensor = UNISONO_RESHARD_TENSOR_INIT;
 *   unisono_reshard_memory_t memory = UNISONO_RESHARD_MEMORY_INIT;
 *   tensor.name = "w";
 *   tensor.shape = shape;
 *   tensor.dimensions = 2;
 *   tensor.from = "tp=2: tp=shard(0)";
 *   tensor.to = "tp=2: tp=shard(1)";
 *   unisono_reshard_create(&tensor, 1, comm, &reshard);
 *   memory.in = in;
 *   memory.out = out;
 *   unisono_reshard_run(&memory, -1, reshard);
 *
 * Threads: one thread at a time may use a reshard. */
#pragma once

#include <stddef.h>

#include "unisono/unisono.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* A reshard: planned moves that are ready to run. */
typedef struct unisono_reshard_handle* unisono_reshard_t;

/* A tensor that moves, and its layouts before and after the move. Start from
 * UNISONO_RESHARD_TENSOR_INIT. */
typedef struct unisono_reshard_tensor {
  size_t struct_size;
  const char* name; /* different for each tensor */
  unisono_dtype_t dtype;
  const size_t* shape; /* shape of the whole tensor; NULL, with 0 dimensions: one element */
  size_t dimensions;   /* at most 8 */
  const char* from;    /* layout before, such as "dp=2,tp=4 on 0-7: tp=shard(0)" */
  const char* to;      /* layout after */
} unisono_reshard_tensor_t;
#define UNISONO_RESHARD_TENSOR_INIT \
  {sizeof(unisono_reshard_tensor_t), NULL, UNISONO_F32, NULL, 0, NULL, NULL}

/* This rank's part of a tensor. Start from UNISONO_RESHARD_PART_INIT. */
typedef struct unisono_reshard_part {
  size_t struct_size;
  int is_held; /* 0: the rank is outside the mesh, and has no part */
  size_t dimensions;
  size_t shape[8];
  size_t bytes;
} unisono_reshard_part_t;
#define UNISONO_RESHARD_PART_INIT {sizeof(unisono_reshard_part_t), 0, 0, {0}, 0}

/* This rank's buffers. Start from UNISONO_RESHARD_MEMORY_INIT. Each list has one entry for each
 * tensor, in the order of unisono_reshard_create(). If this rank has no part of a tensor, the
 * tensor's entries are ignored. */
typedef struct unisono_reshard_memory {
  size_t struct_size;
  const void* const* in; /* this rank's parts before the move; only read */
  void* const* out;      /* this rank's parts after the move; must not share memory with `in` */
  /* For each dimension of a part, the number of elements from one index to the next. If a list or
   * an entry is NULL, parts are row-major without gaps. */
  const ptrdiff_t* const* in_strides;
  const ptrdiff_t* const* out_strides;
} unisono_reshard_memory_t;
#define UNISONO_RESHARD_MEMORY_INIT {sizeof(unisono_reshard_memory_t), NULL, NULL, NULL, NULL}

/* Collective. Plans the moves. All ranks pass the same tensors, even ranks outside both meshes. The
 * caller frees *reshard before it frees the communicator; *reshard is NULL after a failure.
 * Errors: CONFIG, on this rank only, if a layout cannot be parsed; USAGE if a layout does not fit
 * the tensor or the ranks; MISMATCH if ranks pass different tensors; those of a collective. */
UNISONO_EXPORT unisono_result_t unisono_reshard_create(const unisono_reshard_tensor_t* tensors,
                                                       size_t count, unisono_comm_t comm,
                                                       unisono_reshard_t* reshard) UNISONO_NOEXCEPT;
/* Local. Fills *part with this rank's part of a tensor: the part before the move if `after` is 0,
 * otherwise the part after the move.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t
unisono_reshard_get_part(size_t tensor, int after, unisono_reshard_t reshard,
                         unisono_reshard_part_t* part) UNISONO_NOEXCEPT;
/* Collective. Fills `out` from `in`. If timeout_ms is -1, the communicator's limit applies; 0: no
 * limit.
 * Errors: those of unisono_send(). If a rank passes invalid buffers, or `in` and `out` that share
 * memory: USAGE on this rank, with the tensor's name, before anything is sent, and MISMATCH on the
 * other ranks. After an error, unisono_reshard_complete() reports whether a tensor has arrived. */
UNISONO_EXPORT unisono_result_t unisono_reshard_run(const unisono_reshard_memory_t* memory,
                                                    int timeout_ms,
                                                    unisono_reshard_t reshard) UNISONO_NOEXCEPT;
/* Local. Returns 1 if the latest run has completely filled this rank's part of the tensor,
 * otherwise 0. Returns 0 if reshard is NULL. */
UNISONO_EXPORT int unisono_reshard_complete(size_t tensor,
                                            unisono_reshard_t reshard) UNISONO_NOEXCEPT;
/* Local. Sets *sent to the number of bytes that ranks send to other ranks in a run, and
 * *between_hosts to the number of these bytes that are sent to another host.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_reshard_bytes(unisono_reshard_t reshard, size_t* sent,
                                                      size_t* between_hosts) UNISONO_NOEXCEPT;
/* Local. Frees the reshard and sets *reshard to NULL; *reshard may be NULL. */
UNISONO_EXPORT unisono_result_t unisono_reshard_free(unisono_reshard_t* reshard) UNISONO_NOEXCEPT;

#if defined(__cplusplus)
}
#endif
