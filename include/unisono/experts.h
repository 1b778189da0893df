/* Mixture of experts for C: dispatch brings tokens to the ranks of their experts, combine brings
 * the experts' outputs back and sums them with their weights. What a layout, a routing and a half
 * are, and which calls are collective, is as in parallel/experts.hpp; results and errors are as in
 * unisono.h.
 *
 *   unisono_exchange_options_t options = UNISONO_EXCHANGE_OPTIONS_INIT;
 *   options.experts = 64;
 *   options.k = 8;
 *   unisono_exchange_create(&options, comm, &exchange);
 *   unisono_route(chosen, tokens, exchange, &routing);
 *   unisono_get_routing_shape(routing, &shape);
 *   unisono_dispatch(routing, &payload, 1, exchange);
 *   ... experts compute rows ...
 *   unisono_combine(routing, &rows, exchange);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "unisono/unisono.h"

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct unisono_exchange_handle* unisono_exchange_t;
typedef struct unisono_routing_handle* unisono_routing_t;

/* How received rows lie. */
enum { UNISONO_EXPERT_MAJOR = 0, UNISONO_RANK_MAJOR = 1, UNISONO_FLAT = 2 };
/* How rows travel: as they are, or as 8-bit integers or floats with a scale for each 128 elements.
 */
enum { UNISONO_ROWS_PLAIN = 0, UNISONO_ROWS_I8 = 1, UNISONO_ROWS_F8E4M3 = 2 };

/* Start from UNISONO_EXCHANGE_OPTIONS_INIT. */
typedef struct unisono_exchange_options {
  size_t struct_size;
  int experts;
  int k; /* experts of a token */
  int layout;
  int alignment;    /* of an expert's first row, in rows: expert_major */
  int64_t capacity; /* at most so many rows for one expert, over all ranks; -1: all */
  /* The experts of rank 0, then those of rank 1, and so on, and how many each rank has: n counts.
   * Both NULL: even, contiguous parts. Read before the function returns. */
  const int* experts_of_ranks;
  const int* counts;
  /* Tokens that a rank is to route at once and the bytes of a row, where both are known: then the
   * memory for an even routing is there from the beginning. It grows where more come. */
  size_t max_tokens;
  size_t row_bytes;
} unisono_exchange_options_t;
#define UNISONO_EXCHANGE_OPTIONS_INIT \
  {sizeof(unisono_exchange_options_t), 0, 1, UNISONO_EXPERT_MAJOR, 1, -1, NULL, NULL, 0, 0}

typedef struct unisono_routing_shape {
  size_t tokens;       /* of this rank */
  size_t rows;         /* that a dispatch writes here, with padding */
  size_t experts_here; /* of this rank */
  int64_t dropped;     /* for the capacity, on all ranks */
  /* By row, until the routing is freed: the rank that it came from (-1: padding), the token, and
   * its place among the k (rank_major: the first one). */
  const int* source_ranks;
  const int64_t* source_tokens;
  const int* source_slots;
  /* By row: the number of its expert among those of this rank, -1: padding. rank_major: k for each
   * row. */
  const int* experts;
  const int* numbers_here; /* of the experts of this rank: experts_here of them */
  /* By expert: tokens on all ranks that chose it. */
  const int64_t* chosen;
  /* By rank: rows that a dispatch brings there, without padding. */
  const int64_t* rows_of_ranks;
} unisono_routing_shape_t;

typedef struct unisono_payload {
  const void* in; /* [tokens][row_bytes]; one_a_slot: [tokens][k][row_bytes] */
  void* out;      /* [rows][row_bytes] */
  size_t row_bytes;
  int one_a_slot;
  int coding;
  unisono_dtype_t dtype; /* for a coding; the same on all ranks */
} unisono_payload_t;

typedef struct unisono_combine_rows {
  const void* rows; /* [rows][hidden] of dtype */
  void* out;        /* [tokens][hidden] of dtype */
  unisono_dtype_t dtype;
  size_t hidden;
  const float* weights; /* [tokens][k]; NULL: all are 1 */
  const void* residual; /* [tokens][hidden]; NULL: none; may be `out` */
  int coding;
} unisono_combine_rows_t;

