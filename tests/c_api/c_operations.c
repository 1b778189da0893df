/* What is more than one collective call: unisono_run(), plans, groups, send and recv, splitting and
 * registered memory. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "c_program.h"

static void combine_max_of_two(void* inout, const void* in, size_t count, void* context) {
  int32_t* to = inout;
  const int32_t* from = in;
  size_t i;
  for (i = 0; i < count; ++i) {
    to[i] = from[i] > to[i] ? from[i] : to[i];
  }
  *(int*)context = 1;
}

static void check_run(unisono_comm_t comm) {
  unisono_call_t call = UNISONO_CALL_INIT;
  unisono_request_t request = NULL;
  const int rank = unisono_rank(comm);
  float in[2];
  float out[2] = {0.0F, 0.0F};
  int32_t number = 7 * rank;
  int32_t most = -1;
  int called = 0;
  in[0] = (float)rank;
  in[1] = 1.0F;
  call.collective = UNISONO_ALL_REDUCE;
  call.dtype = UNISONO_F32;
  call.op = UNISONO_PREMUL_SUM;
  call.factor = 0.5;
  call.in = in;
  call.out = out;
  call.count = 2;
  call.algorithm = "recursive_doubling";
  SUCCEEDS(unisono_run(&call, comm));
  EXPECT(out[0] == 1.5F && out[1] == 1.5F);

  call.dtype = UNISONO_I32;
  call.op = UNISONO_USER;
  call.combine = combine_max_of_two;
  call.context = &called;
  call.in = &number;
  call.out = &most;
  call.count = 1;
  SUCCEEDS(unisono_run_async(&call, comm, &request));
  SUCCEEDS(unisono_wait(&request, 30000));
  EXPECT(request == NULL);
  EXPECT(most == 14);
  /* Some ranks make separate calls instead of combining them. */
  SUCCEEDS(unisono_all_reduce(&called, &called, 1, UNISONO_I32, UNISONO_SUM, comm));
  EXPECT(called >= 1);
}

/* The sum of an average of integers does not wrap. */
static void check_averages(unisono_comm_t comm) {
  int8_t bytes[3] = {100, -100, 127};
  uint32_t words[2] = {4294967295U, 1};
  unisono_request_t request = NULL;
  words[1] = unisono_rank(comm) == 0 ? 2 : 3; /* 2, 3, 3: truncated */
  SUCCEEDS(unisono_all_reduce(bytes, bytes, 3, UNISONO_I8, UNISONO_AVG, comm));
  EXPECT(bytes[0] == 100 && bytes[1] == -100 && bytes[2] == 127);
  SUCCEEDS(unisono_all_reduce_async(words, words, 2, UNISONO_U32, UNISONO_AVG, comm, &request));
  SUCCEEDS(unisono_wait(&request, -1));
  EXPECT(words[0] == 4294967295U && words[1] == 2);
}

static void check_plan(unisono_comm_t comm) {
  unisono_call_t call = UNISONO_CALL_INIT;
  unisono_plan_t plan = NULL;
  unisono_request_t request = NULL;
  size_t* counts = malloc(3 * sizeof(size_t));
  int64_t in = unisono_rank(comm);
  int64_t out[3];
  int turn;
  counts[0] = counts[1] = counts[2] = 1;
  call.collective = UNISONO_ALL_GATHER_V;
  call.dtype = UNISONO_I64;
  call.in = &in;
  call.out = out;
  call.counts = counts;
  call.algorithm = "ring";
  SUCCEEDS(unisono_plan(&call, comm, &plan));
  free(counts); /* the plan owns a copy */
  memset(&call, 0xff, sizeof(call));
  EXPECT(strcmp(unisono_plan_algorithm(plan), "ring") == 0);
  for (turn = 0; turn < 4; ++turn) {
    SUCCEEDS(unisono_label(turn % 2 == 0 ? "even" : NULL, comm));
    in = 10 * turn + unisono_rank(comm);
    out[0] = out[1] = out[2] = -1;
    if (turn % 2 == 0) {
      SUCCEEDS(unisono_plan_start(plan));
    } else {
      SUCCEEDS(unisono_plan_start_async(plan, &request));
      SUCCEEDS(unisono_wait(&request, -1));
    }
    EXPECT(out[0] == 10 * turn && out[1] == 10 * turn + 1 && out[2] == 10 * turn + 2);
  }
  SUCCEEDS(unisono_plan_free(&plan));
  EXPECT(plan == NULL);
  SUCCEEDS(unisono_plan_free(&plan));
}

struct grouped {
  unisono_comm_t comm;
  float a[2];
  float b[3];
  int32_t token;
  unisono_result_t end_with;
};

