/* The C interface: C99, also valid C++. It uses the same core as communicator.hpp, so ranks that
 * use either may be in one world.
 *
 * Results: a function that can fail returns unisono_result_t; UNISONO_SUCCESS is 0.
 * unisono_last_error() returns the text of the calling thread's latest failure: "<code>: <what
 * failed, where, since when>\n<what to try next>". No function throws or ends the process.
 *
 * Threads: one thread at a time may use a communicator, its plans and its requests; a call from a
 * second thread is UNISONO_USAGE. unisono_send() and unisono_recv() are separate from the
 * collectives: one thread may send and receive while another one makes collective calls. Different
 * communicators are independent. Functions with "Threads: any" may be called from any thread at any
 * time, also during an operation.
 *
 * Shapes: `count` is in elements, `bytes` in bytes, and n is the size of the communicator.
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
 *   scan             count                           count                   the vector
 *   exclusive_scan   count                           count                   the vector
 *
 * A buffer that a rank does not use, or that has no elements, may be NULL. The v-forms take lists
 * of n entries: the count of each rank's part, the same list on all ranks; for all_to_all_v, the
 * counts that this rank sends to each rank and receives from each. Parts are packed in rank order
 * unless the matching displs (NULL: packed) give their offsets in elements. Lists are read before
 * the function returns, also by the asynchronous forms.
 *
 * In place: allowed if `in` and `out` are the same address for broadcast, reduce, all_reduce,
 * all_to_all and the scans; if `in` is this rank's part of `out` for all_gather; if `out` is this
 * rank's part of `in` for reduce_scatter; if the root's `out` (`in`) is its part of `in` (`out`)
 * for scatter (gather). The v-forms follow the rules of the forms without v. Any other overlap is
 * UNISONO_USAGE. The caller owns all buffers.
 *
 * Errors: UNISONO_USAGE leaves the communicator as it was. After UNISONO_PEER_LOST,
 * UNISONO_TIMEOUT, UNISONO_MISMATCH or UNISONO_ABORTED, the communicator and all communicators of
 * the same world are unusable, and every rank gets the same reason.
 *
 * Collective functions: all ranks of a communicator must make the same collective calls in the same
 * order, with the same count or counts, dtype, op, factor, root and algorithm. Otherwise all of
 * them get UNISONO_MISMATCH: in that call, or in the next one that waits for another rank, at the
 * latest in the next barrier. If the different call was a rank's last one, the rank reports the
 * mismatch on stderr when it leaves, provided that it knows by then. */
#pragma once

#include <stddef.h>

#include "unisono/export.hpp"
#include "unisono/version.h"

