/* The C interface: C99, also valid C++. It uses the same core as communicator.hpp, so ranks that
 * use either may be in one world. rules.h has the rules of both: shapes, in-place use, errors,
 * threads, and what ranks must agree on. collectives.h has a function for each collective.
 *
 * Results: a function that can fail returns unisono_result_t; UNISONO_SUCCESS is 0.
 * unisono_last_error() returns the text of the calling thread's latest failure: "<code>: <what
 * failed, where, since when>\n<what to try next>". No function throws or ends the process.
 *
 * Structs: start from the struct's _INIT. Its first member, struct_size, tells the library which
 * members the program knows. */
#pragma once

#include "unisono/collectives.h"
#include "unisono/types.h"
#include "unisono/version.h"

#if defined(__cplusplus)
extern "C" {
#endif

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

/* Options of unisono_connect(). Start from UNISONO_CONNECT_OPTIONS_INIT: struct_size tells the
 * library which members the caller knows. Members that are -1 or NULL, `threads` if it is 0, and
 * time limits that are unchanged are read from the environment, in this order: UNISONO_*, torchrun
 * (RANK, WORLD_SIZE, ...), Open MPI, MPICH and other PMI launchers, Slurm. With none of them the
 * world has one rank. options.hpp describes each member. */
typedef struct unisono_connect_options {
  size_t struct_size;
  int rank;
  int size;
  int connect_timeout_ms;
  int timeout_ms;        /* limit for one operation to wait without progress; 0: no limit */
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
/* Local. Leaves the group and sets *comm to NULL; *comm may be NULL. Requests, plans and regions of
 * the group stay usable. When this rank has freed its last communicator, plan, request and region
 * of a world, peers that still wait for this rank get UNISONO_PEER_LOST. */
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
/* Collective. Forms one group for each color. The ranks of a group are ordered by key, then by
 * their rank in `comm`. A rank with a negative color joins no group, and its *group becomes NULL.
 * Blocks.
 * Errors: those of a collective, RESOURCE. */
UNISONO_EXPORT unisono_result_t unisono_split(int color, int key, unisono_comm_t comm,
                                              unisono_comm_t* group) UNISONO_NOEXCEPT;
/* Makes a group of `count` members: ranks of comm, in the order that they have in the new group.
 * Collective over these members alone. Each member must be a separate process. `id` must be the
 * same on all members. If two groups are made from comm, share a member and live at the same time,
 * their ids must differ.
 * Threads: any.
 * Errors: those of a collective; MISMATCH with both lists if the members name different ranks or
 * another order; CONNECTION if a member does not call unisono_subgroup() within the limit of
 * unisono_connect(); RESOURCE. */
UNISONO_EXPORT unisono_result_t unisono_subgroup(const int* members, size_t count,
                                                 unsigned long long id, unisono_comm_t comm,
                                                 unisono_comm_t* group) UNISONO_NOEXCEPT;
/* Makes a communicator of the remaining ranks, in their old order. Call unisono_shrink() after an
 * error that has ended the world, on the communicator of the whole world. Collective over the
 * remaining ranks. It ends the old world, and blocks until every rank has called it or is known to
 * be dead. timeout_ms limits the wait for ranks that may be alive; -1: as long as for connecting,
 * 0: no limit. quorum 1: at most one world can follow this world, even if the network separates its
 * hosts; 0: all ranks that can reach each other continue. Afterwards `comm` can only be freed; if
 * *shrunk is `comm`, this function frees `comm`. After an error *shrunk is unchanged.
 * Errors: EVICTED, USAGE, those of unisono_connect(). */
UNISONO_EXPORT unisono_result_t unisono_shrink(int timeout_ms, int quorum, unisono_comm_t comm,
                                               unisono_comm_t* shrunk) UNISONO_NOEXCEPT;
/* Makes a communicator of `size` ranks: the ranks of `comm`, with the same numbers, and new
 * processes. Collective over the ranks of `comm`. The new processes call unisono_connect() with
 * this `size`, with the ranks that follow those of `comm`, and with the job name (and address) of
 * the first world. `comm` stays usable; if *grown is `comm`, this function frees `comm`. `address`
 * is where rank 0 listens for the new processes; NULL: the address of the first world.
 * Errors: those of unisono_connect(), USAGE. */
UNISONO_EXPORT unisono_result_t unisono_grow(int size, const char* address, unisono_comm_t comm,
                                             unisono_comm_t* grown) UNISONO_NOEXCEPT;
/* Local. Labels the next calls of this rank on any group of this world, for example with a layer or
 * a phase, until the next label. `unisono top` shows the label, and recordings name the calls by
 * the label. NULL or "" removes the label.
 * Units: at most 103 bytes; further bytes are dropped. A recording keeps about 400 different
 * labels.
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
 * Does not report a rank that left normally before another rank needed it, and does not report a
 * stopped process.
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

/* Statistics of this rank's calls of one kind, in this group, so far. */
typedef struct unisono_call_statistics {
  size_t struct_size; /* start from UNISONO_STATISTICS_INIT */
  unsigned long long calls;
  unsigned long long bytes; /* per call the larger of input and output; of a receive its message */
  double moving_s;          /* in blocking calls, without waiting */
  double waiting_s;         /* because a peer had not arrived, sent or read */
  /* Histogram of waiting time per call. skew[0] counts the calls that waited less than a
   * microsecond. skew[k] counts the calls that waited at least 2^(k-1) and less than 2^k
   * microseconds. The last bucket also counts all calls that waited longer. */
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
 * *request becomes NULL, also after a failure. A timeout ends the world on all ranks.
 * Units: timeout_ms in milliseconds; -1: the limit of the call or the communicator, 0: no limit.
 * Errors: those of the operation; TIMEOUT; USAGE if *request is NULL. */
UNISONO_EXPORT unisono_result_t unisono_wait(unisono_request_t* request,
                                             int timeout_ms) UNISONO_NOEXCEPT;
/* Local. Sets *done to 1 if the operation has ended, so that unisono_wait() returns at once, and to
 * 0 otherwise. Makes progress; never blocks.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_test(unisono_request_t request, int* done) UNISONO_NOEXCEPT;

/* Any collective, with every option. */

/* A user-defined operation: inout[i] = in[i] op inout[i] for `count` elements. The operation must
 * be associative and commutative. For scan and exclusive_scan it only needs to be associative,
 * because there `in` comes from lower ranks than `inout`. The function may run in the progress
 * thread, and must not call unisono. */
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

/* Collective. unisono_run() runs `call` and returns when its buffers may be used again.
 * unisono_run_async() starts `call` and returns at once.
 * Errors: those of the collectives (collectives.h). */
UNISONO_EXPORT unisono_result_t unisono_run(const unisono_call_t* call,
                                            unisono_comm_t comm) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_run_async(const unisono_call_t* call, unisono_comm_t comm,
                                                  unisono_request_t* request) UNISONO_NOEXCEPT;

/* Local. Explains which algorithm `call` would get, and why. Writes a readable table to `text`,
 * which has room for `bytes` bytes. A longer table is cut; the text always ends with a zero byte.
 * Sets *length (`length` may be NULL) to the bytes of the whole table, including the zero byte. The
 * buffers of `call` may be NULL. `text` may be NULL if `bytes` is 0.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_explain(const unisono_call_t* call, unisono_comm_t comm,
                                                char* text, size_t bytes,
                                                size_t* length) UNISONO_NOEXCEPT;
/* Local. Prepares `call` for repeated starts. `call` may be freed afterwards; its buffers must live
 * as long as the plan. The caller frees *plan; *plan is NULL after a failure.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_plan(const unisono_call_t* call, unisono_comm_t comm,
                                             unisono_plan_t* plan) UNISONO_NOEXCEPT;
/* Collective. Runs the plan on its buffers, as unisono_run() would. The _async form starts the plan
 * and returns at once.
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
 * unisono_group() returns this value. `body` must fail on all ranks or on none; otherwise the other
 * ranks would wait.
 * Errors: USAGE for a blocking call on `comm` in `body`; the result of `body`; those of the
 * operations. */
UNISONO_EXPORT unisono_result_t unisono_group(unisono_result_t (*body)(void* context),
                                              void* context, unisono_comm_t comm) UNISONO_NOEXCEPT;

/* Sends to or receives from one rank of comm, by the rules for messages in rules.h. A receive sets
 * *received to the length of the message, and *source to the rank that sent it; both pointers may
 * be NULL. The _async forms start the transfer; the buffer must live until unisono_wait() or
 * unisono_wait_received() returns.
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
/* Local. Does the same as unisono_wait() for a request of unisono_recv_async(). It also sets
 * *received and *source, as unisono_recv() does.
 * Units: as for unisono_wait().
 * Errors: those of unisono_wait(); USAGE if the request is not a request of a receive. The request
 * has then ended. */
UNISONO_EXPORT unisono_result_t unisono_wait_received(unisono_request_t* request, int timeout_ms,
                                                      size_t* received,
                                                      int* source) UNISONO_NOEXCEPT;

/* Registered memory. Local calls: the peers need not do the same. */

/* Allocates zeroed, page-aligned memory; unisono_region_address() returns its address. `bytes` may
 * be 0.
 * Errors: USAGE, RESOURCE. */
UNISONO_EXPORT unisono_result_t unisono_allocate(size_t bytes, unisono_comm_t comm,
                                                 unisono_region_t* region) UNISONO_NOEXCEPT;
/* Copies the whole pages of ordinary private memory to shared pages at the same address. This takes
 * about 1 ms per MiB, once. The memory must stay mapped, and must not be freed, until the region is
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
