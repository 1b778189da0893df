/* The C interface: C99, and valid C++. It stands on the same core as communicator.hpp, so ranks
 * that use either may be in one world.
 *
 * Results. A function that can fail returns unisono_result_t; UNISONO_SUCCESS is 0. The text of the
 * thread's latest failure is unisono_last_error(): "<code>: <what failed, where, since
 * when>\n<what to try next>". No function throws or ends the process. After UNISONO_PEER_LOST,
 * UNISONO_TIMEOUT, UNISONO_MISMATCH or UNISONO_ABORTED the communicator and all that were split
 * from the same world are unusable, and every rank gets the same reason; UNISONO_USAGE leaves them
 * as they were.
 *
 * Threads. One thread at a time uses a communicator, its plans and its requests; different
 * communicators are independent. unisono_abort(), unisono_failure() and unisono_statistics() alone
 * may be called from any thread, at any time.
 *
 * Buffers belong to the caller. `count` is in elements, `bytes` in bytes. n is the size of the
 * communicator:
 *
 *   collective       in                              out                     count
 *   broadcast        root: count                     count                   the vector
 *   reduce           count                           root: count             the vector
 *   all_reduce       count                           count                   the vector
 *   scatter          root: n*count                   count                   one rank's part
 *   gather           count                           root: n*count           one rank's part
 *   all_gather       count                           n*count                 one rank's part
 *   reduce_scatter   n*count                         count                   one rank's part
 *   all_to_all       n*count                         n*count                 one pair's part
 *
 * A buffer that a rank does not use, or of no elements, may be NULL. The v-forms take lists of n
 * entries: the count of each rank's part (the same list on all ranks), for all_to_all_v the counts
 * that this rank sends to and receives from each. Parts lie packed in rank order, unless the
 * matching displs (NULL: packed) give their offsets in elements. Lists are read before the function
 * returns, in the asynchronous forms too.
 *
 * In place: `in` and `out` are the same address for broadcast, reduce, all_reduce and all_to_all;
 * for all_gather `in` is this rank's part of `out`; for reduce_scatter `out` is this rank's part of
 * `in`; for scatter (gather) the root's `out` (`in`) is its part of `in` (`out`). Any other overlap
 * is UNISONO_USAGE.
 *
 * All ranks of a communicator must make the same collective calls in the same order, with the same
 * count or counts, dtype, op, factor, root and algorithm; otherwise all get UNISONO_MISMATCH: in
 * that call, or in the next one in which they wait for another rank, as in every barrier. If the
 * call was a rank's last one, the rank reports it on stderr when it leaves, as far as it is known
 * by then.
 */
#pragma once

#include <stddef.h>

#include "unisono/export.hpp"

