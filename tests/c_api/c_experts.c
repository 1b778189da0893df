/* Experts from C: rank r holds experts 2r and 2r + 1, which add their number to a row. */
#include "unisono/experts.h"

#include <string.h>

#include "c_program.h"

enum { kMost = 64 };

enum { kBlocking, kAsync };

static void round_trip(unisono_comm_t comm, unisono_expert_exchange_t exchange, int form) {
  const int ranks = unisono_size(comm);
  const float token = value(unisono_rank(comm), 0);
  const int32_t chosen[2] = {unisono_rank(comm), 2 * ranks - 1};
  const int64_t chosen_i64[2] = {chosen[0], chosen[1]};
  const float weights[2] = {1.0F, 2.0F};
  unisono_routing_t routing = NULL;
  unisono_routing_shape_t shape = UNISONO_ROUTING_SHAPE_INIT;
  unisono_request_t request = NULL;
  float rows[kMost];
  float out = -1.0F;
  size_t i;
  SUCCEEDS(form == kAsync ? unisono_route_i64(chosen_i64, 1, exchange, &routing)
                          : unisono_route(chosen, 1, exchange, &routing));
  SUCCEEDS(unisono_get_routing_shape(routing, &shape));
  EXPECT(shape.tokens == 1 && shape.rows <= kMost && shape.experts_here == 2);
  EXPECT(shape.numbers_here[1] == 2 * unisono_rank(comm) + 1);
  EXPECT(shape.rows_of_ranks[unisono_rank(comm)] == (int64_t)shape.rows);
  EXPECT(shape.chosen[2 * ranks - 1] >= ranks);
  {
    unisono_payload_t payload = UNISONO_PAYLOAD_INIT;
    unisono_combine_rows_t combine = UNISONO_COMBINE_ROWS_INIT;
    payload.in = &token;
    payload.out = rows;
    payload.row_bytes = sizeof token;
    combine.rows = rows;
    combine.out = &out;
    combine.dtype = UNISONO_F32;
    combine.hidden = 1;
    combine.weights = weights;
    combine.residual = &token;
    if (form == kAsync) {
      SUCCEEDS(unisono_dispatch_async(routing, &payload, 1, exchange, &request));
      SUCCEEDS(unisono_wait(&request, -1));
    } else {
      SUCCEEDS(unisono_dispatch(routing, &payload, 1, exchange));
    }
    for (i = 0; i < shape.rows; ++i) {
      EXPECT(rows[i] == value(shape.source_ranks[i], 0) && shape.source_tokens[i] == 0);
      EXPECT(shape.source_slots[i] == (2 * unisono_rank(comm) + shape.experts[i] == 2 * ranks - 1));
      rows[i] += (float)(2 * unisono_rank(comm) + shape.experts[i]);
    }
    if (form == kAsync) {
      SUCCEEDS(unisono_combine_async(routing, &combine, exchange, &request));
      SUCCEEDS(unisono_wait(&request, -1));
    } else {
      SUCCEEDS(unisono_combine(routing, &combine, exchange));
    }
  }
  EXPECT(out == token + (token + (float)chosen[0]) + 2.0F * (token + (float)chosen[1]));
  {
    float rows_gradient[kMost];
    float weights_gradient[2] = {-1.0F, -1.0F};
    unisono_combine_gradient_t gradient = UNISONO_COMBINE_GRADIENT_INIT;
    gradient.out_gradient = &token;
    gradient.rows_gradient = rows_gradient;
    gradient.dtype = UNISONO_F32;
    gradient.hidden = 1;
    gradient.weights = weights;
    gradient.rows = rows;
    gradient.weights_gradient = weights_gradient;
    SUCCEEDS(unisono_combine_backward(routing, &gradient, exchange));
    EXPECT(weights_gradient[1] == token * (token + (float)chosen[1]));
    gradient.weights = NULL;
    SUCCEEDS(unisono_combine_backward(routing, &gradient, exchange));
    EXPECT(shape.rows == 0 || rows_gradient[0] == value(shape.source_ranks[0], 0));
  }
  SUCCEEDS(unisono_routing_free(&routing));
  EXPECT(routing == NULL);
}

