/* The C interface: C99, also valid C++. C and C++ (communicator.hpp) share one core, and one world
 * may have ranks of both. rules.h states the rules for both: shapes, in-place use, errors, threads,
 * and the arguments that must be equal on all ranks. collectives.h has a function for each
 * collective.
 *
 * Results: a function that can fail returns unisono_result_t; UNISONO_SUCCESS is 0.
 * unisono_last_error() returns the text of the calling thread's latest failure: "<code>: <what
 * failed, where, since when>\n<what to try next>". No function throws or ends the process.
 *
 * Structs: initialise each struct with its _INIT macro, then set members. _INIT sets the first
 * member, struct_size, from which a newer library recognises an older struct. */
#pragma once

#include "unisono/collectives.h"
#include "unisono/types.h"
#include "unisono/version.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* About the library. Local; any thread. */

/* Returns the text of this thread's latest failure, at most 4095 bytes, or "" before the first
 * failure. The text stays valid until this thread's next failure. A successful call does not clear
 * the text. */
UNISONO_EXPORT const char* unisono_last_error(void) UNISONO_NOEXCEPT;
/* Returns "success", "usage", "peer_lost", ... as static text; "unknown" for any other value. */
UNISONO_EXPORT const char* unisono_result_name(unisono_result_t result) UNISONO_NOEXCEPT;
/* Returns the version of the running library, such as "0.1.0". */
UNISONO_EXPORT const char* unisono_version(void) UNISONO_NOEXCEPT;
/* Returns the bytes of one element; 0 if `dtype` is not a unisono_dtype_t. */
UNISONO_EXPORT size_t unisono_dtype_bytes(unisono_dtype_t dtype) UNISONO_NOEXCEPT;

/* Communicators. */

/* Options of unisono_connect(). Start from UNISONO_CONNECT_OPTIONS_INIT. A member that is -1 or
 * NULL, `threads` if it is 0, and an unchanged time limit are read from the environment: from the
 * UNISONO_* variable, else from the launcher's variables (torchrun, Open MPI, MPICH and other PMI
 * launchers, Slurm). Without a rank and a size, the world has one rank. options.hpp describes each
 * member. */