#if defined(__cplusplus)
#define UNISONO_NOEXCEPT noexcept
#define UNISONO_INT : int /* so that any int that C passes is a value of the type */
extern "C" {
#else
#define UNISONO_NOEXCEPT
#define UNISONO_INT
#endif

/* What a call ended with. */
typedef enum unisono_result UNISONO_INT {
  UNISONO_SUCCESS = 0,
  UNISONO_USAGE = 1,      /* the caller passed something that cannot be done */
  UNISONO_CONFIG = 2,     /* the environment or options contradict each other */
  UNISONO_CONNECTION = 3, /* ranks could not find each other */
  UNISONO_PEER_LOST = 4,  /* a rank died or left */
  UNISONO_TIMEOUT = 5,    /* a rank did not arrive in time */
  UNISONO_MISMATCH = 6,   /* ranks disagree on what they are doing */
  UNISONO_ABORTED = 7,    /* this or another rank called unisono_abort() */
  UNISONO_CORRUPT = 8,    /* data that cannot be: a damaged file or message */
  UNISONO_RESOURCE = 9,   /* the system gave no memory, descriptor or address */
  UNISONO_INTERNAL = 10,  /* a mistake in unisono */
  UNISONO_EVICTED = 11    /* the other ranks went on without this one, or may have */
} unisono_result_t;

/* Element types. */
typedef enum unisono_dtype UNISONO_INT {
  UNISONO_I8 = 0,
  UNISONO_U8 = 1,
  UNISONO_I32 = 2,
  UNISONO_U32 = 3,
  UNISONO_I64 = 4,
  UNISONO_U64 = 5,
  UNISONO_F16 = 6,
  UNISONO_BF16 = 7,
  UNISONO_F8E4M3 = 8, /* OCP E4M3: no infinity, overflow gives NaN */
  UNISONO_F8E5M2 = 9, /* OCP E5M2: IEEE-like, overflow gives infinity */
  UNISONO_F32 = 10,
  UNISONO_F64 = 11,
  UNISONO_BOOL = 12 /* one byte, 0 or 1 */
} unisono_dtype_t;

/* Reduce operations. `unisono list --dtypes` says which dtypes each is defined for. */
typedef enum unisono_op UNISONO_INT {
  UNISONO_SUM = 0,
  UNISONO_PROD = 1,
  UNISONO_MIN = 2,
  UNISONO_MAX = 3,
  UNISONO_AVG = 4, /* the sum divided by the number of ranks; integers truncate towards zero, and
                      only sums of 64-bit ones wrap; no sum of floats overflows */
  UNISONO_BAND = 5,
  UNISONO_BOR = 6,
  UNISONO_BXOR = 7,
  UNISONO_LAND = 8,
  UNISONO_LOR = 9,
  UNISONO_LXOR = 10,
  UNISONO_PREMUL_SUM = 11, /* unisono_call_t alone: each rank's input times `factor`, summed */
  UNISONO_USER = 12        /* unisono_call_t alone: a function of the caller's */
} unisono_op_t;

typedef enum unisono_collective UNISONO_INT {
  UNISONO_BROADCAST = 0,
  UNISONO_SCATTER = 1,
  UNISONO_GATHER = 2,
  UNISONO_REDUCE = 3,
  UNISONO_ALL_REDUCE = 4,
  UNISONO_ALL_GATHER = 5,
  UNISONO_REDUCE_SCATTER = 6,
  UNISONO_ALL_TO_ALL = 7,
  UNISONO_BARRIER = 8,
  UNISONO_SCATTER_V = 9,
  UNISONO_GATHER_V = 10,
  UNISONO_ALL_GATHER_V = 11,
  UNISONO_REDUCE_SCATTER_V = 12,
  UNISONO_ALL_TO_ALL_V = 13
} unisono_collective_t;

/* This rank's end of a group of ranks. */
typedef struct unisono_comm_handle* unisono_comm_t;
/* An operation under way. Ends in unisono_wait(), and nowhere else. */
typedef struct unisono_request_handle* unisono_request_t;
/* A collective whose checks, algorithm choice and lowering are done. */
typedef struct unisono_plan_handle* unisono_plan_t;
/* Memory that the peers on this host read and write directly, while it is registered. */
typedef struct unisono_region_handle* unisono_region_t;

/* About the library. Any thread. */

/* The text of this thread's latest failure, of at most 4095 bytes; "" before the first. It stays as
 * it is until the thread's next failure; success does not clear it. */
UNISONO_EXPORT const char* unisono_last_error(void) UNISONO_NOEXCEPT;
/* "success", "usage", "peer_lost", ...: static text; "unknown" for what is no unisono_result_t. */
UNISONO_EXPORT const char* unisono_result_name(unisono_result_t result) UNISONO_NOEXCEPT;
/* The version of the library that runs, such as "0.1.0". */
UNISONO_EXPORT const char* unisono_version(void) UNISONO_NOEXCEPT;
/* Bytes of one element; 0 for what is no unisono_dtype_t. */
UNISONO_EXPORT size_t unisono_dtype_bytes(unisono_dtype_t dtype) UNISONO_NOEXCEPT;

/* Communicators. */

/* How a rank joins its world. Start from UNISONO_CONNECT_OPTIONS_INIT: the size tells the library
 * which members the caller knows. -1 and NULL are read from the environment, in this order:
 * UNISONO_*, torchrun (RANK, WORLD_SIZE, ...), Open MPI, MPICH and other PMI launchers, Slurm. With
 * none of them the world has one rank. */
typedef struct unisono_connect_options {
  size_t struct_size;
  int rank;
  int size;
  int connect_timeout_ms;
  int timeout_ms;        /* the longest that one operation waits for its peers; 0: for ever */
  const char* job;       /* ranks with the same name find each other */
  const char* token;     /* at least 16 characters: proves that a connection belongs to the job */
  const char* file;      /* one host: a file that every rank can write, as the meeting point */
  const char* algorithm; /* "all_reduce=ring,broadcast=binomial"; "reproducible": the same bits
                            everywhere */
  const char* profile;   /* what `unisono tune` has written, chooses algorithms; "none": built in */
  const char* wait;      /* how this rank waits before it sleeps: "spin=3000,yield_us=500" */
  const char* address;   /* several hosts: where rank 0 listens, "host:port"; needs a token */
  const char* interface; /* which addresses of this host others connect to: "eth0,10.0.0.0/8" */
  const char* ports;     /* at which this rank may listen: "20000-20999" */
  const char* transport; /* "auto", "shm", or "tcp" also between ranks of one host */
  const char* host;      /* ranks with different names count as being on different hosts */
  const char* checksum;  /* "0": messages between hosts carry no CRC-32C; all ranks alike */
  size_t threads;        /* that move a long blocking call at most; 0: UNISONO_THREADS, else 1 */
  double accuracy;       /* of sums of f32 that say none; 0: exact; -1: UNISONO_ACCURACY, else 0 */
} unisono_connect_options_t;
#define UNISONO_CONNECT_OPTIONS_INIT  \
  {sizeof(unisono_connect_options_t), \
   -1,                                \
   -1,                                \
   30000,                             \
   300000,                            \
   NULL,                              \
   NULL,                              \
   NULL,                              \
   NULL,                              \
   NULL,                              \
   NULL,                              \
   NULL,                              \
   NULL,                              \
   NULL,                              \
   NULL,                              \
   NULL,                              \
   NULL,                              \
   0,                                 \
   -1.0}

/* Joins the world that the options (NULL: the environment alone) describe; blocks until all ranks
 * are there. *comm is the caller's to free; NULL after a failure. Any thread.
 * Errors: USAGE, CONFIG, CONNECTION, PEER_LOST, RESOURCE. */
UNISONO_EXPORT unisono_result_t unisono_connect(const unisono_connect_options_t* options,
                                                unisono_comm_t* comm) UNISONO_NOEXCEPT;
/* Leaves the group and sets *comm to NULL; *comm may be NULL. What it started may be waited for
 * afterwards, and plans and regions made with it stay usable. Peers that still wait for this rank
 * get UNISONO_PEER_LOST once all of a world is freed. */
UNISONO_EXPORT unisono_result_t unisono_comm_free(unisono_comm_t* comm) UNISONO_NOEXCEPT;
/* This rank's number in the group, from 0; -1 if comm is NULL. */
UNISONO_EXPORT int unisono_rank(unisono_comm_t comm) UNISONO_NOEXCEPT;
/* The number of ranks in the group; 0 if comm is NULL. */
UNISONO_EXPORT int unisono_size(unisono_comm_t comm) UNISONO_NOEXCEPT;
/* Ranks with the same color form a group, ordered by key, then rank. color < 0: in no group, and
 * *group becomes NULL. All ranks must call it. Blocks. Errors: those of a collective, RESOURCE. */
UNISONO_EXPORT unisono_result_t unisono_split(int color, int key, unisono_comm_t comm,
                                              unisono_comm_t* group) UNISONO_NOEXCEPT;
/* After UNISONO_PEER_LOST or UNISONO_TIMEOUT: a communicator of the ranks that are still there, in
 * their old order. All of them call it, on the communicator of the whole world; it ends the old
 * world, and blocks until each rank has called or is known to be dead. timeout_ms: how long to wait
 * for ranks that may live; -1 as long as to connect, 0 for ever. quorum: 1, at most one world comes
 * of this one, also where the network has parted its hosts; 0, whoever is there goes on. `comm` can
 * only be freed then; if *shrunk is `comm`, it is freed. After an error *shrunk is as before.
 * Errors: EVICTED, USAGE, and those of unisono_connect(). */
UNISONO_EXPORT unisono_result_t unisono_shrink(int timeout_ms, int quorum, unisono_comm_t comm,
                                               unisono_comm_t* shrunk) UNISONO_NOEXCEPT;
/* A communicator of `size` ranks: those of `comm`, with the same numbers, and new processes that
 * connect as ranks of a world of `size`, with the job name (and address) of the first world. All
 * ranks call it; `comm` stays as it is. address: where rank 0 listens while they meet; NULL as at
 * the first time. If *grown is `comm`, that is freed. Errors: those of unisono_connect(), USAGE. */
UNISONO_EXPORT unisono_result_t unisono_grow(int size, const char* address, unisono_comm_t comm,
                                             unisono_comm_t* grown) UNISONO_NOEXCEPT;
/* What the next calls of this rank on any group of this world are for: a layer, a phase. Recordings
 * keep it and name the calls by it, until the next label; NULL or "": nothing. Up to 103 bytes, and
 * some 400 different ones a run. Any thread. Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_label(const char* text,
                                              unisono_comm_t comm) UNISONO_NOEXCEPT;
/* Ends all operations of this world, on all ranks, with UNISONO_ABORTED. `reason` (may be NULL)
 * becomes part of everybody's text; only the first one counts. Any thread. */
UNISONO_EXPORT unisono_result_t unisono_abort(const char* reason,
                                              unisono_comm_t comm) UNISONO_NOEXCEPT;
/* Sets *failure to what has ended the world of `comm`: what the next operation on it would return,
 * with the same text in unisono_last_error(); UNISONO_SUCCESS while nothing is known. Looks for
 * ranks that have died, as an operation does that waits. Never waits; some system calls. Any
 * thread, also during an operation. Not told: a rank that has left in order, before anybody needs
 * it; one that is stopped. Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_failure(unisono_comm_t comm,
                                                unisono_result_t* failure) UNISONO_NOEXCEPT;
/* Sets *count, and as many places of `ranks` (n of them), to the ranks of the group that have not
 * entered the latest collective of this rank, in order: also when that has ended with a timeout.
 * Ranks of other hosts tell where they are while somebody waits, and are late before. A local call.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_late_ranks(unisono_comm_t comm, int* ranks,
                                                   int* count) UNISONO_NOEXCEPT;

/* What calls of one kind have cost this rank so far, in this group. */
typedef struct unisono_call_statistics {
  size_t struct_size; /* start from UNISONO_STATISTICS_INIT */
  unsigned long long calls;
  unsigned long long bytes; /* of each call the larger of what goes in and what comes out */
  double moving_s;          /* inside blocking calls, without the waiting */
  double waiting_s;         /* because a peer had not come, not sent or not read */
  /* skew[0]: calls that waited less than a microsecond in all; skew[k]: at least 2^(k-1) and less
   * than 2^k microseconds; the last one: all that is longer. */
  unsigned long long skew[24];
} unisono_statistics_t;
#define UNISONO_STATISTICS_INIT {sizeof(unisono_statistics_t), 0, 0, 0.0, 0.0, {0}}
/* `what`: "all_reduce" or another collective, "send" or "recv". waiting_for_s (may be NULL): room
 * for n numbers, becomes how long this rank has waited for each. For what was never called all is
 * 0. Local; any thread, also during an operation. Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_statistics(const char* what, unisono_comm_t comm,
                                                   unisono_statistics_t* statistics,
                                                   double* waiting_for_s) UNISONO_NOEXCEPT;

/* Requests. */

/* Blocks until the operation has ended and returns its result; the request is used up, and *request
 * becomes NULL, also after a failure. Waiting again is UNISONO_USAGE. timeout_ms: -1 for the
 * communicator's, 0 for ever; running out of it ends the world's operations on all ranks. */
UNISONO_EXPORT unisono_result_t unisono_wait(unisono_request_t* request,
                                             int timeout_ms) UNISONO_NOEXCEPT;
/* Sets *done to 1 if the operation has ended, so that unisono_wait() returns at once, else to 0.
 * Never blocks; moves operations on. */
UNISONO_EXPORT unisono_result_t unisono_test(unisono_request_t request, int* done) UNISONO_NOEXCEPT;

/* Collectives: shapes, in-place rule, lists and errors are those at the top. They return when the
 * buffers may be used again. A failure is USAGE (nothing was sent) or one that all ranks get:
 * PEER_LOST, TIMEOUT, MISMATCH, ABORTED.
 *
 * The _async form of each starts it and sets *request; buffers must live, and `out` must not be
 * touched, until unisono_wait() has returned. They progress while the caller computes. Inside
 * unisono_group() the group waits: *request becomes NULL, and `request` may be NULL. */

UNISONO_EXPORT unisono_result_t unisono_broadcast(void* data, size_t count, unisono_dtype_t dtype,
                                                  int root, unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t
unisono_broadcast_async(void* data, size_t count, unisono_dtype_t dtype, int root,
                        unisono_comm_t comm, unisono_request_t* request) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_reduce(const void* in, void* out, size_t count,
                                               unisono_dtype_t dtype, unisono_op_t op, int root,
                                               unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_reduce_async(const void* in, void* out, size_t count,
                                                     unisono_dtype_t dtype, unisono_op_t op,
                                                     int root, unisono_comm_t comm,
                                                     unisono_request_t* request) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_all_reduce(const void* in, void* out, size_t count,
                                                   unisono_dtype_t dtype, unisono_op_t op,
                                                   unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_all_reduce_async(
    const void* in, void* out, size_t count, unisono_dtype_t dtype, unisono_op_t op,
    unisono_comm_t comm, unisono_request_t* request) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_scatter(const void* in, void* out, size_t count,
                                                unisono_dtype_t dtype, int root,
                                                unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_scatter_async(const void* in, void* out, size_t count,
                                                      unisono_dtype_t dtype, int root,
                                                      unisono_comm_t comm,
                                                      unisono_request_t* request) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_gather(const void* in, void* out, size_t count,
                                               unisono_dtype_t dtype, int root,
                                               unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_gather_async(const void* in, void* out, size_t count,
                                                     unisono_dtype_t dtype, int root,
                                                     unisono_comm_t comm,
                                                     unisono_request_t* request) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_all_gather(const void* in, void* out, size_t count,
                                                   unisono_dtype_t dtype,
                                                   unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t
unisono_all_gather_async(const void* in, void* out, size_t count, unisono_dtype_t dtype,
                         unisono_comm_t comm, unisono_request_t* request) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_reduce_scatter(const void* in, void* out, size_t count,
                                                       unisono_dtype_t dtype, unisono_op_t op,
                                                       unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_reduce_scatter_async(
    const void* in, void* out, size_t count, unisono_dtype_t dtype, unisono_op_t op,
    unisono_comm_t comm, unisono_request_t* request) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_all_to_all(const void* in, void* out, size_t count,
                                                   unisono_dtype_t dtype,
                                                   unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t
unisono_all_to_all_async(const void* in, void* out, size_t count, unisono_dtype_t dtype,
                         unisono_comm_t comm, unisono_request_t* request) UNISONO_NOEXCEPT;
/* Returns when all ranks have called it. */
UNISONO_EXPORT unisono_result_t unisono_barrier(unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_barrier_async(unisono_comm_t comm,
                                                      unisono_request_t* request) UNISONO_NOEXCEPT;

/* The v-forms. */

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
/* counts[i] of this rank must be recv_counts of rank i for this rank. */
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

/* Any collective, with all that can be said of one. */

/* A user-defined operation: inout[i] = in[i] op inout[i] for `count` elements. Must be associative
 * and commutative; it may run in the progress thread, and must not call unisono. */
typedef void (*unisono_combine_t)(void* inout, const void* in, size_t count, void* context);

/* Start from UNISONO_CALL_INIT, and set what the collective needs. */
typedef struct unisono_call {
  size_t struct_size;
  unisono_collective_t collective;
  unisono_dtype_t dtype;
  unisono_op_t op;
  int root;
  int timeout_ms; /* -1: the communicator's; 0: for ever */
  int reserved;   /* 0 */
  const void* in;
  void* out;
  size_t count; /* not of v-forms */
  const size_t* counts;
  const size_t* displs;
  const size_t* recv_counts; /* all_to_all_v */
  const size_t* recv_displs; /* all_to_all_v */
  double factor;             /* UNISONO_PREMUL_SUM; the same on all ranks */
  unisono_combine_t combine; /* UNISONO_USER */
  void* context;             /* UNISONO_USER: handed to `combine`; must live as long as the call */
  const char* algorithm; /* NULL: chosen; "ring", "reproducible", "mine.json"; the same on all */
  /* -1: the communicator's; 0: nothing is rounded; else the error that a call of f32 bears
   * (call.hpp), the same on all ranks. Hosts send i8 from 0.008 on, bf16 from 0.003 on; less is
   * refused. */
  double accuracy;
} unisono_call_t;
#define UNISONO_CALL_INIT  \
  {sizeof(unisono_call_t), \
   UNISONO_BARRIER,        \
   UNISONO_U8,             \
   UNISONO_SUM,            \
   0,                      \
   -1,                     \
   0,                      \
   NULL,                   \
   NULL,                   \
   0,                      \
   NULL,                   \
   NULL,                   \
   NULL,                   \
   NULL,                   \
   1.0,                    \
   NULL,                   \
   NULL,                   \
   NULL,                   \
   -1.0}

UNISONO_EXPORT unisono_result_t unisono_run(const unisono_call_t* call,
                                            unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_run_async(const unisono_call_t* call, unisono_comm_t comm,
                                                  unisono_request_t* request) UNISONO_NOEXCEPT;

/* Persistent operations: prepares `call`, which may be gone afterwards, its buffers not. Local: it
 * sends nothing. *plan is the caller's to free; NULL after a failure. Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_plan(const unisono_call_t* call, unisono_comm_t comm,
                                             unisono_plan_t* plan) UNISONO_NOEXCEPT;
/* Runs the plan on its buffers, as unisono_run() would. */
UNISONO_EXPORT unisono_result_t unisono_plan_start(unisono_plan_t plan) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t
unisono_plan_start_async(unisono_plan_t plan, unisono_request_t* request) UNISONO_NOEXCEPT;
/* The algorithm that was chosen, such as "ring": valid until the plan is freed; "" if plan is NULL.
 */
UNISONO_EXPORT const char* unisono_plan_algorithm(unisono_plan_t plan) UNISONO_NOEXCEPT;
/* Sets *plan to NULL; *plan may be NULL. What it has started goes on. */
UNISONO_EXPORT unisono_result_t unisono_plan_free(unisono_plan_t* plan) UNISONO_NOEXCEPT;

/* Several operations started as one: `body` calls _async functions on `comm`; returns when all are
 * done. Small all_reduces that follow each other become one. Blocking calls on `comm` in `body` are
 * UNISONO_USAGE. If `body` returns anything but UNISONO_SUCCESS, nothing is started and that is the
 * result; on all ranks or none, since the others would wait. */
UNISONO_EXPORT unisono_result_t unisono_group(unisono_result_t (*body)(void* context),
                                              void* context, unisono_comm_t comm) UNISONO_NOEXCEPT;

/* Messages with one tag between two ranks arrive in order. A receive of a size other than the one
 * sent is UNISONO_MISMATCH on both sides. unisono_send() may return before the receive begins if
 * the message is short (16 KiB); longer ones wait for the receiver. `to`, `from`: ranks of comm. */
UNISONO_EXPORT unisono_result_t unisono_send(const void* data, size_t bytes, int to, int tag,
                                             unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_send_async(const void* data, size_t bytes, int to, int tag,
                                                   unisono_comm_t comm,
                                                   unisono_request_t* request) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_recv(void* data, size_t bytes, int from, int tag,
                                             unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_recv_async(void* data, size_t bytes, int from, int tag,
                                                   unisono_comm_t comm,
                                                   unisono_request_t* request) UNISONO_NOEXCEPT;

/* Registered memory. Local calls: the peers need not do the same. */

/* New, zeroed, page-aligned memory; unisono_region_address() is where. bytes may be 0. Errors:
 * RESOURCE. */
UNISONO_EXPORT unisono_result_t unisono_allocate(size_t bytes, unisono_comm_t comm,
                                                 unisono_region_t* region) UNISONO_NOEXCEPT;
/* Moves the whole pages of ordinary private memory onto shared ones at the same address (about 1 ms
 * per MiB, once). The memory must stay mapped, and not be freed, until the region is. A fork shares
 * it with its parent. Errors: USAGE (not mapped, or registered already), RESOURCE. */
UNISONO_EXPORT unisono_result_t unisono_register_buffer(void* data, size_t bytes,
                                                        unisono_comm_t comm,
                                                        unisono_region_t* region) UNISONO_NOEXCEPT;
/* Where the registered bytes begin; NULL if there are none. */
UNISONO_EXPORT void* unisono_region_address(unisono_region_t region) UNISONO_NOEXCEPT;
/* How many there are: what was asked for, or the whole pages of a registered buffer. */
UNISONO_EXPORT size_t unisono_region_bytes(unisono_region_t region) UNISONO_NOEXCEPT;
/* Unregisters, and sets *region to NULL; *region may be NULL. What unisono_allocate() gave is gone,
 * a registered buffer is ordinary memory again with the same contents. REQUIRES: no operation on
 * the memory is under way on any rank. */
UNISONO_EXPORT unisono_result_t unisono_region_free(unisono_region_t* region) UNISONO_NOEXCEPT;

/* Pipelines: the schedules of `unisono pipeline list`, or of a file, and a runner that does one
 * with the computations of a model. parallel/pipeline.hpp says more of both. */

/* Immutable. Any thread. */
typedef struct unisono_schedule_handle* unisono_schedule_t;
/* A schedule on the ranks of a communicator. One thread at a time. */
typedef struct unisono_pipeline_handle* unisono_pipeline_t;

/* By name. chunks: stages on a rank, where the schedule leaves the choice; 0: what it has, or 2.
 * *schedule is the caller's to free; NULL after a failure. Errors: USAGE. */
UNISONO_EXPORT unisono_result_t
unisono_schedule_by_name(const char* name, int ranks, int microbatches, int chunks,
                         unisono_schedule_t* schedule) UNISONO_NOEXCEPT;
/* The text of a file: unisono.pipeline/1, or the CSV of torch.distributed.pipelining. Errors:
 * USAGE, with the place of the mistake, or with the first thing that `unisono pipeline verify`
 * finds. */
UNISONO_EXPORT unisono_result_t
unisono_schedule_parse(const char* text, unisono_schedule_t* schedule) UNISONO_NOEXCEPT;
/* How many stages it has; 0 of NULL. */
UNISONO_EXPORT int unisono_schedule_stages(unisono_schedule_t schedule) UNISONO_NOEXCEPT;
/* The rank that a stage is on; -1 where there is no such stage. */
UNISONO_EXPORT int unisono_schedule_rank_of(int stage,
                                            unisono_schedule_t schedule) UNISONO_NOEXCEPT;
/* Sets *schedule to NULL; *schedule may be NULL. Pipelines keep what they need of it. */
UNISONO_EXPORT unisono_result_t unisono_schedule_free(unisono_schedule_t* schedule)
    UNISONO_NOEXCEPT;

/* A stage on this rank, and what it gives to the next one; its gradient has the same shape. */
typedef struct unisono_pipeline_stage {
  int stage;
  unisono_dtype_t dtype;
  const size_t* shape; /* NULL, and 0 dimensions, where there is no next stage */
  size_t dimensions;   /* at most 8 */
} unisono_pipeline_stage_t;

/* One computation. Memory is the library's, aligned to 64 bytes; NULL, and 0 bytes, where nothing
 * comes in or goes out. `input` is the same from F until B, or W, has returned. */
typedef struct unisono_pipeline_pass {
  int stage;
  int microbatch;
  const void* input;
  size_t input_bytes;
  void* output; /* F writes it */
  size_t output_bytes;
  const void* output_gradient; /* B, I and W read it */
  size_t output_gradient_bytes;
  void* input_gradient; /* B and I write it */
  size_t input_gradient_bytes;
} unisono_pipeline_pass_t;

/* Anything but UNISONO_SUCCESS ends the world on all ranks, as unisono_abort() does, and is what
 * unisono_pipeline_run_step() returns. They may call unisono, but not on this pipeline. */
typedef unisono_result_t (*unisono_pass_callback_t)(const unisono_pipeline_pass_t* pass,
                                                    void* context);
typedef unisono_result_t (*unisono_stage_callback_t)(int stage, void* context);

/* Start from UNISONO_PIPELINE_OPTIONS_INIT, and set the computations that the schedule has for this
 * rank. The parts of an overlap are done one after the other. */
typedef struct unisono_pipeline_options {
  size_t struct_size;
  int timeout_ms; /* the longest that one message may be waited for; -1: the communicator's */
  int record;     /* 1: notes when each action begins and ends */
  unisono_pass_callback_t forward;
  unisono_pass_callback_t backward;         /* both gradients in one */
  unisono_pass_callback_t backward_input;   /* I */
  unisono_pass_callback_t backward_weight;  /* W */
  unisono_stage_callback_t reduce_gradient; /* NULL, as the next two: nothing is done */
  unisono_stage_callback_t unshard;
  unisono_stage_callback_t reshard;
  void* context; /* handed to the callbacks; must live as long as the pipeline */
} unisono_pipeline_options_t;
#define UNISONO_PIPELINE_OPTIONS_INIT \
  {sizeof(unisono_pipeline_options_t), -1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL}

/* All ranks call it: they agree on the schedule and the shapes once. `stages` has `count` entries,
 * one for each stage of this rank. *pipeline is the caller's to free; NULL after a failure. Errors:
 * MISMATCH, on all ranks; USAGE on a rank whose stages or callbacks do not fit, ABORTED on others.
 */
UNISONO_EXPORT unisono_result_t
unisono_pipeline_create(unisono_schedule_t schedule, const unisono_pipeline_stage_t* stages,
                        size_t count, const unisono_pipeline_options_t* options,
                        unisono_comm_t comm, unisono_pipeline_t* pipeline) UNISONO_NOEXCEPT;
/* One step: all microbatches forward and backward. Errors: TIMEOUT, PEER_LOST, ABORTED, with the
 * action that was waited for and the rank that owes it; what a callback returned. */
UNISONO_EXPORT unisono_result_t unisono_pipeline_run_step(unisono_pipeline_t pipeline)
    UNISONO_NOEXCEPT;
/* With `record`: the last step of all ranks as unisono.pipeline_times/1. All ranks call it; *text
 * stays until the next call, or until the pipeline is freed. */
UNISONO_EXPORT unisono_result_t unisono_pipeline_times(unisono_pipeline_t pipeline,
                                                       const char** text) UNISONO_NOEXCEPT;
/* The most bytes that inputs, outputs and gradients have taken on this rank; 0 of NULL. */
UNISONO_EXPORT size_t unisono_pipeline_most_bytes(unisono_pipeline_t pipeline) UNISONO_NOEXCEPT;
/* Sets *pipeline to NULL; *pipeline may be NULL. */
UNISONO_EXPORT unisono_result_t unisono_pipeline_free(unisono_pipeline_t* pipeline)
    UNISONO_NOEXCEPT;

#if defined(__cplusplus)
}
#endif
#undef UNISONO_INT
