/* Mistakes through the C interface: the exact code and text of each. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "c_program.h"

/* The text with this rank's number instead of %d. */
static const char* on_rank(unisono_comm_t comm, const char* format) {
  static char text[512];
  const char* place = strstr(format, "%d");
  snprintf(text, sizeof(text), "%.*s%d%s", (int)(place - format), format, unisono_rank(comm),
           place + 2);
  return text;
}

static const char* const kNoComm =
    "usage: the communicator is NULL\nit was never connected, was freed, or unisono_split() "
    "gave no group for a negative color";

static void check_handles(unisono_comm_t comm) {
  unisono_request_t request = NULL;
  unisono_comm_t none = NULL;
  float x = 0.0F;
  int ended = 0;
  FAILS(unisono_all_reduce(&x, &x, 1, UNISONO_F32, UNISONO_SUM, NULL), UNISONO_USAGE, kNoComm);
  FAILS(unisono_split(0, 0, none, &none), UNISONO_USAGE, kNoComm);
  FAILS(unisono_barrier_async(comm, NULL), UNISONO_USAGE,
        "usage: `request` is NULL\npass the address of the variable that holds it");
  SUCCEEDS(unisono_barrier_async(comm, &request));
  SUCCEEDS(unisono_wait(&request, -1));
  FAILS(unisono_wait(&request, -1), UNISONO_USAGE,
        "usage: the request is NULL\nit has been waited for already, was never started, or belongs "
        "to a group");
  FAILS(unisono_test(request, &ended), UNISONO_USAGE,
        "usage: the request is NULL\nit has been waited for already, was never started, or belongs "
        "to a group");
  FAILS(unisono_plan_start(NULL), UNISONO_USAGE,
        "usage: the plan is NULL\nit was never created, or was freed");
  FAILS(unisono_group(NULL, NULL, comm), UNISONO_USAGE,
        "usage: `body` is NULL\npass the function that starts the operations");
}

static void check_arguments(unisono_comm_t comm) {
  float x[8] = {0};
  const size_t counts[3] = {1, 1, (size_t)-1};
  FAILS(unisono_broadcast(x, 1, UNISONO_F32, 3, comm), UNISONO_USAGE,
        on_rank(comm, "usage: broadcast on rank %d: root 3 is not a rank\nranks are 0 to 2"));
  FAILS(unisono_all_reduce(NULL, x, 1, UNISONO_F32, UNISONO_SUM, comm), UNISONO_USAGE,
        on_rank(comm,
                "usage: all_reduce on rank %d: `in` is null, but 4 bytes are read from it\n"
                "pass the buffer, or a count of 0"));
  FAILS(
      unisono_all_reduce(x, x + 1, 4, UNISONO_F32, UNISONO_SUM, comm), UNISONO_USAGE,
      on_rank(comm,
              "usage: all_reduce on rank %d: `in` and `out` overlap, but not as the in-place rule "
              "allows\nuse disjoint buffers; unisono/rules.h has the in-place rule"));
  FAILS(unisono_all_reduce(x, x, 1, UNISONO_F32, UNISONO_BAND, comm), UNISONO_USAGE,
        on_rank(comm,
                "usage: all_reduce on rank %d: band of f32 is not defined\n"
                "`unisono list --dtypes` lists the defined pairs"));
  FAILS(unisono_all_gather_v(x, x, NULL, NULL, UNISONO_F32, comm), UNISONO_USAGE,
        on_rank(comm,
                "usage: all_gather_v on rank %d: counts has 0 entries for 3 ranks\n"
                "give one for each rank"));
  FAILS(unisono_all_gather_v(x, x, counts, NULL, UNISONO_F32, comm), UNISONO_USAGE,
        on_rank(comm,
                "usage: all_gather_v on rank %d: more elements than memory can hold\n"
                "check the counts for negative numbers"));
  FAILS(unisono_send(x, 4, -1, 0, -1, comm), UNISONO_USAGE,
        on_rank(comm, "usage: send on rank %d: -1 is not a rank\nranks are 0 to 2"));
  FAILS(unisono_register_buffer(NULL, 8192, comm, NULL), UNISONO_USAGE,
        "usage: `region` is NULL\npass the address of the variable that holds it");
}

