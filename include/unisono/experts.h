/* Mixture of experts for C: dispatch sends tokens to the ranks of their experts; combine returns
 * the experts' outputs and sums these outputs with weights. parallel/experts.hpp describes layouts,
 * routings and collective calls. unisono.h describes results and errors.
 *
 *   unisono_expert_exchange_options_t options = UNISONO_EXPERT_EXCHANGE_OPTIONS_INIT;
 *   options.experts = 64;
 *   options.k = 8;
 *   unisono_expert_exchange_create(&options, comm, &exchange);
 *   unisono_route(chosen, tokens, exchange, &routing);
 *   unisono_routing_shape_t shape = UNISONO_ROUTING_SHAPE_INIT;
 *   unisono_get_routing_shape(routing, &shape);
 *   unisono_payload_t payload = UNISONO_PAYLOAD_INIT;      in, out and row_bytes are the program's
 *   unisono_dispatch(routing, &payload, 1, exchange);
 *   ... the experts compute the rows ...
 *   unisono_combine_rows_t rows = UNISONO_COMBINE_ROWS_INIT;
 *   unisono_combine(routing, &rows, exchange);
 *
 * Threads: one thread at a time uses an exchange and its routings.
 * Errors: every function may return USAGE. A collective function may also return the errors of a
 * collective, and MISMATCH on all ranks. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "unisono/unisono.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* An exchange, which dispatches and combines the tokens of a layer. */
typedef struct unisono_expert_exchange_handle* unisono_expert_exchange_t;
/* A routing: the ranks to which each token is sent. */
typedef struct unisono_routing_handle* unisono_routing_t;

/* The layout of received rows. */
enum { UNISONO_EXPERT_MAJOR = 0, UNISONO_RANK_MAJOR = 1, UNISONO_FLAT = 2 };
/* The coding of rows in transit: no coding, 8-bit integers or 8-bit floats. A code has a scale for
 * each 128 elements. */
enum { UNISONO_ROWS_PLAIN = 0, UNISONO_ROWS_I8 = 1, UNISONO_ROWS_F8E4M3 = 2 };

/* Start from UNISONO_EXPERT_EXCHANGE_OPTIONS_INIT. */
typedef struct unisono_expert_exchange_options {
  size_t struct_size;
  int experts;
  int k; /* experts per token */
  int layout;
  int alignment;    /* expert_major: each expert's first row is a multiple of this */
  int64_t capacity; /* greatest number of rows of one expert on all ranks; -1: no limit */
  /* experts_of_ranks lists the experts of rank 0, then the experts of rank 1, and so on. counts
   * lists the number of experts on each rank. If both lists are NULL, each rank gets consecutive
   * experts, spread evenly. The function copies both lists before it returns. */
  const int* experts_of_ranks;
  const int* counts;
  /* The greatest number of tokens that a rank will route at once, and the bytes of a row. If both
   * are set, the exchange allocates memory for an even routing in advance. If this memory does not
   * suffice, it grows. */
  size_t max_tokens;
  size_t row_bytes;
} unisono_expert_exchange_options_t;
#define UNISONO_EXPERT_EXCHANGE_OPTIONS_INIT \
  {sizeof(unisono_expert_exchange_options_t), 0, 1, UNISONO_EXPERT_MAJOR, 1, -1, NULL, NULL, 0, 0}

/* The rows of a routing, and the source of each row. Start from UNISONO_ROUTING_SHAPE_INIT. */
typedef struct unisono_routing_shape {
  size_t struct_size;
  size_t tokens;       /* tokens on this rank */
  size_t rows;         /* rows that a dispatch writes on this rank, padding included */
  size_t experts_here; /* experts on this rank */
  int64_t dropped;     /* rows that the capacity drops, on all ranks */
  /* For each row: the source rank (-1: padding), the token, and the slot of the token. In
   * rank_major, the slot is the token's first slot on this rank. All lists are valid until the
   * routing is freed. */
  const int* source_ranks;
  const int64_t* source_tokens;
  const int* source_slots;
  /* For each row: the index of its expert among this rank's experts; -1: padding. In rank_major,
   * each row has k entries; -1: an expert of another rank. */
  const int* experts;
  const int* numbers_here; /* global numbers of this rank's experts */
  /* For each expert: the number of tokens, on all ranks, that chose the expert. */
  const int64_t* chosen;
  /* For each rank: the number of rows that a dispatch sends to the rank, without padding. */
  const int64_t* rows_of_ranks;
} unisono_routing_shape_t;
#define UNISONO_ROUTING_SHAPE_INIT \
  {sizeof(unisono_routing_shape_t), 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL}