/* Addresses of rows in the memory of their ranks. */
static void gather(unisono_comm_t comm, unisono_expert_exchange_t exchange) {
  const int32_t chosen[2] = {2 * unisono_size(comm) - 1, 0};
  unisono_routing_t routing = NULL;
  unisono_routing_shape_t shape = UNISONO_ROUTING_SHAPE_INIT;
  unisono_region_t region = NULL;
  const void* rows[kMost];
  float here = 0.0F;
  size_t i;
  SUCCEEDS(unisono_route(chosen, 1, exchange, &routing));
  SUCCEEDS(unisono_get_routing_shape(routing, &shape));
  if (unisono_size(comm) > 1) {
    EXPECT(unisono_gather_list(routing, &here, sizeof here, rows, exchange) == UNISONO_USAGE);
  }
  SUCCEEDS(unisono_allocate(sizeof(float), comm, &region));
  *(float*)unisono_region_address(region) = value(unisono_rank(comm), 3);
  SUCCEEDS(
      unisono_gather_list(routing, unisono_region_address(region), sizeof(float), rows, exchange));
  for (i = 0; i < shape.rows; ++i) {
    EXPECT(*(const float*)rows[i] == value(shape.source_ranks[i], 3));
  }
  SUCCEEDS(unisono_end_gather(exchange));
  SUCCEEDS(unisono_region_free(&region));
  SUCCEEDS(unisono_routing_free(&routing));
}

/* Expert 0 is on every rank; with several ranks, one can be masked. */
static void mask(unisono_comm_t comm) {
  const int out = unisono_size(comm) - 1;
  unisono_expert_exchange_options_t options = UNISONO_EXPERT_EXCHANGE_OPTIONS_INIT;
  unisono_expert_exchange_t exchange = NULL;
  int experts[kMost] = {0};
  int counts[kMost];
  int ranks[kMost] = {-1};
  size_t count = 9;
  int i;
  for (i = 0; i < unisono_size(comm); ++i) {
    counts[i] = 1;
  }
  options.experts = 1;
  options.experts_of_ranks = experts;
  options.counts = counts;
  SUCCEEDS(unisono_expert_exchange_create(&options, comm, &exchange));
  SUCCEEDS(unisono_masked(ranks, &count, exchange));
  EXPECT(count == 0);
  if (out > 0) {
    SUCCEEDS(unisono_mask(&out, unisono_rank(comm) == 0 ? 1 : 0, exchange));
    SUCCEEDS(unisono_masked(ranks, &count, exchange));
    EXPECT(count == 1 && ranks[0] == out);
  }
  SUCCEEDS(unisono_expert_exchange_free(&exchange));
  EXPECT(unisono_experts_after_shrink(&options, unisono_size(comm), comm, experts, counts) ==
         UNISONO_USAGE); /* it was not shrunk */
}

static void balance(void) {
  const double loads[3] = {6, 2, 1};
  const int before[3] = {0, 1, 2};
  const int counts_before[2] = {2, 1};
  const int counts_after[2] = {2, 2};
  int experts[4] = {-1, -1, -1, -1};
  double load[2] = {0, 0};
  unisono_expert_move_t moves[2];
  size_t bytes[4];
  size_t count = 0;
  SUCCEEDS(unisono_balance_experts(loads, 3, 2, 4, 1, 1, experts, load));
  EXPECT(load[0] + load[1] == 9 && (load[0] == 4 || load[0] == 5));
  EXPECT((experts[0] == 0 || experts[1] == 0) && (experts[2] == 0 || experts[3] == 0));
  EXPECT(unisono_balance_experts(loads, 3, 2, 3, 1, 1, experts, NULL) == UNISONO_USAGE);
  experts[0] = experts[2] = 0;
  experts[1] = 1;
  experts[3] = 2;
  SUCCEEDS(
      unisono_find_expert_moves(before, counts_before, experts, counts_after, 2, NULL, &count));
  EXPECT(count == 1);
  SUCCEEDS(
      unisono_find_expert_moves(before, counts_before, experts, counts_after, 2, moves, &count));
  EXPECT(count == 1 && moves[0].expert == 0 && moves[0].from == 0 && moves[0].to == 1);
  SUCCEEDS(unisono_bytes_of_moves(moves, 1, 2, 8, bytes));
  EXPECT(bytes[0] == 0 && bytes[1] == 8 && bytes[2] == 0 && bytes[3] == 0);
}