/* As of combine(); what is not for rank_major must be NULL there. */
typedef struct unisono_combine_gradient {
  const void* out_gradient; /* [tokens][hidden] of dtype */
  void* rows_gradient;      /* [rows][hidden] of dtype */
  unisono_dtype_t dtype;
  size_t hidden;
  const float* weights;    /* [tokens][k]; NULL: all are 1 */
  const void* rows;        /* [rows][hidden] of dtype */
  float* weights_gradient; /* [tokens][k] */
} unisono_combine_gradient_t;

/* Made by all ranks; *exchange is the caller's to free, before the communicator. */
UNISONO_EXPORT unisono_result_t
unisono_exchange_create(const unisono_exchange_options_t* options, unisono_comm_t comm,
                        unisono_exchange_t* exchange) UNISONO_NOEXCEPT;
/* Sets *exchange to NULL; *exchange may be NULL. */
UNISONO_EXPORT unisono_result_t unisono_exchange_free(unisono_exchange_t* exchange)
    UNISONO_NOEXCEPT;
/* The most tokens that a rank has routed at once, or max_tokens if that is more; and the most rows
 * that a routing of so many can bring here: buffers of this length serve all of them. Local. */
UNISONO_EXPORT unisono_result_t unisono_exchange_limits(unisono_exchange_t exchange,
                                                        size_t* max_tokens,
                                                        size_t* max_rows) UNISONO_NOEXCEPT;

/* chosen: [tokens][k], -1: none. */
UNISONO_EXPORT unisono_result_t unisono_route(const int32_t* chosen, size_t tokens,
                                              unisono_exchange_t exchange,
                                              unisono_routing_t* routing) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_route_i64(const int64_t* chosen, size_t tokens,
                                                  unisono_exchange_t exchange,
                                                  unisono_routing_t* routing) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_routing_free(unisono_routing_t* routing) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_get_routing_shape(
    unisono_routing_t routing, unisono_routing_shape_t* shape) UNISONO_NOEXCEPT;
/* Where the rows of this rank's expert `local` begin, and how many there are; of the layout
 * expert_major only. */
UNISONO_EXPORT unisono_result_t unisono_routing_expert(int local, unisono_routing_t routing,
                                                       size_t* first_row,
                                                       size_t* rows) UNISONO_NOEXCEPT;

UNISONO_EXPORT unisono_result_t unisono_dispatch(unisono_routing_t routing,
                                                 const unisono_payload_t* payloads, size_t count,
                                                 unisono_exchange_t exchange) UNISONO_NOEXCEPT;
/* The halves; the routing and all buffers must live until the second returns. */
UNISONO_EXPORT unisono_result_t
unisono_start_dispatch(unisono_routing_t routing, const unisono_payload_t* payloads, size_t count,
                       unisono_exchange_t exchange) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_finish_dispatch(unisono_exchange_t exchange)
    UNISONO_NOEXCEPT;
/* By a thread of the exchange, in the order in which calls are started, the same on all ranks. The
 * routing and all buffers must live until unisono_wait() has returned, whose result is that of
 * unisono_dispatch(). The first asynchronous call of an exchange waits for the other ranks. */
UNISONO_EXPORT unisono_result_t unisono_dispatch_async(unisono_routing_t routing,
                                                       const unisono_payload_t* payloads,
                                                       size_t count, unisono_exchange_t exchange,
                                                       unisono_request_t* request) UNISONO_NOEXCEPT;

/* Instead of rows, their addresses, by row (NULL: padding), into rows[shape.rows]: in the memory of
 * their ranks, of one host, which all have `in` ([tokens][row_bytes]) registered. They may be read,
 * and no rank may change its tokens, until the next unisono_combine() or unisono_end_gather()
 * returns. */
UNISONO_EXPORT unisono_result_t unisono_gather_list(unisono_routing_t routing, const void* in,
                                                    size_t row_bytes, const void** rows,
                                                    unisono_exchange_t exchange) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_end_gather(unisono_exchange_t exchange) UNISONO_NOEXCEPT;

UNISONO_EXPORT unisono_result_t unisono_combine(unisono_routing_t routing,
                                                const unisono_combine_rows_t* combine,
                                                unisono_exchange_t exchange) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_start_combine(unisono_routing_t routing,
                                                      const unisono_combine_rows_t* combine,
                                                      unisono_exchange_t exchange) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_finish_combine(unisono_exchange_t exchange)
    UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_combine_async(unisono_routing_t routing,
                                                      const unisono_combine_rows_t* combine,
                                                      unisono_exchange_t exchange,
                                                      unisono_request_t* request) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t