/* One kind of data that is sent for each token: one row, or k rows. Start from
 * UNISONO_PAYLOAD_INIT. */
typedef struct unisono_payload {
  size_t struct_size;
  const void* in; /* [tokens][row_bytes]; one_a_slot: [tokens][k][row_bytes] */
  void* out;      /* [rows][row_bytes] */
  size_t row_bytes;
  int one_a_slot; /* 1: each token has k rows, one per slot; not for rank_major */
  int coding;
  unisono_dtype_t dtype; /* required if coding is set; the same on all ranks */
  int reserved;          /* 0 */
} unisono_payload_t;
#define UNISONO_PAYLOAD_INIT \
  {sizeof(unisono_payload_t), NULL, NULL, 0, 0, UNISONO_ROWS_PLAIN, UNISONO_BF16, 0}

/* The rows that unisono_combine() sums, and the buffer for the sums. Start from
 * UNISONO_COMBINE_ROWS_INIT. */
typedef struct unisono_combine_rows {
  size_t struct_size;
  const void* rows; /* [rows][hidden] of dtype */
  void* out;        /* [tokens][hidden] of dtype */
  unisono_dtype_t dtype;
  int coding;
  size_t hidden;
  const float* weights; /* [tokens][k]; NULL: all weights are 1; rank_major: must be NULL */
  const void* residual; /* [tokens][hidden], added to the sums; NULL: none; may be `out` */
} unisono_combine_rows_t;
#define UNISONO_COMBINE_ROWS_INIT \
  {sizeof(unisono_combine_rows_t), NULL, NULL, UNISONO_BF16, UNISONO_ROWS_PLAIN, 0, NULL, NULL}

/* The buffers of unisono_combine_backward(). In rank_major, weights, rows and weights_gradient must
 * be NULL. Start from UNISONO_COMBINE_GRADIENT_INIT. */
typedef struct unisono_combine_gradient {
  size_t struct_size;
  const void* out_gradient; /* [tokens][hidden] of dtype */
  void* rows_gradient;      /* [rows][hidden] of dtype */
  unisono_dtype_t dtype;
  size_t hidden;
  const float* weights;    /* [tokens][k]; NULL: all weights are 1 */
  const void* rows;        /* [rows][hidden] of dtype */
  float* weights_gradient; /* [tokens][k] */
} unisono_combine_gradient_t;
#define UNISONO_COMBINE_GRADIENT_INIT \
  {sizeof(unisono_combine_gradient_t), NULL, NULL, UNISONO_BF16, 0, NULL, NULL, NULL}

/* Collective. Makes an exchange. The caller frees *exchange before it frees the communicator. */
UNISONO_EXPORT unisono_result_t unisono_expert_exchange_create(
    const unisono_expert_exchange_options_t* options, unisono_comm_t comm,
    unisono_expert_exchange_t* exchange) UNISONO_NOEXCEPT;
/* Local. Waits for the asynchronous calls of the exchange, frees the exchange, and sets *exchange
 * to NULL; *exchange may be NULL. */
UNISONO_EXPORT unisono_result_t unisono_expert_exchange_free(unisono_expert_exchange_t* exchange)
    UNISONO_NOEXCEPT;
/* Local. Sets two limits. *max_tokens is the greatest number of tokens that any rank has routed at
 * once, or the option max_tokens if the option is greater. *max_rows is the greatest number of
 * rows, padding included, that a dispatch can write on this rank if no rank routes more than
 * *max_tokens tokens. */
UNISONO_EXPORT unisono_result_t unisono_expert_exchange_limits(unisono_expert_exchange_t exchange,
                                                               size_t* max_tokens,
                                                               size_t* max_rows) UNISONO_NOEXCEPT;

