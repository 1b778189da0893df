/* The v-forms of the C interface: rank i's part has base + i elements, packed or with gaps. */
#include <stdlib.h>

#include "c_program.h"

void check_v_forms(unisono_comm_t comm, size_t base, int async);

enum { kMost = 3 };

struct parts {
  unisono_comm_t comm;
  int rank;
  int n;
  int root;
  int async;
  size_t counts[kMost];
  size_t displs[kMost]; /* with a gap of one before each part */
  size_t mine;
  size_t room; /* elements of a buffer that holds all parts */
  float* in;
  float* out;
};

static unisono_request_t request = NULL;

static unisono_result_t done(const struct parts* parts, unisono_result_t started) {
  if (!parts->async || started != UNISONO_SUCCESS) {
    return started;
  }
  return unisono_wait(&request, -1);
}

static void fill(const struct parts* parts) {
  size_t i;
  for (i = 0; i < parts->room; ++i) {
    parts->in[i] = value(parts->rank, i);
    parts->out[i] = -1.0F;
  }
}

/* out[at...] equals the input of `rank` from element `first` on, after a gap. */
static int part_is(const struct parts* parts, size_t at, size_t count, int rank, size_t first) {
  size_t i;
  for (i = 0; i < count; ++i) {
    if (parts->out[at + i] != value(rank, first + i)) {
      return 0;
    }
  }
  return at == 0 || parts->out[at - 1] == -1.0F;
}

static void check_scatter_v(const struct parts* p) {
  fill(p);
  SUCCEEDS(done(p, p->async ? unisono_scatter_v_async(p->in, p->out, p->counts, p->displs,
                                                      UNISONO_F32, p->root, p->comm, &request)
                            : unisono_scatter_v(p->in, p->out, p->counts, p->displs, UNISONO_F32,
                                                p->root, p->comm)));
  EXPECT(part_is(p, 0, p->mine, p->root, p->displs[p->rank]));
  EXPECT(p->out[p->mine] == -1.0F);
}

static void check_gather_v(const struct parts* p) {
  int rank;
  fill(p);
  SUCCEEDS(done(p, p->async ? unisono_gather_v_async(p->in, p->out, p->counts, p->displs,
                                                     UNISONO_F32, p->root, p->comm, &request)
                            : unisono_gather_v(p->in, p->out, p->counts, p->displs, UNISONO_F32,
                                               p->root, p->comm)));
  for (rank = 0; rank < p->n; ++rank) {
    EXPECT(p->rank == p->root ? part_is(p, p->displs[rank], p->counts[rank], rank, 0)
                              : p->out[rank] == -1.0F);
  }
}

static void check_all_gather_v(const struct parts* p) {
  int rank;
  fill(p);
  SUCCEEDS(done(p, p->async ? unisono_all_gather_v_async(p->in, p->out, p->counts, p->displs,
                                                         UNISONO_F32, p->comm, &request)
                            : unisono_all_gather_v(p->in, p->out, p->counts, p->displs, UNISONO_F32,
                                                   p->comm)));
  for (rank = 0; rank < p->n; ++rank) {
    EXPECT(part_is(p, p->displs[rank], p->counts[rank], rank, 0));
  }
}

/* Packed, to test displs that are NULL. */
static void check_reduce_scatter_v(const struct parts* p) {
  size_t first = 0;
  size_t i;
  int rank;
  fill(p);
  SUCCEEDS(done(p, p->async
                       ? unisono_reduce_scatter_v_async(p->in, p->out, p->counts, NULL, UNISONO_F32,
                                                        UNISONO_SUM, p->comm, &request)
                       : unisono_reduce_scatter_v(p->in, p->out, p->counts, NULL, UNISONO_F32,
                                                  UNISONO_SUM, p->comm)));
  for (rank = 0; rank < p->rank; ++rank) {
    first += p->counts[rank];
  }
  for (i = 0; i < p->mine; ++i) {
    float sum = 0.0F;
    for (rank = 0; rank < p->n; ++rank) {
      sum += value(rank, first + i);
    }
    EXPECT(p->out[i] == sum);
  }
}

/* Rank i sends base + i elements to every rank. */
static void check_all_to_all_v(const struct parts* p) {
  size_t send[kMost];
  size_t send_at[kMost];
  int rank;
  for (rank = 0; rank < p->n; ++rank) {
    send[rank] = p->mine;
    send_at[rank] = (size_t)rank; /* they overlap: it is read only */
  }
  fill(p);
  SUCCEEDS(done(p, p->async ? unisono_all_to_all_v_async(p->in, send, send_at, p->out, p->counts,
                                                         p->displs, UNISONO_F32, p->comm, &request)
                            : unisono_all_to_all_v(p->in, send, send_at, p->out, p->counts,
                                                   p->displs, UNISONO_F32, p->comm)));
  for (rank = 0; rank < p->n; ++rank) {
    EXPECT(part_is(p, p->displs[rank], p->counts[rank], rank, (size_t)p->rank));
  }
}

void check_v_forms(unisono_comm_t comm, size_t base, int async) {
  struct parts parts;
  int rank;
  parts.comm = comm;
  parts.rank = unisono_rank(comm);
  parts.n = unisono_size(comm);
  parts.async = async;
  parts.room = 1;
  for (rank = 0; rank < parts.n; ++rank) {
    parts.counts[rank] = base + (size_t)rank;
    parts.displs[rank] = parts.room;
    parts.room += parts.counts[rank] + 1;
  }
  parts.mine = parts.counts[parts.rank];
  parts.room += (size_t)parts.n;
  parts.in = malloc(parts.room * sizeof(float));
  parts.out = malloc(parts.room * sizeof(float));
  for (parts.root = 0; parts.root < parts.n; ++parts.root) {
    check_scatter_v(&parts);
    check_gather_v(&parts);
  }
  check_all_gather_v(&parts);
  check_reduce_scatter_v(&parts);
  check_all_to_all_v(&parts);
  free(parts.in);
  free(parts.out);
}
