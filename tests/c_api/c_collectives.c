/* Every collective of the C interface, blocking and asynchronous, with every element checked. */
#include <stdlib.h>
#include <string.h>

#include "c_program.h"

/* One run of all collectives. */
struct round {
  unisono_comm_t comm;
  int rank;
  int n;
  size_t count;
  int async;
  float* in;  /* n * count elements */
  float* out; /* n * count elements */
};

static unisono_request_t request = NULL;

/* Waits for the request of the asynchronous form. */
static unisono_result_t done(const struct round* round, unisono_result_t started) {
  if (!round->async || started != UNISONO_SUCCESS) {
    return started;
  }
  return unisono_wait(&request, -1);
}

/* Element j of block i of this rank's input is value(rank, i * count + j). */
static void fill(const struct round* round) {
  const size_t all = (size_t)round->n * round->count;
  size_t i;
  for (i = 0; i < all; ++i) {
    round->in[i] = value(round->rank, i);
    round->out[i] = -1.0F;
  }
}

static float sum_of(const struct round* round, size_t i) {
  float sum = 0.0F;
  int rank;
  for (rank = 0; rank < round->n; ++rank) {
    sum += value(rank, i);
  }
  return sum;
}

/* Block `block` of out equals the input of `rank` from element `first` on. */
static int block_is(const struct round* round, int block, int rank, size_t first) {
  size_t i;
  for (i = 0; i < round->count; ++i) {
    if (round->out[(size_t)block * round->count + i] != value(rank, first + i)) {
      return 0;
    }
  }
  return 1;
}

static int sums_are(const struct round* round, size_t first) {
  size_t i;
  for (i = 0; i < round->count; ++i) {
    if (round->out[i] != sum_of(round, first + i)) {
      return 0;
    }
  }
  return 1;
}

static int untouched(const struct round* round) {
  size_t i;
  for (i = 0; i < (size_t)round->n * round->count; ++i) {
    if (round->out[i] != -1.0F) {
      return 0;
    }
  }
  return 1;
}

static void check_broadcast(const struct round* r, int root) {
  fill(r);
  memcpy(r->out, r->in, r->count * sizeof(float));
  SUCCEEDS(done(
      r, r->async ? unisono_broadcast_async(r->out, r->count, UNISONO_F32, root, r->comm, &request)
                  : unisono_broadcast(r->out, r->count, UNISONO_F32, root, r->comm)));
  EXPECT(block_is(r, 0, root, 0));
}

static void check_reduce(const struct round* r, int root) {
  fill(r);
  SUCCEEDS(done(r, r->async ? unisono_reduce_async(r->in, r->out, r->count, UNISONO_F32,
                                                   UNISONO_SUM, root, r->comm, &request)
                            : unisono_reduce(r->in, r->out, r->count, UNISONO_F32, UNISONO_SUM,
                                             root, r->comm)));
  EXPECT(r->rank == root ? sums_are(r, 0) : untouched(r));
}

static void check_all_reduce(const struct round* r) {
  fill(r);
  SUCCEEDS(done(r, r->async ? unisono_all_reduce_async(r->in, r->out, r->count, UNISONO_F32,
                                                       UNISONO_SUM, r->comm, &request)
                            : unisono_all_reduce(r->in, r->out, r->count, UNISONO_F32, UNISONO_SUM,
                                                 r->comm)));
  EXPECT(sums_are(r, 0));
}

/* The result is the sum of the inputs of ranks 0 to terms-1. */
static int prefix_is(const struct round* r, int terms) {
  struct round prefix = *r;
  prefix.n = terms;
  return sums_are(&prefix, 0);
}

static void check_scans(const struct round* r) {
  fill(r);
  SUCCEEDS(done(r, r->async
                       ? unisono_scan_async(r->in, r->out, r->count, UNISONO_F32, UNISONO_SUM,
                                            r->comm, &request)
                       : unisono_scan(r->in, r->out, r->count, UNISONO_F32, UNISONO_SUM, r->comm)));
  EXPECT(prefix_is(r, r->rank + 1));
  SUCCEEDS(done(r, r->async ? unisono_exclusive_scan_async(r->in, r->out, r->count, UNISONO_F32,
                                                           UNISONO_SUM, r->comm, &request)
                            : unisono_exclusive_scan(r->in, r->out, r->count, UNISONO_F32,
                                                     UNISONO_SUM, r->comm)));
  EXPECT(prefix_is(r, r->rank));
}