static unisono_result_t start_group(void* context) {
  struct grouped* g = context;
  const int right = (unisono_rank(g->comm) + 1) % unisono_size(g->comm);
  const int left = (unisono_rank(g->comm) + unisono_size(g->comm) - 1) % unisono_size(g->comm);
  unisono_request_t request = (unisono_request_t)(void*)g; /* anything but NULL */
  SUCCEEDS(unisono_all_reduce_async(g->a, g->a, 2, UNISONO_F32, UNISONO_SUM, g->comm, NULL));
  SUCCEEDS(unisono_all_reduce_async(g->b, g->b, 3, UNISONO_F32, UNISONO_SUM, g->comm, &request));
  EXPECT(request == NULL);
  SUCCEEDS(unisono_send_async(&g->comm, 0, right, 1, g->comm, NULL));
  SUCCEEDS(unisono_recv_async(&g->token, 0, left, 1, g->comm, NULL));
  return g->end_with;
}

static void check_group(unisono_comm_t comm) {
  struct grouped g;
  int i;
  g.comm = comm;
  g.end_with = UNISONO_SUCCESS;
  for (i = 0; i < 3; ++i) {
    g.a[i % 2] = 1.0F;
    g.b[i] = 2.0F;
  }
  SUCCEEDS(unisono_group(start_group, &g, comm));
  EXPECT(g.a[0] == 3.0F && g.a[1] == 3.0F);
  EXPECT(g.b[0] == 6.0F && g.b[2] == 6.0F);
  g.end_with = UNISONO_CORRUPT;
  EXPECT(unisono_group(start_group, &g, comm) == UNISONO_CORRUPT);
  EXPECT(g.a[0] == 3.0F); /* nothing was started */
}

static void check_send_recv(unisono_comm_t comm) {
  enum { kLong = 100000 };
  const int rank = unisono_rank(comm);
  const int n = unisono_size(comm);
  const int right = (rank + 1) % n;
  const int left = (rank + n - 1) % n;
  char* out = malloc(kLong);
  char* in = malloc(kLong + 1);
  unisono_request_t sent = NULL;
  unisono_request_t received = NULL;
  int32_t number = rank;
  int32_t theirs = -1;
  int ended = 0;
  size_t bytes = 0;
  int source = -1;
  memset(out, 'a' + rank, kLong);
  SUCCEEDS(unisono_recv_async(in, kLong + 1, UNISONO_ANY_SOURCE, 5, comm, &received));
  SUCCEEDS(unisono_send_async(out, kLong, right, 5, comm, &sent));
  while (!ended) {
    SUCCEEDS(unisono_test(received, &ended));
  }
  SUCCEEDS(unisono_wait_received(&received, -1, &bytes, &source));
  EXPECT(received == NULL && bytes == kLong && source == left);
  SUCCEEDS(unisono_wait(&sent, -1));
  EXPECT(in[0] == 'a' + left && in[kLong - 1] == 'a' + left);
  SUCCEEDS(unisono_send(&number, sizeof(number), right, 0, -1, comm));
  SUCCEEDS(unisono_recv(&theirs, sizeof(theirs), left, 0, -1, comm, NULL, NULL));
  EXPECT(theirs == left);
  SUCCEEDS(unisono_send(&number, 2, right, 0, 0, comm));
  SUCCEEDS(unisono_recv(&theirs, sizeof(theirs), UNISONO_ANY_SOURCE, 0, 0, comm, &bytes, &source));
  EXPECT(bytes == 2 && source == left);
  SUCCEEDS(unisono_send_async(&number, 1, right, 0, comm, &sent));
  SUCCEEDS(unisono_recv(&theirs, 1, left, 0, -1, comm, NULL, NULL));
  FAILS(unisono_wait_received(&sent, -1, &bytes, &source), UNISONO_USAGE,
        "usage: only a receive has a source and a length\ncall source() and received() on the "
        "request of recv_async()");
  EXPECT(sent == NULL);
  free(out);
  free(in);
}

static void check_version(void) {
  char text[32];
  snprintf(text, sizeof(text), "%d.%d.%d", UNISONO_VERSION_NUMBER / 10000,
           UNISONO_VERSION_NUMBER / 100 % 100, UNISONO_VERSION_NUMBER % 100);
  EXPECT(strcmp(text, unisono_version()) == 0);
}

static void check_split(unisono_comm_t comm) {
  const int rank = unisono_rank(comm);
  unisono_comm_t group = comm;
  int32_t sum = rank;
  /* Ranks 0 and 2, in reverse order; rank 1 is in no group. */
  SUCCEEDS(unisono_split(rank == 1 ? -1 : 4, -rank, comm, &group));
  if (rank == 1) {
    EXPECT(group == NULL);
    EXPECT(unisono_size(group) == 0 && unisono_rank(group) == -1);
  } else {
    EXPECT(unisono_size(group) == 2);
    EXPECT(unisono_rank(group) == (rank == 2 ? 0 : 1));
    SUCCEEDS(unisono_all_reduce(&sum, &sum, 1, UNISONO_I32, UNISONO_SUM, group));
    EXPECT(sum == 2);
  }
  SUCCEEDS(unisono_comm_free(&group));
  SUCCEEDS(unisono_comm_free(&group));
}

