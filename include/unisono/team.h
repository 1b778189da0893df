/* Teams for C: several threads of each rank make one collective call together. Which calls there
 * are, who makes them and what the results are is as in team.hpp; results and errors are as in
 * unisono.h, and unisono_last_error() is that of the calling thread.
 *
 *   unisono_team_create(4, -1, comm, &team);      once, on every rank
 *   ... in thread t of 4, the same buffers and arguments in all four ...
 *   unisono_team_all_reduce(data, data, count, UNISONO_F32, UNISONO_SUM, t, team);
 */
#pragma once

#include <stddef.h>

#include "unisono/unisono.h"

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct unisono_team_handle* unisono_team_t;

/* All ranks of comm call it with the same number of threads, 1 to 1024; comm stays usable.
 * timeout_ms: the longest that a call waits for the other threads of its rank to begin it; 0: for
 * ever; -1: 300000. *team is the caller's to free; NULL after a failure. One thread of each rank.
 * Errors: USAGE; MISMATCH where the numbers differ. */
UNISONO_EXPORT unisono_result_t unisono_team_create(int threads, int timeout_ms,
                                                    unisono_comm_t comm,
                                                    unisono_team_t* team) UNISONO_NOEXCEPT;
/* Sets *team to NULL; it may be NULL. No thread is in a call of the team. */
UNISONO_EXPORT unisono_result_t unisono_team_free(unisono_team_t* team) UNISONO_NOEXCEPT;

/* Each is called by all threads of the team, `thread` counted from 0, with the whole buffers, and
 * returns when the whole result is there. Counts and places are those of unisono_broadcast() and
 * its like. Errors besides those: MISMATCH, where two threads make different calls; TIMEOUT, which
 * says which thread has not come. */
UNISONO_EXPORT unisono_result_t unisono_team_broadcast(void* data, size_t count,
                                                       unisono_dtype_t dtype, int root, int thread,
                                                       unisono_team_t team) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_team_all_reduce(const void* in, void* out, size_t count,
                                                        unisono_dtype_t dtype, unisono_op_t op,
                                                        int thread,
                                                        unisono_team_t team) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_team_all_gather(const void* in, void* out, size_t count,
                                                        unisono_dtype_t dtype, int thread,
                                                        unisono_team_t team) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_team_reduce_scatter(const void* in, void* out, size_t count,
                                                            unisono_dtype_t dtype, unisono_op_t op,
                                                            int thread,
                                                            unisono_team_t team) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_team_all_to_all(const void* in, void* out, size_t count,
                                                        unisono_dtype_t dtype, int thread,
                                                        unisono_team_t team) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_team_barrier(int thread,
                                                     unisono_team_t team) UNISONO_NOEXCEPT;

#if defined(__cplusplus)
}
#endif
