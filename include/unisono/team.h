/* Teams for C: several threads of each rank make one collective call together. team.hpp describes
 * the calls and the rules for their threads. unisono.h describes results and errors; each thread
 * has its own unisono_last_error().
 *
 *   unisono_team_create(4, -1, comm, &team);      once, on every rank
 *   ... in thread t of 4, the same buffers and arguments in all four ...
 *   unisono_team_all_reduce(data, data, count, UNISONO_F32, UNISONO_SUM, t, team); */
#pragma once

#include <stddef.h>

#include "unisono/unisono.h"

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct unisono_team_handle* unisono_team_t; /* threads of a rank that call together */

/* Collective. One thread of each rank calls this function. Makes a team with the same number of
 * threads, 1 to 1024, on all ranks; comm stays usable. timeout_ms limits the time for which a call
 * waits for the other threads of its rank; 0: no limit, -1: 300000. The caller frees *team; *team
 * is NULL after a failure.
 * Errors: USAGE; MISMATCH if the numbers differ. */
UNISONO_EXPORT unisono_result_t unisono_team_create(int threads, int timeout_ms,
                                                    unisono_comm_t comm,
                                                    unisono_team_t* team) UNISONO_NOEXCEPT;
/* Local. Frees the team and sets *team to NULL; *team may be NULL. REQUIRES: no thread is in a call
 * of the team. */
UNISONO_EXPORT unisono_result_t unisono_team_free(unisono_team_t* team) UNISONO_NOEXCEPT;

/* Collective. On every rank, all threads of the team make each call, with the same whole buffers.
 * `thread` is the number of the calling thread, from 0. A call returns when this rank's result is
 * complete.
 * Shapes: see rules.h.
 * In place: see rules.h.
 * Errors: those of unisono_run(); MISMATCH if two threads make different calls; TIMEOUT if a thread
 * does not arrive (the text names the thread). */
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