#if defined(__cplusplus)
#define UNISONO_NOEXCEPT noexcept
#define UNISONO_INT : int /* so that any int that C passes is a value of the type */
extern "C" {
#else
#define UNISONO_NOEXCEPT
#define UNISONO_INT
#endif

/* The result of a call. */
typedef enum unisono_result UNISONO_INT {
  UNISONO_SUCCESS = 0,
  UNISONO_USAGE = 1,      /* the caller passed something invalid */
  UNISONO_CONFIG = 2,     /* the environment or the options are wrong or contradict each other */
  UNISONO_CONNECTION = 3, /* ranks could not find each other */
  UNISONO_PEER_LOST = 4,  /* a rank died or left */
  UNISONO_TIMEOUT = 5,    /* a rank did not arrive in time */
  UNISONO_MISMATCH = 6,   /* ranks make different calls */
  UNISONO_ABORTED = 7,    /* this or another rank called unisono_abort() */
  UNISONO_CORRUPT = 8,    /* damaged file or message */
  UNISONO_RESOURCE = 9,   /* the system refused memory, a descriptor or an address */
  UNISONO_INTERNAL = 10,  /* a defect in unisono */
  UNISONO_EVICTED = 11    /* the other ranks continued without this one, or may have */
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

/* Reduce operations. `unisono list --dtypes` prints the dtypes that each one supports. */
typedef enum unisono_op UNISONO_INT {
  UNISONO_SUM = 0,
  UNISONO_PROD = 1,
  UNISONO_MIN = 2,
  UNISONO_MAX = 3,
  UNISONO_AVG = 4, /* the sum divided by the number of ranks; integers truncate towards zero, and
                      only sums of 64-bit ones wrap; in host memory no float sum overflows */
  UNISONO_BAND = 5,
  UNISONO_BOR = 6,
  UNISONO_BXOR = 7,
  UNISONO_LAND = 8,
  UNISONO_LOR = 9,
  UNISONO_LXOR = 10,
  UNISONO_PREMUL_SUM = 11, /* only in unisono_call_t: each rank's input times `factor`, summed */
  UNISONO_USER = 12        /* only in unisono_call_t: a function of the caller */
} unisono_op_t;
/* The collective operations. */
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
  UNISONO_ALL_TO_ALL_V = 13,
  UNISONO_SCAN = 14,
  UNISONO_EXCLUSIVE_SCAN = 15
} unisono_collective_t;

/* A rank's handle on a group of ranks. */
typedef struct unisono_comm_handle* unisono_comm_t;
/* An operation in progress. Only unisono_wait() ends it. */
typedef struct unisono_request_handle* unisono_request_t;
/* A collective that has been checked, planned and lowered, and can be started repeatedly. */
typedef struct unisono_plan_handle* unisono_plan_t;
/* Registered memory: peers on this host read and write it directly. */
typedef struct unisono_region_handle* unisono_region_t;

/* About the library. Local; any thread. */

/* Returns the text of this thread's latest failure, at most 4095 bytes; "" before the first
 * failure. The text stays valid until the thread's next failure; success does not clear it. */
UNISONO_EXPORT const char* unisono_last_error(void) UNISONO_NOEXCEPT;
/* Returns "success", "usage", "peer_lost", ... as static text; "unknown" for any other value. */
UNISONO_EXPORT const char* unisono_result_name(unisono_result_t result) UNISONO_NOEXCEPT;
/* Returns the version of the running library, such as "0.1.0". */
UNISONO_EXPORT const char* unisono_version(void) UNISONO_NOEXCEPT;
/* Returns the bytes of one element; 0 if `dtype` is not a unisono_dtype_t. */
UNISONO_EXPORT size_t unisono_dtype_bytes(unisono_dtype_t dtype) UNISONO_NOEXCEPT;

/* Communicators. */

/* The connections between ranks. */
typedef enum unisono_transport UNISONO_INT {
  UNISONO_TRANSPORT_UNSET = -1, /* UNISONO_TRANSPORT of the environment, else automatic */
  UNISONO_TRANSPORT_AUTO = 0,   /* shared memory within a host, TCP between hosts */
  UNISONO_TRANSPORT_SHM = 1,    /* one host only */
  UNISONO_TRANSPORT_TCP = 2     /* TCP also between ranks on one host */
} unisono_transport_t;

/* How a rank joins its world. Start from UNISONO_CONNECT_OPTIONS_INIT: struct_size tells the
 * library which members the caller knows. Members that are -1 or NULL, threads 0, and time limits
 * that are unchanged are read from the environment, in this order: UNISONO_*, torchrun (RANK,
 * WORLD_SIZE, ...), Open MPI, MPICH and other PMI launchers, Slurm. With none of them the world has
 * one rank. options.hpp describes each member. */
typedef struct unisono_connect_options {
  size_t struct_size;
  int rank;
  int size;
  int connect_timeout_ms;
  int timeout_ms;        /* limit for one operation to wait for its peers; 0: no limit */
  const char* job;       /* ranks with the same name find each other */
  const char* token;     /* at least 16 characters: proves that a connection is the job's */
  const char* file;      /* one host: a file that all ranks can write, as the meeting point */
  const char* algorithm; /* "all_reduce=ring,broadcast=binomial", "reproducible", "tree_order" */
  const char* profile;   /* file of `unisono tune`, which chooses algorithms; "none": built in */
  const char* address;   /* several hosts: where rank 0 listens, "host:port"; needs a token */
  const char* interface; /* the addresses of this host to offer to others: "eth0,10.0.0.0/8" */
  const char* ports;     /* ports that this rank may listen on: "20000-20999" */
  const char* host;      /* ranks with different names count as being on different hosts */
  int wait_spin;         /* polls of a waiting rank before it yields to other threads */
  int wait_yield_us;     /* microseconds that it yields before it sleeps */
  unisono_transport_t transport;
  int checksum;     /* 0: no CRC-32C on messages between hosts; the same on all ranks */
  size_t threads;   /* threads that move a long blocking call; 0: UNISONO_THREADS, else 1 */
  double max_error; /* default of f32 sums; 0: exact; -1: UNISONO_MAX_ERROR, else 0 */
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
   -1,                                \
   -1,                                \
   UNISONO_TRANSPORT_UNSET,           \
   -1,                                \
   0,                                 \
   -1.0}

/* Collective. Joins the world that the options (NULL: only the environment) describe. Blocks until
 * all ranks have joined. The caller frees *comm with unisono_comm_free(); *comm is NULL after a
 * failure.
 * Threads: any.
 * Errors: USAGE, CONFIG, CONNECTION, PEER_LOST, TIMEOUT, RESOURCE, ABORTED. */
UNISONO_EXPORT unisono_result_t unisono_connect(const unisono_connect_options_t* options,
                                                unisono_comm_t* comm) UNISONO_NOEXCEPT;
/* Local. Leaves the group and sets *comm to NULL; *comm may be NULL. Requests that it started can
 * still be waited for, and its plans and regions stay usable. When all communicators of a world are
 * freed, peers that still wait for this rank get UNISONO_PEER_LOST. */
UNISONO_EXPORT unisono_result_t unisono_comm_free(unisono_comm_t* comm) UNISONO_NOEXCEPT;
/* Local. Returns this rank's number in the group, from 0; -1 if comm is NULL. */
UNISONO_EXPORT int unisono_rank(unisono_comm_t comm) UNISONO_NOEXCEPT;
/* Local. Returns the number of ranks in the group; 0 if comm is NULL. */
UNISONO_EXPORT int unisono_size(unisono_comm_t comm) UNISONO_NOEXCEPT;
/* Local. Returns this rank's number among the ranks of the group on its host, in the order of their
 * ranks; -1 if comm is NULL. */
UNISONO_EXPORT int unisono_local_rank(unisono_comm_t comm) UNISONO_NOEXCEPT;
/* Local. Returns the number of ranks of the group on this rank's host; 0 if comm is NULL. */
UNISONO_EXPORT int unisono_local_size(unisono_comm_t comm) UNISONO_NOEXCEPT;
/* Collective. Forms one group for each color; the ranks are ordered by key, then by rank. A rank
 * with a negative color joins no group, and its *group becomes NULL. Blocks.
 * Errors: those of a collective, RESOURCE. */
UNISONO_EXPORT unisono_result_t unisono_split(int color, int key, unisono_comm_t comm,
                                              unisono_comm_t* group) UNISONO_NOEXCEPT;
/* Makes a group of `count` members: ranks of comm, in the order of the new group. Collective over
 * these members alone; each must be a process of its own. `id` must be the same on all members. Two
 * groups that are made from comm and share a member need different ids while both live.
 * Threads: any.
 * Errors: USAGE; MISMATCH with both lists if the members name different ranks or another order. */
UNISONO_EXPORT unisono_result_t unisono_subgroup(const int* members, size_t count,
                                                 unsigned long long id, unisono_comm_t comm,
                                                 unisono_comm_t* group) UNISONO_NOEXCEPT;
/* Makes a communicator of the remaining ranks, in their old order. Call it after UNISONO_PEER_LOST,
 * UNISONO_TIMEOUT or UNISONO_ABORTED on the communicator of the whole world. Collective over the
 * remaining ranks: it ends the old world and blocks until every rank has called it or is known to
 * be dead. timeout_ms limits the wait for ranks that may be alive; -1: as long as for connecting,
 * 0: no limit. quorum 1: at most one world can follow this one, even if the network separates its
 * hosts; 0: all ranks that can reach each other continue. Afterwards `comm` can only be freed; if
 * *shrunk is `comm`, this function frees it. After an error *shrunk is unchanged.
 * Errors: EVICTED, USAGE, those of unisono_connect(). */
UNISONO_EXPORT unisono_result_t unisono_shrink(int timeout_ms, int quorum, unisono_comm_t comm,
                                               unisono_comm_t* shrunk) UNISONO_NOEXCEPT;
/* Makes a communicator of `size` ranks: the ranks of `comm`, with the same numbers, and new
 * processes. Collective: the new processes connect as ranks of a world of `size`, with the job name
 * (and address) of the first world. `comm` stays usable; if *grown is `comm`, this function frees
 * it. `address` is where rank 0 listens for the new processes; NULL: the address of the first
 * world.
 * Errors: those of unisono_connect(), USAGE. */
UNISONO_EXPORT unisono_result_t unisono_grow(int size, const char* address, unisono_comm_t comm,
                                             unisono_comm_t* grown) UNISONO_NOEXCEPT;
/* Local. Labels the next calls of this rank on any group of this world, for example with a layer or
 * a phase, until the next label. `unisono top` shows the label, and recordings name the calls by
 * it. NULL or "" removes the label.
 * Units: at most 103 bytes; a recording keeps about 400 different labels.
 * Threads: any.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_label(const char* text,
                                              unisono_comm_t comm) UNISONO_NOEXCEPT;
/* Local. Ends all operations of this world on all ranks with UNISONO_ABORTED. `reason` (may be
 * NULL) becomes part of the error text on every rank; only the first reason counts.
 * Threads: any.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_abort(const char* reason,
                                              unisono_comm_t comm) UNISONO_NOEXCEPT;
/* Local. Sets *failure to the result that the next operation on `comm` would return, with its text
 * in unisono_last_error(); UNISONO_SUCCESS while no error is known. Checks for dead ranks and for
 * reports from other hosts, as a waiting operation does. Never blocks; makes some system calls.
 * Does not report a rank that left in order before another rank needed it, nor a stopped process.
 * Threads: any.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_failure(unisono_comm_t comm,
                                                unisono_result_t* failure) UNISONO_NOEXCEPT;
/* Local. Writes the ranks of the group that have not entered this rank's latest collective to
 * `ranks` (room for n), in ascending order, and their number to *count. Still valid after that
 * collective has timed out. Ranks on other hosts report their position only while a rank waits;
 * until then they count as late.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_late_ranks(unisono_comm_t comm, int* ranks,
                                                   int* count) UNISONO_NOEXCEPT;

/* The cost of one kind of call to this rank so far, in this group. */
typedef struct unisono_call_statistics {
  size_t struct_size; /* start from UNISONO_STATISTICS_INIT */
  unsigned long long calls;
  unsigned long long bytes; /* for each call the larger of its input and output */
  double moving_s;          /* in blocking calls, without waiting */
  double waiting_s;         /* because a peer had not arrived, sent or read */
  /* Histogram of waiting time per call. skew[0] counts calls that waited less than a microsecond;
   * skew[k] at least 2^(k-1) and less than 2^k microseconds; the last bucket all longer ones. */
  unsigned long long skew[24];
} unisono_statistics_t;
#define UNISONO_STATISTICS_INIT {sizeof(unisono_statistics_t), 0, 0, 0.0, 0.0, {0}}
/* Local. Writes the statistics of `what`: "all_reduce" or another collective, "send" or "recv"; all
 * zeros if it was never called. waiting_for_s (may be NULL) has room for n numbers and receives the
 * time spent waiting for each rank.
 * Units: seconds.
 * Threads: any.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_statistics(const char* what, unisono_comm_t comm,
                                                   unisono_statistics_t* statistics,
                                                   double* waiting_for_s) UNISONO_NOEXCEPT;

/* Requests. */

/* Local. Blocks until the operation has ended and returns its result. Consumes the request:
 * *request becomes NULL, also after a failure. Running out of time ends the operations of the world
 * on all ranks.
 * Units: timeout_ms in milliseconds; -1: the limit of the call or the communicator, 0: no limit.
 * Errors: those of the operation; TIMEOUT; USAGE if *request is NULL. */
UNISONO_EXPORT unisono_result_t unisono_wait(unisono_request_t* request,
                                             int timeout_ms) UNISONO_NOEXCEPT;
/* Local. Sets *done to 1 if the operation has ended, so that unisono_wait() returns at once, and to
 * 0 otherwise. Makes progress; never blocks.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_test(unisono_request_t request, int* done) UNISONO_NOEXCEPT;

/* Collectives. All ranks call them. Each returns when its buffers may be used again. The _async
 * form starts the operation, which progresses while the caller computes, and sets *request; the
 * buffers must live, and `out` must not be touched, until unisono_wait() returns. Inside
 * unisono_group() the group waits: *request becomes NULL, and `request` may be NULL.
 *
 * Shapes: see the table at the top.
 * In place: see the top.
 * Errors: USAGE before anything is sent; PEER_LOST, TIMEOUT, MISMATCH and ABORTED on all ranks. */

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
/* Returns when all ranks have called it. */
UNISONO_EXPORT unisono_result_t unisono_barrier(unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_barrier_async(unisono_comm_t comm,
                                                      unisono_request_t* request) UNISONO_NOEXCEPT;

/* Reduces the vectors of ranks 0 to r on rank r. exclusive_scan stops at rank r-1; rank 0 gets the
 * operation's identity, such as 0 for a sum (with UNISONO_USER, `out` of rank 0 is unchanged).
 * Errors: also USAGE for UNISONO_AVG. */
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

/* Collective. The v-forms: parts may differ in length. `counts` and `displs` are the lists that
 * the top of this header describes; only the root uses `in` of scatter_v and `out` of gather_v. The
 * in-place rule and the errors are those above. */
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
/* Sends counts[i] elements to rank i and receives recv_counts[i] from it. counts[i] of this rank
 * must equal rank i's recv_counts entry for this rank. */
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

/* Any collective, with every option. */

/* A user-defined operation: inout[i] = in[i] op inout[i] for `count` elements. Must be associative
 * and commutative. May run in the progress thread, and must not call unisono. */
typedef void (*unisono_combine_t)(void* inout, const void* in, size_t count, void* context);

/* Start from UNISONO_CALL_INIT, and set what the collective needs. */
typedef struct unisono_call {
  size_t struct_size;
  unisono_collective_t collective;
  unisono_dtype_t dtype;
  unisono_op_t op;
  int root;
  int timeout_ms; /* -1: the communicator's; 0: no limit */
  int reserved;   /* 0 */
  const void* in;
  void* out;
  size_t count; /* not used by v-forms */
  const size_t* counts;
  const size_t* displs;
  const size_t* recv_counts; /* all_to_all_v */
  const size_t* recv_displs; /* all_to_all_v */
  double factor;             /* UNISONO_PREMUL_SUM; the same on all ranks */
  unisono_combine_t combine; /* UNISONO_USER */
  void* context;             /* UNISONO_USER: passed to `combine`; must live as long as the call */
  const char* algorithm; /* NULL: chosen; "ring", "reproducible", "mine.json"; the same on all */
  /* The error that the call may add to f32 (call.hpp), the same on all ranks. -1: the
   * communicator's; 0: no extra rounding. From 0.008 on, hosts send i8; from 0.003 on, bf16;
   * smaller values are refused. */
  double max_error;
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

/* Collective. Runs `call` and returns when its buffers may be used again; unisono_run_async()
 * starts it.
 * Errors: those of the collectives above. */
UNISONO_EXPORT unisono_result_t unisono_run(const unisono_call_t* call,
                                            unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_run_async(const unisono_call_t* call, unisono_comm_t comm,
                                                  unisono_request_t* request) UNISONO_NOEXCEPT;

/* Local. Explains which algorithm `call` would get, and why: writes a table for people to `text`,
 * which has room for `bytes`, cut there and ended by a zero, and sets *length (may be NULL) to the
 * bytes of the whole table with its zero. The buffers of `call` may be NULL, and so may `text` if
 * `bytes` is 0.
 * Errors: USAGE; the error that has ended the world. */
UNISONO_EXPORT unisono_result_t unisono_explain(const unisono_call_t* call, unisono_comm_t comm,
                                                char* text, size_t bytes,
                                                size_t* length) UNISONO_NOEXCEPT;
/* Local. Prepares `call` for repeated starts. `call` may be freed afterwards; its buffers must live
 * as long as the plan. The caller frees *plan; *plan is NULL after a failure.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_plan(const unisono_call_t* call, unisono_comm_t comm,
                                             unisono_plan_t* plan) UNISONO_NOEXCEPT;
/* Collective. Runs the plan on its buffers, as unisono_run() would; the _async form starts it.
 * Errors: those of unisono_run(). */
UNISONO_EXPORT unisono_result_t unisono_plan_start(unisono_plan_t plan) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t
unisono_plan_start_async(unisono_plan_t plan, unisono_request_t* request) UNISONO_NOEXCEPT;
/* Local. Returns the chosen algorithm, such as "ring"; valid until the plan is freed. Returns "" if
 * plan is NULL. */
UNISONO_EXPORT const char* unisono_plan_algorithm(unisono_plan_t plan) UNISONO_NOEXCEPT;
/* Local. Frees the plan and sets *plan to NULL; *plan may be NULL. Operations that it has started
 * continue. */
UNISONO_EXPORT unisono_result_t unisono_plan_free(unisono_plan_t* plan) UNISONO_NOEXCEPT;

/* Collective. Starts several operations as one: `body` calls _async functions on `comm`, and
 * unisono_group() returns when all of them are done. Consecutive small all_reduces of the same
 * dtype and op become one. If `body` returns anything but UNISONO_SUCCESS, nothing is started, and
 * that value is the result; this must happen on all ranks or on none, because the other ranks would
 * wait.
 * Errors: USAGE for a blocking call on `comm` in `body`; the result of `body`; those of the
 * operations. */
UNISONO_EXPORT unisono_result_t unisono_group(unisono_result_t (*body)(void* context),
                                              void* context, unisono_comm_t comm) UNISONO_NOEXCEPT;

/* `from` of a receive: whichever rank sends first. A receive with the same tag that names the
 * sender has priority. */
enum { UNISONO_ANY_SOURCE = -1 };

/* Sends to or receives from one rank of comm. Messages with the same tag between two ranks
 * arrive in order. unisono_send() may return before the receive begins if the message fits into the
 * lane's buffer (at most 256 KiB); a longer message waits for the receiver. A receive sets
 * *received to the length of the message, which may be less than `bytes`, and *source to the rank
 * that sent it; both pointers may be NULL. The _async forms start the transfer; the buffer must
 * live until unisono_wait() or unisono_wait_received() returns.
 * Units: bytes; timeout_ms in milliseconds, -1: the communicator's limit, 0: no limit.
 * Threads: one thread at a time, also while another thread makes collective calls.
 * Errors: USAGE; MISMATCH if the message is longer than the buffer, TIMEOUT, PEER_LOST and ABORTED,
 * on all ranks. */
UNISONO_EXPORT unisono_result_t unisono_send(const void* data, size_t bytes, int to, int tag,
                                             int timeout_ms, unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_send_async(const void* data, size_t bytes, int to, int tag,
                                                   unisono_comm_t comm,
                                                   unisono_request_t* request) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_recv(void* data, size_t bytes, int from, int tag,
                                             int timeout_ms, unisono_comm_t comm, size_t* received,
                                             int* source) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_recv_async(void* data, size_t bytes, int from, int tag,
                                                   unisono_comm_t comm,
                                                   unisono_request_t* request) UNISONO_NOEXCEPT;
/* Local. unisono_wait() for the request of unisono_recv_async(). Sets *received and *source as
 * unisono_recv() does.
 * Units: as for unisono_wait().
 * Errors: those of unisono_wait(); USAGE if the request is not that of a receive, which then has
 * ended. */
UNISONO_EXPORT unisono_result_t unisono_wait_received(unisono_request_t* request, int timeout_ms,
                                                      size_t* received,
                                                      int* source) UNISONO_NOEXCEPT;

/* Registered memory. Local calls: the peers need not do the same. */

/* Allocates zeroed, page-aligned memory; unisono_region_address() returns its address. `bytes` may
 * be 0.
 * Errors: USAGE, RESOURCE. */
UNISONO_EXPORT unisono_result_t unisono_allocate(size_t bytes, unisono_comm_t comm,
                                                 unisono_region_t* region) UNISONO_NOEXCEPT;
/* Moves the whole pages of ordinary private memory to shared pages at the same address, once, at
 * about 1 ms per MiB. The memory must stay mapped, and must not be freed, until the region is
 * freed. After a fork, parent and child share the memory.
 * Errors: USAGE (not mapped, or registered already), RESOURCE. */
UNISONO_EXPORT unisono_result_t unisono_register_buffer(void* data, size_t bytes,
                                                        unisono_comm_t comm,
                                                        unisono_region_t* region) UNISONO_NOEXCEPT;
/* Returns the address of the registered bytes; NULL if there are none. */
UNISONO_EXPORT void* unisono_region_address(unisono_region_t region) UNISONO_NOEXCEPT;
/* Returns the number of registered bytes: the size that was asked for, or the whole pages of a
 * registered buffer. */
UNISONO_EXPORT size_t unisono_region_bytes(unisono_region_t region) UNISONO_NOEXCEPT;
/* Unregisters the memory and sets *region to NULL; *region may be NULL. Memory from
 * unisono_allocate() is freed; a registered buffer becomes ordinary memory again with the same
 * contents. REQUIRES: no operation uses the memory on any rank. */
UNISONO_EXPORT unisono_result_t unisono_region_free(unisono_region_t* region) UNISONO_NOEXCEPT;

#if defined(__cplusplus)
}
#endif
#undef UNISONO_INT