/* Values outside the enumeration, including those that would wrap to a valid one. */
static void check_enumerations(unisono_comm_t comm) {
  float x = 0.0F;
  FAILS(
      unisono_all_reduce(&x, &x, 1, (unisono_dtype_t)256, UNISONO_SUM, comm), UNISONO_USAGE,
      "usage: 256 is not a unisono_dtype_t\nuse the values of the enumeration in unisono/types.h");
  FAILS(unisono_all_reduce(&x, &x, 1, UNISONO_F32, (unisono_op_t)-1, comm), UNISONO_USAGE,
        "usage: -1 is not a unisono_op_t\nuse the values of the enumeration in unisono/types.h");
  FAILS(unisono_all_reduce(&x, &x, 1, UNISONO_F32, UNISONO_PREMUL_SUM, comm), UNISONO_USAGE,
        "usage: premul_sum needs a factor\nset it in a unisono_call_t, and use unisono_run()");
  FAILS(unisono_all_reduce(&x, &x, 1, UNISONO_F32, UNISONO_USER, comm), UNISONO_USAGE,
        "usage: user needs a function\nset it in a unisono_call_t, and use unisono_run()");
  EXPECT(unisono_dtype_bytes((unisono_dtype_t)13) == 0);
  EXPECT(unisono_dtype_bytes(UNISONO_BF16) == 2);
  EXPECT(strcmp(unisono_result_name((unisono_result_t)12), "unknown") == 0);
  EXPECT(strcmp(unisono_result_name((unisono_result_t)-1), "unknown") == 0);
}

static void check_calls(unisono_comm_t comm) {
  unisono_call_t call = UNISONO_CALL_INIT;
  unisono_plan_t plan = NULL;
  float x = 0.0F;
  FAILS(unisono_run(NULL, comm), UNISONO_USAGE,
        "usage: `call` is NULL\npass the address of the variable that holds it");
  call.struct_size = 0;
  FAILS(unisono_run(&call, comm), UNISONO_USAGE,
        "usage: struct_size is 0\nstart from UNISONO_CALL_INIT");
  call.struct_size = sizeof(call);
  call.reserved = 1;
  FAILS(unisono_run(&call, comm), UNISONO_USAGE,
        "usage: `reserved` is not 0\nstart from UNISONO_CALL_INIT");
  call.reserved = 0;
  call.collective = UNISONO_ALL_REDUCE;
  call.dtype = UNISONO_F32;
  call.op = UNISONO_USER;
  call.in = call.out = &x;
  call.count = 1;
  FAILS(unisono_plan(&call, comm, &plan), UNISONO_USAGE,
        on_rank(comm,
                "usage: all_reduce on rank %d: the user-defined operation has no function\n"
                "set `combine` to the function that combines two vectors"));
  EXPECT(plan == NULL);
}

static unisono_result_t block_in_group(void* comm) {
  return unisono_barrier((unisono_comm_t)comm);
}

void run_mistakes(unisono_comm_t comm) {
  unisono_connect_options_t options = UNISONO_CONNECT_OPTIONS_INIT;
  unisono_comm_t other = comm;
  check_handles(comm);
  check_arguments(comm);
  check_enumerations(comm);
  check_calls(comm);
  FAILS(unisono_group(block_in_group, comm, comm), UNISONO_USAGE,
        "usage: a blocking call inside group()\nuse the async form there: group() waits for all of "
        "them");
  options.max_error = 0.001;
  FAILS(unisono_connect(&options, &other), UNISONO_CONFIG,
        "config: max_error for all calls is 0.001\nset UNISONO_MAX_ERROR, or the option "
        "`max_error`, to 0 for exact results, or to at least 0.003");
  options.max_error = -1;
  options.transport = (unisono_transport_t)3;
  FAILS(unisono_connect(&options, &other), UNISONO_CONFIG,
        "config: 3 is not a unisono_transport_t\nuse the values of the enumeration in "
        "unisono/types.h");
  options.transport = UNISONO_TRANSPORT_UNSET;
  options.wait_spin = -2;
  FAILS(unisono_connect(&options, &other), UNISONO_CONFIG,
        "config: the option `wait` has -2\ngive numbers from 0 to 1000000000, or -1 for unset");
  options.struct_size = 4;
  FAILS(unisono_connect(&options, &other), UNISONO_USAGE,
        "usage: struct_size is 4\nstart from UNISONO_CONNECT_OPTIONS_INIT");
  EXPECT(other == NULL);
  SUCCEEDS(unisono_barrier(comm)); /* none of this has hurt the communicator */
}