/* Each rank passes its expert to the next, into the memory of the outgoing expert. */
static void move(unisono_comm_t comm) {
  const int ranks = unisono_size(comm);
  const int rank = unisono_rank(comm);
  const int before = (rank + ranks - 1) % ranks;
  unisono_expert_move_t moves[64];
  const void* held[64] = {NULL};
  void* placed[64] = {NULL};
  double weights[2];
  int i;
  if (ranks < 2 || ranks > 64) {
    return;
  }
  weights[0] = rank;
  weights[1] = -rank;
  for (i = 0; i < ranks; ++i) {
    moves[i].expert = moves[i].from = i;
    moves[i].to = (i + 1) % ranks;
  }
  held[rank] = placed[before] = weights;
  SUCCEEDS(unisono_move_experts(moves, (size_t)ranks, sizeof(weights), held, placed, comm));
  EXPECT(weights[0] == before && weights[1] == -before);
  if (rank == 1) {
    placed[before] = NULL;
  }
  EXPECT(unisono_move_experts(moves, (size_t)ranks, sizeof(weights), held, placed, comm) ==
         UNISONO_USAGE);
  EXPECT(strstr(unisono_last_error(), "move_experts() of rank 1") != NULL);
  EXPECT(strstr(unisono_last_error(), "placed[0]") != NULL);
  EXPECT(weights[0] == before && weights[1] == -before);
}

void run_experts(unisono_comm_t comm) {
  unisono_expert_exchange_options_t options = UNISONO_EXPERT_EXCHANGE_OPTIONS_INIT;
  unisono_expert_exchange_t exchange = NULL;
  unisono_routing_t routing = NULL;
  const int32_t wrong[2] = {0, 1000};
  size_t max_tokens = 0;
  size_t max_rows = 0;
  options.experts = 2 * unisono_size(comm);
  options.k = 2;
  options.max_tokens = 3;
  options.row_bytes = sizeof(float);
  SUCCEEDS(unisono_expert_exchange_create(&options, comm, &exchange));
  SUCCEEDS(unisono_expert_exchange_limits(exchange, &max_tokens, &max_rows));
  EXPECT(max_tokens == 3 && max_rows == (size_t)(3 * 2 * unisono_size(comm)));
  round_trip(comm, exchange, kBlocking);
  EXPECT(unisono_route(wrong, 1, exchange, &routing) == UNISONO_USAGE && routing == NULL);
  round_trip(comm, exchange, kAsync);
  gather(comm, exchange);
  mask(comm);
  balance();
  move(comm);
  SUCCEEDS(unisono_mask(NULL, 0, exchange));
  SUCCEEDS(unisono_mask_for(NULL, 0, 2, exchange));
  EXPECT(unisono_mask_for(NULL, 0, 0, exchange) == UNISONO_USAGE);
  SUCCEEDS(unisono_expert_exchange_free(&exchange));
  options.layout = 7;
  FAILS(unisono_expert_exchange_create(&options, comm, &exchange), UNISONO_USAGE,
        "usage: layout is 7\ngive UNISONO_EXPERT_MAJOR or another layout of the enumeration");
}

void run_experts_after_shrink(unisono_comm_t left) {
  const int before[6] = {0, 1, 1, 2, 2, 0};
  const int alone[3] = {0, 1, 2};
  const int counts_before[3] = {2, 2, 2};
  const int counts_alone[3] = {1, 1, 1};
  unisono_expert_exchange_options_t options = UNISONO_EXPERT_EXCHANGE_OPTIONS_INIT;
  unisono_expert_exchange_t exchange = NULL;
  int experts[6] = {-1, -1, -1, -1, -1, -1};
  int counts[2] = {-1, -1};
  options.experts = 3;
  options.experts_of_ranks = before;
  options.counts = counts_before;
  SUCCEEDS(unisono_experts_after_shrink(&options, 3, left, experts, counts));
  EXPECT(counts[0] == 2 && counts[1] == 2 && memcmp(experts, before, 4 * sizeof(int)) == 0);
  EXPECT(experts[4] == -1);
  options.experts_of_ranks = experts;
  options.counts = counts;
  SUCCEEDS(unisono_expert_exchange_create(&options, left, &exchange));
  SUCCEEDS(unisono_expert_exchange_free(&exchange));
  options.experts_of_ranks = NULL;
  options.counts = NULL;
  FAILS(unisono_experts_after_shrink(&options, 4, left, experts, counts), UNISONO_USAGE,
        "usage: after_shrink: this communicator was not shrunk from one of 4 ranks\n"
        "pass the communicator that shrink() returned");
  options.experts_of_ranks = alone;
  options.counts = counts_alone;
  FAILS(unisono_experts_after_shrink(&options, 3, left, experts, counts), UNISONO_USAGE,
        "usage: after_shrink: all ranks of expert 2 are lost\nload them on another rank, and make "
        "an exchange whose experts_of_rank says so");
}