static void check_scatter(const struct round* r, int root) {
  fill(r);
  SUCCEEDS(done(
      r, r->async
             ? unisono_scatter_async(r->in, r->out, r->count, UNISONO_F32, root, r->comm, &request)
             : unisono_scatter(r->in, r->out, r->count, UNISONO_F32, root, r->comm)));
  EXPECT(block_is(r, 0, root, (size_t)r->rank * r->count));
}

static void check_gather(const struct round* r, int root) {
  int rank;
  fill(r);
  SUCCEEDS(done(r, r->async ? unisono_gather_async(r->in, r->out, r->count, UNISONO_F32, root,
                                                   r->comm, &request)
                            : unisono_gather(r->in, r->out, r->count, UNISONO_F32, root, r->comm)));
  for (rank = 0; rank < r->n; ++rank) {
    EXPECT(r->rank == root ? block_is(r, rank, rank, 0) : untouched(r));
  }
}

static void check_all_gather(const struct round* r) {
  int rank;
  fill(r);
  SUCCEEDS(done(r, r->async ? unisono_all_gather_async(r->in, r->out, r->count, UNISONO_F32,
                                                       r->comm, &request)
                            : unisono_all_gather(r->in, r->out, r->count, UNISONO_F32, r->comm)));
  for (rank = 0; rank < r->n; ++rank) {
    EXPECT(block_is(r, rank, rank, 0));
  }
}

static void check_reduce_scatter(const struct round* r) {
  fill(r);
  SUCCEEDS(done(r, r->async ? unisono_reduce_scatter_async(r->in, r->out, r->count, UNISONO_F32,
                                                           UNISONO_SUM, r->comm, &request)
                            : unisono_reduce_scatter(r->in, r->out, r->count, UNISONO_F32,
                                                     UNISONO_SUM, r->comm)));
  EXPECT(sums_are(r, (size_t)r->rank * r->count));
}

static void check_all_to_all(const struct round* r) {
  int rank;
  fill(r);
  SUCCEEDS(done(r, r->async ? unisono_all_to_all_async(r->in, r->out, r->count, UNISONO_F32,
                                                       r->comm, &request)
                            : unisono_all_to_all(r->in, r->out, r->count, UNISONO_F32, r->comm)));
  for (rank = 0; rank < r->n; ++rank) {
    EXPECT(block_is(r, rank, rank, (size_t)r->rank * r->count));
  }
}

static void check_barrier(const struct round* r) {
  SUCCEEDS(done(r, r->async ? unisono_barrier_async(r->comm, &request) : unisono_barrier(r->comm)));
}

void check_v_forms(unisono_comm_t comm, size_t base, int async);

void run_collectives(unisono_comm_t comm) {
  static const size_t counts[] = {0, 1, 2, 7, 4099};
  struct round round;
  size_t i;
  round.comm = comm;
  round.rank = unisono_rank(comm);
  round.n = unisono_size(comm);
  for (i = 0; i < 2 * sizeof(counts) / sizeof(counts[0]); ++i) {
    size_t bytes;
    int root;
    round.count = counts[i / 2];
    round.async = (int)(i % 2);
    bytes = (size_t)round.n * round.count * sizeof(float);
    round.in = malloc(bytes + 1);
    round.out = malloc(bytes + 1);
    for (root = 0; root < round.n; ++root) {
      check_broadcast(&round, root);
      check_reduce(&round, root);
      check_scatter(&round, root);
      check_gather(&round, root);
    }
    check_all_reduce(&round);
    check_all_gather(&round);
    check_reduce_scatter(&round);
    check_scans(&round);
    check_all_to_all(&round);
    check_barrier(&round);
    free(round.in);
    free(round.out);
    check_v_forms(comm, counts[i / 2], (int)(i % 2));
  }
}