/* Collective. Makes a routing. The caller frees *routing; *routing is NULL after a failure.
 * Shapes: chosen: [tokens][k]; -1: no expert. */
UNISONO_EXPORT unisono_result_t unisono_route(const int32_t* chosen, size_t tokens,
                                              unisono_expert_exchange_t exchange,
                                              unisono_routing_t* routing) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_route_i64(const int64_t* chosen, size_t tokens,
                                                  unisono_expert_exchange_t exchange,
                                                  unisono_routing_t* routing) UNISONO_NOEXCEPT;
/* Local. Frees the routing and sets *routing to NULL; *routing may be NULL. */
UNISONO_EXPORT unisono_result_t unisono_routing_free(unisono_routing_t* routing) UNISONO_NOEXCEPT;
/* Local. Fills *shape. The pointers in *shape are valid until the routing is freed. */
UNISONO_EXPORT unisono_result_t unisono_get_routing_shape(
    unisono_routing_t routing, unisono_routing_shape_t* shape) UNISONO_NOEXCEPT;
/* Local. Sets *first_row and *rows to the first row and the number of rows of this rank's expert
 * with index `local`. Only for expert_major. */
UNISONO_EXPORT unisono_result_t unisono_routing_expert(int local, unisono_routing_t routing,
                                                       size_t* first_row,
                                                       size_t* rows) UNISONO_NOEXCEPT;

/* Collective. Sends rows to the ranks of their experts, for at most 8 payloads. The tokens must not
 * change until unisono_dispatch() returns. After the return, no peer reads the tokens any more.
 * Shapes: see unisono_payload_t.
 * In place: no output may overlap an input or another output. */
UNISONO_EXPORT unisono_result_t
unisono_dispatch(unisono_routing_t routing, const unisono_payload_t* payloads, size_t count,
                 unisono_expert_exchange_t exchange) UNISONO_NOEXCEPT;
/* Collective. Starts unisono_dispatch() on a thread of the exchange. Calls run in the order in
 * which they were started. This order must be the same on all ranks. The routing and all buffers
 * must live until unisono_wait() returns the result. The first asynchronous call of an exchange
 * waits for the other ranks to make this call. */
UNISONO_EXPORT unisono_result_t unisono_dispatch_async(unisono_routing_t routing,
                                                       const unisono_payload_t* payloads,
                                                       size_t count,
                                                       unisono_expert_exchange_t exchange,
                                                       unisono_request_t* request) UNISONO_NOEXCEPT;

/* Collective. Writes the address of each row, instead of the row itself, to rows[shape.rows]; NULL:
 * padding. All ranks must be on one host, and `in` must be registered memory on every rank. Until
 * the next unisono_combine() or unisono_end_gather() returns, ranks may read the rows, and no rank
 * may change its tokens.
 * Shapes: in: [tokens][row_bytes]. */
UNISONO_EXPORT unisono_result_t
unisono_gather_list(unisono_routing_t routing, const void* in, size_t row_bytes, const void** rows,
                    unisono_expert_exchange_t exchange) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_end_gather(unisono_expert_exchange_t exchange)
    UNISONO_NOEXCEPT;

/* Collective. Computes the weighted sum of the experts' rows for each token. The _async form
 * follows the rules of unisono_dispatch_async().
 * Shapes: see unisono_combine_rows_t.
 * In place: `residual` may be `out`. No other buffers may overlap. */
UNISONO_EXPORT unisono_result_t
unisono_combine(unisono_routing_t routing, const unisono_combine_rows_t* combine,
                unisono_expert_exchange_t exchange) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_combine_async(unisono_routing_t routing,
                                                      const unisono_combine_rows_t* combine,
                                                      unisono_expert_exchange_t exchange,
                                                      unisono_request_t* request) UNISONO_NOEXCEPT;
/* Collective. Computes the gradients of unisono_combine().
 * Shapes: see unisono_combine_gradient_t.
 * In place: no output may overlap another buffer. */
UNISONO_EXPORT unisono_result_t
unisono_combine_backward(unisono_routing_t routing, const unisono_combine_gradient_t* gradient,
                         unisono_expert_exchange_t exchange) UNISONO_NOEXCEPT;