void run_mismatch(unisono_comm_t comm) {
  static const char* const kText =
      "mismatch: operation #1: rank 0 calls all_reduce f32 sum, count 4 (one_shot); rank 1 calls "
      "all_reduce f32 sum, count 5 (one_shot)\nall ranks must make the same calls in the same "
      "order";
  float x[5] = {0};
  const size_t count = unisono_rank(comm) == 0 ? 4 : 5;
  int late[8] = {-1};
  int late_count = -1;
  SUCCEEDS(unisono_late_ranks(comm, late, &late_count));
  EXPECT(late_count == 0);
  FAILS(unisono_late_ranks(comm, NULL, &late_count), UNISONO_USAGE,
        "usage: `ranks` is NULL\npass the address of the variable that holds it");
  FAILS(unisono_all_reduce(x, x, count, UNISONO_F32, UNISONO_SUM, comm), UNISONO_MISMATCH, kText);
  FAILS(unisono_barrier(comm), UNISONO_MISMATCH, kText); /* and from now on */
}

void run_abort(unisono_comm_t comm) {
  static const char* const kText = "aborted: rank 1 called abort(): no more data";
  unisono_request_t request = NULL;
  unisono_result_t failure = UNISONO_INTERNAL;
  SUCCEEDS(unisono_failure(comm, &failure));
  EXPECT(failure == UNISONO_SUCCESS || unisono_rank(comm) != 1); /* rank 1 is to do it yet */
  if (unisono_rank(comm) == 1) {
    SUCCEEDS(unisono_abort("no more data", comm));
    FAILS(unisono_barrier_async(comm, &request), UNISONO_ABORTED, kText);
    EXPECT(request == NULL);
  } else {
    FAILS(unisono_barrier(comm), UNISONO_ABORTED, kText);
  }
  SUCCEEDS(unisono_failure(comm, &failure));
  FAILS(failure, UNISONO_ABORTED, kText);
  FAILS(unisono_failure(NULL, &failure), UNISONO_USAGE,
        "usage: the communicator is NULL\nit was never connected, was freed, or unisono_split() "
        "gave no group for a negative color");
}

/* A dead rank is named without any operation. */
void run_failure(unisono_comm_t comm) {
  const struct timespec pause = {0, 1000000};
  const struct timespec until_others_are_through = {0, 200000000};
  unisono_comm_t left = NULL;
  unisono_request_t request = NULL;
  unisono_result_t failure = UNISONO_INTERNAL;
  int late[8] = {-1};
  int late_count = -1;
  int tries;
  SUCCEEDS(unisono_failure(comm, &failure));
  EXPECT(failure == UNISONO_SUCCESS);
  SUCCEEDS(unisono_barrier(comm));
  if (unisono_rank(comm) == 0) {
    SUCCEEDS(unisono_barrier_async(comm, &request));
    SUCCEEDS(unisono_late_ranks(comm, late, &late_count));
    EXPECT(late_count > 0 && late[late_count - 1] == 2); /* who never calls it */
  }
  if (unisono_rank(comm) == 2) {
    nanosleep(&until_others_are_through, NULL);
    _exit(0); /* without leaving in order */
  }
  for (tries = 0; tries < 60000 && failure == UNISONO_SUCCESS; ++tries) {
    SUCCEEDS(unisono_failure(comm, &failure));
    nanosleep(&pause, NULL);
  }
  EXPECT(failure == UNISONO_PEER_LOST);
  EXPECT(strncmp(unisono_last_error(), "peer_lost: rank 2 (pid ", 23) == 0);
  if (request != NULL) {
    EXPECT(unisono_wait(&request, -1) == UNISONO_PEER_LOST);
  }
  SUCCEEDS(unisono_shrink(-1, 1, comm, &left));
  SUCCEEDS(unisono_failure(left, &failure));
  EXPECT(failure == UNISONO_SUCCESS);
  SUCCEEDS(unisono_barrier(left));
  run_experts_after_shrink(left);
  SUCCEEDS(unisono_comm_free(&left));
}
