/* Reshard for C: tensors move from one mesh of ranks to another. parallel/reshard.hpp describes the
 * moves; results and errors are as in unisono.h.
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
 * Threads: one thread at a time uses a reshard. */
#pragma once

#include <stddef.h>

#include "unisono/unisono.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* A plan that is ready to run. */
typedef struct unisono_reshard_handle* unisono_reshard_t;

/* A tensor that moves, and its layouts. Start from UNISONO_RESHARD_TENSOR_INIT. */
typedef struct unisono_reshard_tensor {
  size_t struct_size;
  const char* name; /* a different one for each tensor */
  unisono_dtype_t dtype;
  const size_t* shape; /* of the whole tensor; NULL, with 0 dimensions, for a single element */
  size_t dimensions;   /* at most 8 */
  const char* from;    /* layouts, such as "dp=2,tp=4 on 0-7: tp=shard(0)" */
  const char* to;
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

/* Start from UNISONO_RESHARD_MEMORY_INIT. All lists have an entry for each tensor of
 * unisono_reshard_create(), in its order. If this rank has no part of a tensor, its entries are
 * ignored. */
typedef struct unisono_reshard_memory {
  size_t struct_size;
  const void* const* in; /* this rank's parts before; only read */
  void* const* out;      /* its parts after; must not share memory with `in` */
  /* Elements from one index to the next, for each dimension of a part. A list or an entry that is
   * NULL means row-major without gaps. */
  const ptrdiff_t* const* in_strides;
  const ptrdiff_t* const* out_strides;
} unisono_reshard_memory_t;
#define UNISONO_RESHARD_MEMORY_INIT {sizeof(unisono_reshard_memory_t), NULL, NULL, NULL, NULL}

/* Collective. Plans the moves. All ranks, also ranks outside both meshes, pass the same tensors.
 * The caller frees *reshard before it frees the communicator; *reshard is NULL after a failure.
 * Errors: CONFIG for a layout that cannot be read, on this rank alone; USAGE for a layout that does
 * not fit; MISMATCH if the tensors differ; those of a collective. */
UNISONO_EXPORT unisono_result_t unisono_reshard_create(const unisono_reshard_tensor_t* tensors,
                                                       size_t count, unisono_comm_t comm,
                                                       unisono_reshard_t* reshard) UNISONO_NOEXCEPT;
/* Local. Fills *part with this rank's part of a tensor: before the move if `after` is 0, otherwise
 * after the move.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t
unisono_reshard_get_part(size_t tensor, int after, unisono_reshard_t reshard,
                         unisono_reshard_part_t* part) UNISONO_NOEXCEPT;
/* Collective. Fills `out` from `in`. timeout_ms: -1: the communicator's limit, 0: none.
 * Errors: USAGE before anything is sent, with the tensor's name, also if `in` and `out` share
 * memory, and MISMATCH on the other ranks; those of unisono_send(). After an error,
 * unisono_reshard_complete() says which tensors have arrived. */
UNISONO_EXPORT unisono_result_t unisono_reshard_run(const unisono_reshard_memory_t* memory,
                                                    int timeout_ms,
                                                    unisono_reshard_t reshard) UNISONO_NOEXCEPT;
/* Local. Returns 1 if the latest run has filled all of this rank's part of a tensor, otherwise 0;
 * 0 for NULL. */
UNISONO_EXPORT int unisono_reshard_complete(size_t tensor,
                                            unisono_reshard_t reshard) UNISONO_NOEXCEPT;
/* Local. Returns the bytes that all ranks send to others in a run, and the part of them that goes
 * from host to host.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_reshard_bytes(unisono_reshard_t reshard, size_t* sent,
                                                      size_t* between_hosts) UNISONO_NOEXCEPT;
/* Local. Frees the reshard and sets *reshard to NULL; *reshard may be NULL. */
UNISONO_EXPORT unisono_result_t unisono_reshard_free(unisono_reshard_t* reshard) UNISONO_NOEXCEPT;

#if defined(__cplusplus)
}
#endif