/* Collective. Excludes the experts of some ranks, starting with the next unisono_route(). The new
 * mask contains every rank that at least one rank passes in `ranks`, and replaces the old mask.
 * unisono_masked() returns the mask. */
UNISONO_EXPORT unisono_result_t unisono_mask(const int* ranks, size_t count,
                                             unisono_expert_exchange_t exchange) UNISONO_NOEXCEPT;
/* Collective. Does the same as unisono_mask(), but only for the next `routes` calls of
 * unisono_route(). */
UNISONO_EXPORT unisono_result_t unisono_mask_for(const int* ranks, size_t count, int64_t routes,
                                                 unisono_expert_exchange_t exchange)
    UNISONO_NOEXCEPT;
/* Local. Writes the ranks that the next unisono_route() excludes to `ranks`, in ascending order,
 * and their number to *count. `ranks` has room for all ranks. */
UNISONO_EXPORT unisono_result_t unisono_masked(int* ranks, size_t* count,
                                               unisono_expert_exchange_t exchange) UNISONO_NOEXCEPT;

/* Local. Computes the placement of a new exchange after unisono_shrink(): each remaining rank keeps
 * its experts. `options` are the options of the old exchange on `ranks_before` ranks. Writes the
 * number of experts on each rank of `survivors` to `counts`, and the experts of these ranks to
 * `experts_of_ranks`. Neither list is longer than in the old exchange.
 * Errors: USAGE, for example if an expert's last rank is lost. */
UNISONO_EXPORT unisono_result_t unisono_experts_after_shrink(
    const unisono_expert_exchange_options_t* options, int ranks_before, unisono_comm_t survivors,
    int* experts_of_ranks, int* counts) UNISONO_NOEXCEPT;

/* Local. Places experts and their replicas on ranks (parallel/expert_balance.hpp). `loads`: for
 * each expert, the number of tokens that chose the expert. `physical_experts`: the number of
 * experts and replicas on all ranks together; 0: no replicas. Writes
 * experts_of_ranks[ranks][physical_experts / ranks]. If load_of_ranks is not NULL, also writes
 * load_of_ranks[ranks].
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_balance_experts(const double* loads, size_t experts,
                                                        int ranks, int physical_experts, int groups,
                                                        int hosts, int* experts_of_ranks,
                                                        double* load_of_ranks) UNISONO_NOEXCEPT;

/* A copy of one expert's weights from one rank to another. Later versions add no members to this
 * struct. */
typedef struct unisono_expert_move {
  int expert;
  int from;
  int to;
} unisono_expert_move_t;

/* Local. Lists the copies that change one placement on `ranks` ranks into another placement.
 * Placements are lists as in unisono_expert_exchange_options_t. Before the call, set *count to the
 * number of moves for which `moves` has room. On return, *count is the number of moves in the list.
 * If `moves` has too little room, only the first moves are written.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_find_expert_moves(const int* experts_before,
                                                          const int* counts_before,
                                                          const int* experts_after,
                                                          const int* counts_after, int ranks,
                                                          unisono_expert_move_t* moves,
                                                          size_t* count) UNISONO_NOEXCEPT;

/* Local. Writes bytes[from][to]: the number of bytes that rank `from` sends to rank `to` for these
 * moves.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_bytes_of_moves(const unisono_expert_move_t* moves,
                                                       size_t count, int ranks, size_t expert_bytes,
                                                       size_t* bytes) UNISONO_NOEXCEPT;

/* Collective. Copies weights between steps. For each move i, copies expert_bytes bytes from held[i]
 * on rank moves[i].from to placed[i] on rank moves[i].to. On other ranks, held[i] or placed[i] may
 * be NULL. If a rank sends an expert to several ranks, the library reads only held[i] of the first
 * of these moves. All weights are read before any weights are written.
 * Errors: those of move_experts() in parallel/expert_balance.hpp, on all ranks, before any memory
 * is written. */
UNISONO_EXPORT unisono_result_t unisono_move_experts(const unisono_expert_move_t* moves,
                                                     size_t count, size_t expert_bytes,
                                                     const void* const* held, void* const* placed,
                                                     unisono_comm_t comm) UNISONO_NOEXCEPT;

#if defined(__cplusplus)
}
#endif