typedef struct unisono_connect_options {
  size_t struct_size;
  int rank;
  int size;
  int connect_timeout_ms;
  int timeout_ms;        /* limit of an operation's wait without progress; 0: no limit */
  const char* job;       /* ranks with the same name find each other */
  const char* token;     /* a secret of at least 16 characters; several hosts need it */
  const char* file;      /* one host: a file through which the ranks find each other */
  const char* algorithm; /* "all_reduce=ring,broadcast=binomial", "reproducible", "tree_order" */
  const char* profile;   /* file written by `unisono tune`; "none": built-in choices */
  const char* address;   /* several hosts: rank 0 listens at "host:port"; needs a token */
  const char* interface; /* own addresses that other ranks may use: "eth0,10.0.0.0/8" */
  const char* ports;     /* ports that this rank may listen on: "20000-20999" */
  const char* host;      /* ranks with different names count as ranks on different hosts */
  int wait_spin;         /* polls of a waiting rank before it yields to other threads */
  int wait_yield_us;     /* microseconds for which a waiting rank yields before it sleeps */
  unisono_transport_t transport;
  int checksum;     /* 1: CRC-32C on messages between hosts, 0: none; the same on all ranks */
  size_t threads;   /* threads that move a long blocking call's data; 0: UNISONO_THREADS, else 1 */
  double max_error; /* default for f32 sums; 0: no added rounding; -1: UNISONO_MAX_ERROR, else 0 */
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

/* Collective. Joins the world that the options and the environment describe. If `options` is NULL,
 * only the environment counts. Blocks until all ranks have joined. The caller frees *comm with
 * unisono_comm_free(); *comm is NULL after a failure.
 * Threads: any.
 * Errors: USAGE, CONFIG, CONNECTION, PEER_LOST, TIMEOUT, RESOURCE, ABORTED. */
UNISONO_EXPORT unisono_result_t unisono_connect(const unisono_connect_options_t* options,
                                                unisono_comm_t* comm) UNISONO_NOEXCEPT;
/* Local. Leaves the group and sets *comm to NULL; *comm may be NULL. Requests, plans and regions of
 * the group stay usable. This rank leaves the world when it has freed all its communicators, plans,
 * requests and regions of the world. Peers that still wait for this rank then get
 * UNISONO_PEER_LOST. */
UNISONO_EXPORT unisono_result_t unisono_comm_free(unisono_comm_t* comm) UNISONO_NOEXCEPT;
/* Local. Returns this rank's number in the group, from 0; -1 if comm is NULL. */
UNISONO_EXPORT int unisono_rank(unisono_comm_t comm) UNISONO_NOEXCEPT;
/* Local. Returns the number of ranks in the group; 0 if comm is NULL. */
UNISONO_EXPORT int unisono_size(unisono_comm_t comm) UNISONO_NOEXCEPT;
/* Local. Returns this rank's index among the group's ranks on this host, in rank order, from 0; -1
 * if comm is NULL. */
UNISONO_EXPORT int unisono_local_rank(unisono_comm_t comm) UNISONO_NOEXCEPT;
/* Local. Returns the number of the group's ranks on this rank's host; 0 if comm is NULL. */
UNISONO_EXPORT int unisono_local_size(unisono_comm_t comm) UNISONO_NOEXCEPT;
/* Collective. Ranks that pass the same color form a group. Within a group, ranks are ordered by
 * key, then by their rank in `comm`. A rank that passes a negative color joins no group, and its
 * *group becomes NULL. Blocks.
 * Errors: those of a collective, RESOURCE. */
UNISONO_EXPORT unisono_result_t unisono_split(int color, int key, unisono_comm_t comm,
                                              unisono_comm_t* group) UNISONO_NOEXCEPT;
/* Collective over the ranks in `members`. Makes a group of these `count` ranks of `comm`; the rank
 * order in the group is the order in `members`. Each member must be a separate process. All members
 * pass the same `id`. Two groups that are made from `comm` must have different ids if they share a
 * member and live at the same time.
 * Threads: any.
 * Errors: those of a collective; MISMATCH, with both lists, if two members pass different lists;
 * CONNECTION if a member does not call unisono_subgroup() within the limit of unisono_connect();
 * RESOURCE. */
UNISONO_EXPORT unisono_result_t unisono_subgroup(const int* members, size_t count,
                                                 unsigned long long id, unisono_comm_t comm,
                                                 unisono_comm_t* group) UNISONO_NOEXCEPT;
/* Collective over the remaining ranks. Makes a communicator of the remaining ranks, in their old
 * order. Call unisono_shrink() after an error that has ended the world, on the communicator of the
 * whole world. unisono_shrink() ends the old world, and blocks until every rank has called it or is
 * known to be dead. timeout_ms limits the wait for ranks that may be alive; -1: the limit of
 * unisono_connect(), 0: no limit. If `quorum` is 1, at most one world can follow this world, even
 * if the network separates its hosts. If `quorum` is 0, all ranks that can reach each other
 * continue. Afterwards `comm` can only be freed; if *shrunk is `comm`, this function frees `comm`.
 * After an error, *shrunk is unchanged.
 * Errors: EVICTED, USAGE, those of unisono_connect(). */
UNISONO_EXPORT unisono_result_t unisono_shrink(int timeout_ms, int quorum, unisono_comm_t comm,
                                               unisono_comm_t* shrunk) UNISONO_NOEXCEPT;
/* Collective over the ranks of `comm`. Makes a communicator of `size` ranks: the ranks of `comm`,
 * with the same numbers, and new processes. The new processes get the numbers from the size of
 * `comm` to `size` - 1. Each new process calls unisono_connect() with its number, with `size`, and
 * with the job name (and the address) of the first world. `comm` stays usable; if *grown is `comm`,
 * this function frees `comm`. Rank 0 listens for the new processes at `address`, or at the address
 * of the first world if `address` is NULL.
 * Errors: those of unisono_connect(), USAGE. */
UNISONO_EXPORT unisono_result_t unisono_grow(int size, const char* address, unisono_comm_t comm,
                                             unisono_comm_t* grown) UNISONO_NOEXCEPT;
/* Local. Sets the label of this rank's next calls on all groups of this world, for example the name
 * of a layer or a phase. The label applies until the next unisono_label(); NULL or "" removes it.
 * `unisono top` shows the label, and a recording stores the label with each call.
 * Units: at most 103 bytes; further bytes are dropped. A recording keeps about 400 different
 * labels.
 * Threads: any.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_label(const char* text,
                                              unisono_comm_t comm) UNISONO_NOEXCEPT;
/* Local. Ends all operations of this world, on all ranks, with UNISONO_ABORTED. `reason` (may be
 * NULL) becomes part of the error text on every rank; only the first reason counts.
 * Threads: any.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_abort(const char* reason,
                                              unisono_comm_t comm) UNISONO_NOEXCEPT;
/* Local. If an error has ended the world, sets *failure to this error and sets the text of
 * unisono_last_error(). The next operation on `comm` would return the same error. If no error is
 * known, sets *failure to UNISONO_SUCCESS. As a waiting operation does, unisono_failure() checks
 * for dead ranks and for reports from other hosts. It never blocks, but makes some system calls. It
 * does not report a stopped process, or a rank that left normally before another rank needed it.
 * Threads: any.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_failure(unisono_comm_t comm,
                                                unisono_result_t* failure) UNISONO_NOEXCEPT;
/* Local. Finds the ranks of the group that have not entered this rank's latest collective. Writes
 * these ranks to `ranks`, which has room for all ranks, in ascending order, and their number to
 * *count. The result is still valid after this collective has timed out. A rank on another host
 * counts as late until it reports its position, which it does only while a rank waits.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_late_ranks(unisono_comm_t comm, int* ranks,
                                                   int* count) UNISONO_NOEXCEPT;

/* Statistics of this rank's calls of one kind, in this group, so far. */
typedef struct unisono_call_statistics {
  size_t struct_size; /* start from UNISONO_STATISTICS_INIT */
  unsigned long long calls;
  unsigned long long bytes; /* per call: the larger of input and output; per receive: the message */
  double moving_s;          /* seconds of blocking calls, without waiting */
  double waiting_s;         /* seconds of waiting for peers */
  /* Histogram of waiting time per call. skew[0] counts the calls that waited less than a
   * microsecond. skew[k] counts the calls that waited at least 2^(k-1) and less than 2^k
   * microseconds. The last bucket also counts all calls that waited longer. */
  unsigned long long skew[24];
} unisono_statistics_t;
#define UNISONO_STATISTICS_INIT {sizeof(unisono_statistics_t), 0, 0, 0.0, 0.0, {0}}
/* Local. Writes the statistics of the calls of one kind. `what` is the name of a collective, such
 * as "all_reduce", or "send" or "recv". If this rank has made no such call, all numbers are 0. If
 * waiting_for_s is not NULL, it receives one number per rank: the time spent waiting for this rank.
 * Units: seconds.
 * Threads: any.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_statistics(const char* what, unisono_comm_t comm,
                                                   unisono_statistics_t* statistics,
                                                   double* waiting_for_s) UNISONO_NOEXCEPT;

/* Requests. */

/* Local. Blocks until the operation has ended and returns its result. Consumes the request:
 * *request becomes NULL, also after a failure. A timeout ends the world on all ranks.
 * Units: timeout_ms in milliseconds. -1: the call's timeout_ms, or the communicator's if the call
 * has none. 0: no limit.
 * Errors: those of the operation; TIMEOUT; USAGE if *request is NULL. */
UNISONO_EXPORT unisono_result_t unisono_wait(unisono_request_t* request,
                                             int timeout_ms) UNISONO_NOEXCEPT;
/* Local. Makes progress without blocking. Sets *done to 1 if the operation has ended, otherwise to
 * 0. If *done is 1, unisono_wait() returns at once.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_test(unisono_request_t request, int* done) UNISONO_NOEXCEPT;

/* Any collective, with every option. */

/* A user-defined operation: inout[i] = in[i] op inout[i] for `count` elements. The operation must
 * be associative and commutative. For scan and exclusive_scan, the operation only needs to be
 * associative, because `in` then comes from lower ranks than `inout`. The function may run in the
 * progress thread, and must not call unisono. */
typedef void (*unisono_combine_t)(void* inout, const void* in, size_t count, void* context);

/* Start from UNISONO_CALL_INIT, and set what the collective needs. */
typedef struct unisono_call {
  size_t struct_size;
  unisono_collective_t collective;
  unisono_dtype_t dtype;
  unisono_op_t op;
  int root;
  int timeout_ms; /* -1: the communicator's limit; 0: no limit */
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
  const char* algorithm;     /* "ring", "mine.json"; NULL: automatic; the same on all ranks */
  /* The error that the call may add to f32 results (call.hpp), the same on all ranks. -1: the
   * communicator's max_error. 0: no added rounding. From 0.003: hosts exchange bf16. From 0.008:
   * hosts exchange i8. A positive value below 0.003 is an error. */
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

/* Local. Explains which algorithm `call` would use, and why. Writes a readable table to `text`,
 * which has room for `bytes` bytes. A longer table is cut off; the text always ends with a zero
 * byte. Sets *length to the bytes of the whole table, including the zero byte; `length` may be
 * NULL. The buffers of `call` may be NULL. `text` may be NULL if `bytes` is 0.
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
/* Local. Returns the name of the chosen algorithm, such as "ring", or "" if plan is NULL. The name
 * is valid until the plan is freed. */
UNISONO_EXPORT const char* unisono_plan_algorithm(unisono_plan_t plan) UNISONO_NOEXCEPT;
/* Local. Frees the plan and sets *plan to NULL; *plan may be NULL. Operations that the plan has
 * started continue. */
UNISONO_EXPORT unisono_result_t unisono_plan_free(unisono_plan_t* plan) UNISONO_NOEXCEPT;

/* Collective. Starts several operations together. `body` calls _async functions on `comm`;
 * unisono_group() returns when all these operations are done. Consecutive small all_reduces of the
 * same dtype and op are merged into one all_reduce. If `body` returns anything but UNISONO_SUCCESS,
 * no operation is started, and unisono_group() returns this value. `body` must fail on all ranks or
 * on none; otherwise the other ranks would wait.
 * Errors: USAGE for a blocking call on `comm` in `body`; the result of `body`; those of the
 * operations. */
UNISONO_EXPORT unisono_result_t unisono_group(unisono_result_t (*body)(void* context),
                                              void* context, unisono_comm_t comm) UNISONO_NOEXCEPT;

/* Sends a message to rank `to` of `comm`, or receives a message from rank `from`, which may be
 * UNISONO_ANY_SOURCE. rules.h has the rules for messages. A receive sets *received to the length of
 * the message, and *source to the sender; both pointers may be NULL. The _async forms only start
 * the transfer; the buffer must live until unisono_wait() or unisono_wait_received() returns.
 * Units: bytes. timeout_ms in milliseconds; -1: the communicator's limit, 0: no limit.
 * Threads: one thread at a time may send or receive. Another thread may make collective calls at
 * the same time.
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
/* Local. Waits for a request of unisono_recv_async(), as unisono_wait() does. Also sets *received
 * and *source, as unisono_recv() does.
 * Units: as for unisono_wait().
 * Errors: those of unisono_wait(); USAGE, after the operation has ended, if the operation is not a
 * receive. */
UNISONO_EXPORT unisono_result_t unisono_wait_received(unisono_request_t* request, int timeout_ms,
                                                      size_t* received,
                                                      int* source) UNISONO_NOEXCEPT;

/* Registered memory. These calls are local: the peers need not register memory as well. */

/* Allocates zeroed, page-aligned memory; unisono_region_address() returns its address. `bytes` may
 * be 0.
 * Errors: USAGE, RESOURCE. */
UNISONO_EXPORT unisono_result_t unisono_allocate(size_t bytes, unisono_comm_t comm,
                                                 unisono_region_t* region) UNISONO_NOEXCEPT;
/* Registers ordinary private memory: replaces each whole page with a shared page at the same
 * address and with the same contents, which takes about 1 ms per MiB. The memory must stay mapped,
 * and must not be freed, until the region is freed. After a fork, parent and child share the
 * memory.
 * Errors: USAGE, for example if the memory is not mapped or is already registered; RESOURCE. */
UNISONO_EXPORT unisono_result_t unisono_register_buffer(void* data, size_t bytes,
                                                        unisono_comm_t comm,
                                                        unisono_region_t* region) UNISONO_NOEXCEPT;
/* Returns the address of the registered bytes; NULL if there are none. */
UNISONO_EXPORT void* unisono_region_address(unisono_region_t region) UNISONO_NOEXCEPT;
/* Returns the number of registered bytes: the size passed to unisono_allocate(), or the whole pages
 * of a registered buffer. */
UNISONO_EXPORT size_t unisono_region_bytes(unisono_region_t region) UNISONO_NOEXCEPT;
/* Unregisters the memory and sets *region to NULL; *region may be NULL. Memory from
 * unisono_allocate() is freed; a registered buffer becomes ordinary memory again with the same
 * contents. REQUIRES: no operation uses the memory on any rank. */
UNISONO_EXPORT unisono_result_t unisono_region_free(unisono_region_t* region) UNISONO_NOEXCEPT;

#if defined(__cplusplus)
}
#endif
