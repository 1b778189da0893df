/* Experts from C: rank r holds experts 2r and 2r + 1, which add their number to a row. */
#include "unisono/experts.h"

#include <string.h>

#include "c_program.h"

enum { kMost = 64 };

enum { kBlocking, kHalves, kAsync };

static void round_trip(unisono_comm_t comm, unisono_exchange_t exchange, int form) {
  const int ranks = unisono_size(comm);
  const float token = value(unisono_rank(comm), 0);
  const int32_t chosen[2] = {unisono_rank(comm), 2 * ranks - 1};
  const float weights[2] = {1.0F, 2.0F};
  unisono_routing_t routing = NULL;
  unisono_routing_shape_t shape;
  unisono_request_t request = NULL;
  float rows[kMost];
  float out = -1.0F;
  size_t i;
  memset(&shape, 0, sizeof shape);
  SUCCEEDS(unisono_route(chosen, 1, exchange, &routing));
  SUCCEEDS(unisono_get_routing_shape(routing, &shape));
  EXPECT(shape.tokens == 1 && shape.rows <= kMost && shape.experts_here == 2);
  EXPECT(shape.chosen[2 * ranks - 1] >= ranks);
  {
    const unisono_payload_t payload = {&token,     rows, sizeof token, 0, UNISONO_ROWS_PLAIN,
                                       UNISONO_F32};
    const unisono_combine_rows_t combine = {rows,    &out,   UNISONO_F32,       1,
                                            weights, &token, UNISONO_ROWS_PLAIN};
    if (form == kHalves) {
      SUCCEEDS(unisono_start_dispatch(routing, &payload, 1, exchange));
      SUCCEEDS(unisono_finish_dispatch(exchange));
    } else if (form == kAsync) {
      SUCCEEDS(unisono_dispatch_async(routing, &payload, 1, exchange, &request));
      SUCCEEDS(unisono_wait(&request, -1));
    } else {
      SUCCEEDS(unisono_dispatch(routing, &payload, 1, exchange));
    }
    for (i = 0; i < shape.rows; ++i) {
      EXPECT(rows[i] == value(shape.source_ranks[i], 0) && shape.source_tokens[i] == 0);
      rows[i] += (float)(2 * unisono_rank(comm) + shape.experts[i]);
    }
    if (form == kHalves) {
      SUCCEEDS(unisono_start_combine(routing, &combine, exchange));
      SUCCEEDS(unisono_finish_combine(exchange));
    } else if (form == kAsync) {
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
    unisono_combine_gradient_t gradient;
    memset(&gradient, 0, sizeof gradient);
    gradient.out_gradient = &token;
    gradient.rows_gradient = rows_gradient;
    gradient.dtype = UNISONO_F32;
    gradient.hidden = 1;
    gradient.weights = weights;
    gradient.rows = rows;
    gradient.weights_gradient = weights_gradient;
    SUCCEEDS(unisono_combine_backward(routing, &gradient, exchange));
    EXPECT(weights_gradient[1] == token * (token + (float)chosen[1]));
  }
  SUCCEEDS(unisono_routing_free(&routing));
  EXPECT(routing == NULL);
}

void run_experts(unisono_comm_t comm) {
  unisono_exchange_options_t options = UNISONO_EXCHANGE_OPTIONS_INIT;
  unisono_exchange_t exchange = NULL;
  unisono_routing_t routing = NULL;
  const int32_t wrong[2] = {0, 1000};
  size_t max_tokens = 0;
  size_t max_rows = 0;
  options.experts = 2 * unisono_size(comm);
  options.k = 2;
  options.max_tokens = 3;
  options.row_bytes = sizeof(float);
  SUCCEEDS(unisono_exchange_create(&options, comm, &exchange));
  SUCCEEDS(unisono_exchange_limits(exchange, &max_tokens, &max_rows));
  EXPECT(max_tokens == 3 && max_rows == (size_t)(3 * 2 * unisono_size(comm)));
  round_trip(comm, exchange, kBlocking);
  EXPECT(unisono_route(wrong, 1, exchange, &routing) == UNISONO_USAGE && routing == NULL);
  round_trip(comm, exchange, kHalves);
  round_trip(comm, exchange, kAsync);
  SUCCEEDS(unisono_mask(NULL, 0, exchange));
  SUCCEEDS(unisono_mask_for(NULL, 0, 2, exchange));
  EXPECT(unisono_mask_for(NULL, 0, 0, exchange) == UNISONO_USAGE);
  SUCCEEDS(unisono_exchange_free(&exchange));
  options.layout = 7;
  FAILS(unisono_exchange_create(&options, comm, &exchange), UNISONO_USAGE,
        "usage: layout is 7\ngive UNISONO_EXPERT_MAJOR or its like");
}