static void check_subgroup(unisono_comm_t comm) {
  const int members[2] = {2, 0};
  const int rank = unisono_rank(comm);
  unisono_comm_t group = NULL;
  int32_t sum = rank + 1;
  if (rank != 1) {
    SUCCEEDS(unisono_subgroup(members, 2, 77, comm, &group));
    EXPECT(unisono_rank(group) == (rank == 2 ? 0 : 1));
    SUCCEEDS(unisono_all_reduce(&sum, &sum, 1, UNISONO_I32, UNISONO_SUM, group));
    EXPECT(sum == 4);
    SUCCEEDS(unisono_comm_free(&group));
  }
  EXPECT(unisono_local_rank(comm) == rank && unisono_local_size(comm) == unisono_size(comm));
}

static void check_explain(unisono_comm_t comm) {
  unisono_call_t call = UNISONO_CALL_INIT;
  char text[4096] = "";
  char cut[5] = "";
  size_t length = 0;
  call.collective = UNISONO_ALL_REDUCE;
  call.count = 1000;
  call.dtype = UNISONO_F32;
  call.algorithm = "ring";
  SUCCEEDS(unisono_explain(&call, comm, NULL, 0, &length));
  EXPECT(length > 1 && length < sizeof(text));
  SUCCEEDS(unisono_explain(&call, comm, text, sizeof(text), NULL));
  EXPECT(strlen(text) + 1 == length && strstr(text, "ring") != NULL);
  SUCCEEDS(unisono_explain(&call, comm, cut, sizeof(cut), NULL));
  EXPECT(strlen(cut) == 4 && strncmp(cut, text, 4) == 0);
}

static void check_registered(unisono_comm_t comm) {
  enum { kCount = 20000 };
  const size_t bytes = kCount * sizeof(float);
  unisono_region_t allocated = NULL;
  unisono_region_t registered = NULL;
  float* ordinary = malloc(bytes);
  float* in;
  int i;
  SUCCEEDS(unisono_allocate(bytes, comm, &allocated));
  EXPECT(unisono_region_bytes(allocated) == bytes);
  in = unisono_region_address(allocated);
  EXPECT(in[0] == 0.0F && in[kCount - 1] == 0.0F);
  SUCCEEDS(unisono_register_buffer(ordinary, bytes, comm, &registered));
  EXPECT(unisono_region_bytes(registered) <= bytes);
  EXPECT((char*)unisono_region_address(registered) >= (char*)ordinary);
  for (i = 0; i < kCount; ++i) {
    in[i] = (float)(i % 1000);
  }
  SUCCEEDS(unisono_all_reduce(in, ordinary, kCount, UNISONO_F32, UNISONO_SUM, comm));
  SUCCEEDS(unisono_barrier(comm)); /* nobody reads the memory any more */
  SUCCEEDS(unisono_region_free(&registered));
  SUCCEEDS(unisono_region_free(&allocated));
  EXPECT(allocated == NULL && registered == NULL);
  for (i = 0; i < kCount; ++i) {
    EXPECT(ordinary[i] == (float)(3 * (i % 1000)));
  }
  free(ordinary);
}

static void check_statistics(unisono_comm_t comm) {
  unisono_statistics_t before = UNISONO_STATISTICS_INIT;
  unisono_statistics_t after = UNISONO_STATISTICS_INIT;
  double waiting_for_s[3] = {-1.0, -1.0, -1.0};
  unsigned long long in_histogram = 0;
  float x[4] = {0};
  int i;
  SUCCEEDS(unisono_statistics("reduce", comm, &before, waiting_for_s));
  EXPECT(before.calls == 0 && waiting_for_s[0] == 0.0 && waiting_for_s[2] == 0.0);
  for (i = 0; i < 5; ++i) {
    SUCCEEDS(unisono_reduce(x, x, 4, UNISONO_F32, UNISONO_SUM, 0, comm));
  }
  SUCCEEDS(unisono_statistics("reduce", comm, &after, NULL));
  EXPECT(after.calls == 5 && after.bytes == 5 * sizeof(x));
  for (i = 0; i < 24; ++i) {
    in_histogram += after.skew[i];
  }
  EXPECT(in_histogram == 5);
  EXPECT(unisono_statistics("reduced", comm, &after, NULL) == UNISONO_USAGE);
  after.struct_size = 4;
  FAILS(unisono_statistics("reduce", comm, &after, NULL), UNISONO_USAGE,
        "usage: struct_size is 4\nstart from UNISONO_STATISTICS_INIT");
}

void run_operations(unisono_comm_t comm) {
  check_run(comm);
  check_averages(comm);
  check_plan(comm);
  check_group(comm);
  check_send_recv(comm);
  check_split(comm);
  check_subgroup(comm);
  check_explain(comm);
  check_version();
  check_registered(comm);
  check_statistics(comm);
}