unisono_combine_backward(unisono_routing_t routing, const unisono_combine_gradient_t* gradient,
                         unisono_exchange_t exchange) UNISONO_NOEXCEPT;

/* Ranks whose experts get nothing from the next unisono_route() on: those that any rank names, as
 * unisono_masked() says then. */
UNISONO_EXPORT unisono_result_t unisono_mask(const int* ranks, size_t count,
                                             unisono_exchange_t exchange) UNISONO_NOEXCEPT;
/* The same for so many calls of unisono_route() on all ranks; the next one has them again. */
UNISONO_EXPORT unisono_result_t unisono_mask_for(const int* ranks, size_t count, int64_t routes,
                                                 unisono_exchange_t exchange) UNISONO_NOEXCEPT;
/* Who is out at the next unisono_route(), ascending: *count of them, into ranks, which has room for
 * all ranks of the communicator. Local. */
UNISONO_EXPORT unisono_result_t unisono_masked(int* ranks, size_t* count,
                                               unisono_exchange_t exchange) UNISONO_NOEXCEPT;

/* The experts of the ranks that unisono_shrink() has left, for the options of a new exchange: each
 * keeps its own. `options`, of `ranks_before` ranks, are those of the exchange before. Writes
 * counts[size of survivors] and the experts of these ranks, of which there are no more than all
 * ranks had before. Local. UNISONO_USAGE: an expert whose last rank is lost, among others. */
UNISONO_EXPORT unisono_result_t unisono_experts_after_shrink(
    const unisono_exchange_options_t* options, int ranks_before, unisono_comm_t survivors,
    int* experts_of_ranks, int* counts) UNISONO_NOEXCEPT;

/* Where experts and their replicas should live, see parallel/expert_balance.hpp. `loads`: by
 * expert, tokens that chose it. `seats`: experts and replicas that all ranks hold together; 0: one
 * for each expert. Writes experts_of_ranks[ranks][seats / ranks] and, unless NULL,
 * load_of_ranks[ranks]. Local. */
UNISONO_EXPORT unisono_result_t unisono_balance_experts(const double* loads, size_t experts,
                                                        int ranks, int seats, int groups, int hosts,
                                                        int* experts_of_ranks,
                                                        double* load_of_ranks) UNISONO_NOEXCEPT;

/* One expert's weights to be copied from one rank to another. */
typedef struct unisono_expert_move {
  int expert;
  int from;
  int to;
} unisono_expert_move_t;

/* What has to be copied to go from one placement of `ranks` ranks to another; each as in
 * unisono_exchange_options_t. *count is the room of `moves`, and then how many there are; where
 * that is more, only so many are written as there is room for. Local. */
UNISONO_EXPORT unisono_result_t unisono_find_expert_moves(const int* experts_before,
                                                          const int* counts_before,
                                                          const int* experts_after,
                                                          const int* counts_after, int ranks,
                                                          unisono_expert_move_t* moves,
                                                          size_t* count) UNISONO_NOEXCEPT;

/* Writes bytes[ranks][ranks]: what each rank sends to each other for these moves. Local. */
UNISONO_EXPORT unisono_result_t unisono_bytes_of_moves(const unisono_expert_move_t* moves,
                                                       size_t count, int ranks, size_t expert_bytes,
                                                       size_t* bytes) UNISONO_NOEXCEPT;

/* Copies the weights between steps, expert_bytes of each move: from held[i] on the rank that sends
 * moves[i] to placed[i] on the one that gets it; what a rank does not send, or get, may be NULL. An
 * expert that a rank sends to several is taken from held[i] of the first of these moves.
 * All are read before one is written. Collective; see parallel/expert_balance.hpp for the errors,
 * which all ranks get before any memory is written. */
UNISONO_EXPORT unisono_result_t unisono_move_experts(const unisono_expert_move_t* moves,
                                                     size_t count, size_t expert_bytes,
                                                     const void* const* held, void* const* placed,
                                                     unisono_comm_t comm) UNISONO_NOEXCEPT;

#if defined(__cplusplus)
}
#endif
