/* Teams from C: two threads of each rank, long and short vectors. */
#define _POSIX_C_SOURCE 200809L
#include "unisono/team.h"

#include <pthread.h>
#include <stdlib.h>

#include "c_program.h"

enum { kThreads = 2, kCount = 50000 };

struct work {
  unisono_team_t team;
  float* in;  /* n parts */
  float* out; /* n parts */
  float* all; /* n parts */
  size_t count;
  int thread;
  unisono_result_t results[6];
};

static void* every_call(void* given) {
  struct work* w = (struct work*)given;
  unisono_result_t* result = w->results;
  *result++ = unisono_team_all_reduce(w->in, w->out, w->count, UNISONO_F32, UNISONO_SUM, w->thread,
                                      w->team);
  *result++ = unisono_team_all_gather(w->out, w->all, w->count, UNISONO_F32, w->thread, w->team);
  *result++ = unisono_team_reduce_scatter(w->all, w->out, w->count, UNISONO_F32, UNISONO_MAX,
                                          w->thread, w->team);
  *result++ = unisono_team_broadcast(w->out, w->count, UNISONO_F32, 1, w->thread, w->team);
  *result++ = unisono_team_all_to_all(w->in, w->all, w->count, UNISONO_F32, w->thread, w->team);
  *result++ = unisono_team_barrier(w->thread, w->team);
  return NULL;
}

static void make_calls(unisono_comm_t comm, unisono_team_t team, size_t count) {
  const size_t ranks = (size_t)unisono_size(comm);
  const int rank = unisono_rank(comm);
  struct work works[kThreads];
  pthread_t threads[kThreads];
  float* memory = (float*)malloc(3 * ranks * count * sizeof(float));
  size_t wrong = 0;
  size_t i;
  int t;
  if (memory == NULL) {
    EXPECT(memory != NULL);
    return;
  }
  for (i = 0; i < ranks * count; ++i) {
    memory[i] = value(rank, i % 1000);
  }
  for (t = 0; t < kThreads; ++t) {
    struct work* w = &works[t];
    w->team = team;
    w->in = memory;
    w->out = memory + ranks * count;
    w->all = memory + 2 * ranks * count;
    w->count = count;
    w->thread = t;
    EXPECT(pthread_create(&threads[t], NULL, every_call, w) == 0);
  }
  for (t = 0; t < kThreads; ++t) {
    int k;
    EXPECT(pthread_join(threads[t], NULL) == 0);
    for (k = 0; k < 6; ++k) {
      EXPECT(works[t].results[k] == UNISONO_SUCCESS);
    }
  }
  for (i = 0; i < count; ++i) {
    float sum = 0.0F;
    size_t from;
    for (from = 0; from < ranks; ++from) {
      sum += value((int)from, i % 1000);
      wrong += memory[(2 * ranks + from) * count + i] !=
               value((int)from, ((size_t)rank * count + i) % 1000);
    }
    wrong += memory[ranks * count + i] != sum; /* of all sums the greatest, from rank 1 */
  }
  EXPECT(wrong == 0);
  free(memory);
}

void run_teams(unisono_comm_t comm) {
  unisono_team_t team = NULL;
  float x = 0.0F;
  SUCCEEDS(unisono_team_create(kThreads, -1, comm, &team));
  make_calls(comm, team, 3);
  make_calls(comm, team, kCount);
  FAILS(unisono_team_broadcast(&x, 1, UNISONO_F32, 0, kThreads, team), UNISONO_USAGE,
        unisono_rank(comm) == 0 ? "usage: broadcast of a team on rank 0 by thread 2 of 2\nthreads "
                                  "are numbered from 0; a team can call all_reduce, broadcast, "
                                  "all_gather, reduce_scatter, all_to_all and barrier"
                                : unisono_last_error());
  SUCCEEDS(unisono_team_free(&team));
  EXPECT(team == NULL);
  FAILS(unisono_team_barrier(0, team), UNISONO_USAGE,
        "usage: the team is NULL\nit was never created, or was freed");
}
