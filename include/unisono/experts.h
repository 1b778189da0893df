/* Mixture of experts for C: dispatch brings tokens to the ranks of their experts; combine brings
 * the experts' outputs back and sums them with their weights. parallel/experts.hpp describes
 * layouts and routings, and which calls are collective; results and errors are as in
 * unisono.h.
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
 *   ... experts compute rows ...
 *   unisono_combine_rows_t rows = UNISONO_COMBINE_ROWS_INIT;
 *   unisono_combine(routing, &rows, exchange);
 *
 * Threads: one thread at a time uses an exchange and its routings.
 * Errors: every function may return USAGE. Collective functions also return MISMATCH, on all ranks,
 * and the errors of a collective. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "unisono/unisono.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Dispatch and combine of a layer. */
typedef struct unisono_expert_exchange_handle* unisono_expert_exchange_t;
/* Which token goes to which rank. */
typedef struct unisono_routing_handle* unisono_routing_t;

/* The layout of received rows. */
enum { UNISONO_EXPERT_MAJOR = 0, UNISONO_RANK_MAJOR = 1, UNISONO_FLAT = 2 };
/* The coding of rows in transit: unchanged, or 8-bit integers or floats with a scale for each 128
 * elements. */
enum { UNISONO_ROWS_PLAIN = 0, UNISONO_ROWS_I8 = 1, UNISONO_ROWS_F8E4M3 = 2 };

/* Start from UNISONO_EXPERT_EXCHANGE_OPTIONS_INIT. */
typedef struct unisono_expert_exchange_options {
  size_t struct_size;
  int experts;
  int k; /* experts per token */
  int layout;
  int alignment;    /* expert_major: each expert's first row is a multiple of this */
  int64_t capacity; /* most rows for one expert, over all ranks; -1: no limit */
  /* experts_of_ranks has the experts of rank 0, then the experts of rank 1, and so on. counts has
   * the number of experts on each of the n ranks. Both NULL: each rank gets consecutive experts,
   * spread evenly. Both lists are read before the function returns. */
  const int* experts_of_ranks;
  const int* counts;
  /* The most tokens that a rank will route at once, and the bytes of a row. If both are known,
   * memory for an even routing is allocated in advance. The memory grows if it does not suffice. */
  size_t max_tokens;
  size_t row_bytes;
} unisono_expert_exchange_options_t;
#define UNISONO_EXPERT_EXCHANGE_OPTIONS_INIT \
  {sizeof(unisono_expert_exchange_options_t), 0, 1, UNISONO_EXPERT_MAJOR, 1, -1, NULL, NULL, 0, 0}

/* The rows of a routing, and where they come from. Start from UNISONO_ROUTING_SHAPE_INIT. */
typedef struct unisono_routing_shape {
  size_t struct_size;
  size_t tokens;       /* on this rank */
  size_t rows;         /* that a dispatch writes on this rank, padding included */
  size_t experts_here; /* on this rank */
  int64_t dropped;     /* because of the capacity, on all ranks */
  /* By row, valid until the routing is freed: the source rank (-1: padding), the token, and the
   * token's slot (rank_major: its first slot on this rank). */
  const int* source_ranks;
  const int64_t* source_tokens;
  const int* source_slots;
  /* By row: its expert's index among this rank's experts; -1: padding. rank_major: k entries per
   * row. */
  const int* experts;
  const int* numbers_here; /* experts_here global numbers of this rank's experts */
  /* By expert: the tokens on all ranks that chose it. */
  const int64_t* chosen;
  /* By rank: the rows that a dispatch brings there, without padding. */
  const int64_t* rows_of_ranks;
} unisono_routing_shape_t;
#define UNISONO_ROUTING_SHAPE_INIT \
  {sizeof(unisono_routing_shape_t), 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL}

/* One kind of data that is sent for each token, as a row. Start from UNISONO_PAYLOAD_INIT. */
typedef struct unisono_payload {
  size_t struct_size;
  const void* in; /* [tokens][row_bytes]; one_a_slot: [tokens][k][row_bytes] */
  void* out;      /* [rows][row_bytes] */
  size_t row_bytes;
  int one_a_slot; /* 1: a row for each of the k slots, as for weights; not for rank_major */
  int coding;
  unisono_dtype_t dtype; /* needed for a coding; the same on all ranks */
  int reserved;          /* 0 */
} unisono_payload_t;
#define UNISONO_PAYLOAD_INIT \
  {sizeof(unisono_payload_t), NULL, NULL, 0, 0, UNISONO_ROWS_PLAIN, UNISONO_BF16, 0}

/* The rows that unisono_combine() sums, and the memory for the sums. Start from
 * UNISONO_COMBINE_ROWS_INIT. */
typedef struct unisono_combine_rows {
  size_t struct_size;
  const void* rows; /* [rows][hidden] of dtype */
  void* out;        /* [tokens][hidden] of dtype */
  unisono_dtype_t dtype;
  int coding;
  size_t hidden;
  const float* weights; /* [tokens][k]; NULL: all are 1; NULL for rank_major */
  const void* residual; /* [tokens][hidden]; NULL: none; may be `out` */
} unisono_combine_rows_t;
#define UNISONO_COMBINE_ROWS_INIT \
  {sizeof(unisono_combine_rows_t), NULL, NULL, UNISONO_BF16, UNISONO_ROWS_PLAIN, 0, NULL, NULL}

/* The gradients of combine(). With rank_major, weights, rows and weights_gradient must be NULL.
 * Start from UNISONO_COMBINE_GRADIENT_INIT. */
typedef struct unisono_combine_gradient {
  size_t struct_size;
  const void* out_gradient; /* [tokens][hidden] of dtype */
  void* rows_gradient;      /* [rows][hidden] of dtype */
  unisono_dtype_t dtype;
  size_t hidden;
  const float* weights;    /* [tokens][k]; NULL: all are 1 */
  const void* rows;        /* [rows][hidden] of dtype */
  float* weights_gradient; /* [tokens][k] */
} unisono_combine_gradient_t;
#define UNISONO_COMBINE_GRADIENT_INIT \
  {sizeof(unisono_combine_gradient_t), NULL, NULL, UNISONO_BF16, 0, NULL, NULL, NULL}

/* Collective. Makes an exchange. The caller frees *exchange before it frees the communicator. */
UNISONO_EXPORT unisono_result_t unisono_expert_exchange_create(
    const unisono_expert_exchange_options_t* options, unisono_comm_t comm,
    unisono_expert_exchange_t* exchange) UNISONO_NOEXCEPT;
/* Local. Frees the exchange and sets *exchange to NULL; *exchange may be NULL. First waits for the
 * asynchronous calls that it has started. */
UNISONO_EXPORT unisono_result_t unisono_expert_exchange_free(unisono_expert_exchange_t* exchange)
    UNISONO_NOEXCEPT;
/* Local. Returns two limits. *max_tokens is the most tokens that any rank has routed at once, or
 * the option max_tokens if it is larger. *max_rows is the most rows that a routing of *max_tokens
 * tokens per rank can bring to this rank. Buffers of *max_rows rows serve all such routings. */
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
/* Local. Fills *shape. Its pointers are valid until the routing is freed. */
UNISONO_EXPORT unisono_result_t unisono_get_routing_shape(
    unisono_routing_t routing, unisono_routing_shape_t* shape) UNISONO_NOEXCEPT;
/* Local. Returns the first row and the number of rows of this rank's expert `local`. Only for
 * expert_major. */
UNISONO_EXPORT unisono_result_t unisono_routing_expert(int local, unisono_routing_t routing,
                                                       size_t* first_row,
                                                       size_t* rows) UNISONO_NOEXCEPT;

/* Collective. Brings rows to the ranks of their experts; at most 8 payloads. The tokens must not
 * change until unisono_dispatch() returns; all peers have read them by then.
 * Shapes: see unisono_payload_t.
 * In place: no output may overlap an input or another output. */
UNISONO_EXPORT unisono_result_t
unisono_dispatch(unisono_routing_t routing, const unisono_payload_t* payloads, size_t count,
                 unisono_expert_exchange_t exchange) UNISONO_NOEXCEPT;
/* Collective. Starts unisono_dispatch() on a thread of the exchange. Calls run in the order of
 * their start, which must be the same on all ranks. The routing and all buffers must live until
 * unisono_wait() returns the result. The first asynchronous call of an exchange waits for the other
 * ranks. */
UNISONO_EXPORT unisono_result_t unisono_dispatch_async(unisono_routing_t routing,
                                                       const unisono_payload_t* payloads,
                                                       size_t count,
                                                       unisono_expert_exchange_t exchange,
                                                       unisono_request_t* request) UNISONO_NOEXCEPT;

/* Collective. Writes the addresses of the rows instead of the rows to rows[shape.rows] (NULL:
 * padding). Needs all ranks on one host and `in` as registered memory on all of them. The rows may
 * be read, and no rank may change its tokens, until the next unisono_combine() or
 * unisono_end_gather() returns.
 * Shapes: in: [tokens][row_bytes]. */
UNISONO_EXPORT unisono_result_t
unisono_gather_list(unisono_routing_t routing, const void* in, size_t row_bytes, const void** rows,
                    unisono_expert_exchange_t exchange) UNISONO_NOEXCEPT;
UNISONO_EXPORT unisono_result_t unisono_end_gather(unisono_expert_exchange_t exchange)
    UNISONO_NOEXCEPT;

/* Collective. Sums the experts' rows of each token with their weights. The _async
 * form follows the rules of unisono_dispatch_async().
 * Shapes: see unisono_combine_rows_t.
 * In place: `residual` may be `out`; nothing else may overlap. */
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

/* Collective. Excludes the experts of some ranks from the next unisono_route() on. The mask is the
 * union of the ranks that the calls of all ranks name. It replaces the old mask, and
 * unisono_masked() returns it. */
UNISONO_EXPORT unisono_result_t unisono_mask(const int* ranks, size_t count,
                                             unisono_expert_exchange_t exchange) UNISONO_NOEXCEPT;
/* Collective. Excludes the experts of some ranks for the next `routes` calls of unisono_route() on
 * all ranks; the call after that includes them again. */
UNISONO_EXPORT unisono_result_t unisono_mask_for(const int* ranks, size_t count, int64_t routes,
                                                 unisono_expert_exchange_t exchange)
    UNISONO_NOEXCEPT;
/* Local. Writes the ranks that the next unisono_route() excludes, in ascending order, to `ranks`
 * (room for all ranks), and their number to *count. */
UNISONO_EXPORT unisono_result_t unisono_masked(int* ranks, size_t* count,
                                               unisono_expert_exchange_t exchange) UNISONO_NOEXCEPT;

/* Local. Computes the placement of a new exchange after unisono_shrink(): each remaining rank keeps
 * its experts. `options` are those of the old exchange on `ranks_before` ranks. Writes to `counts`
 * the number of experts on each rank of `survivors`, and to `experts_of_ranks` the experts of these
 * ranks, which are at most as many as before.
 * Errors: USAGE, for example if an expert's last rank is lost. */
UNISONO_EXPORT unisono_result_t unisono_experts_after_shrink(
    const unisono_expert_exchange_options_t* options, int ranks_before, unisono_comm_t survivors,
    int* experts_of_ranks, int* counts) UNISONO_NOEXCEPT;

/* Local. Places experts and their replicas on ranks (parallel/expert_balance.hpp). `loads`: the
 * tokens that chose each expert. `physical_experts`: experts and replicas on all ranks together; 0:
 * one for each expert. Writes experts_of_ranks[ranks][physical_experts / ranks] and, unless NULL,
 * load_of_ranks[ranks].
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_balance_experts(const double* loads, size_t experts,
                                                        int ranks, int physical_experts, int groups,
                                                        int hosts, int* experts_of_ranks,
                                                        double* load_of_ranks) UNISONO_NOEXCEPT;

/* A copy of one expert's weights from one rank to another. Never gets further members. */
typedef struct unisono_expert_move {
  int expert;
  int from;
  int to;
} unisono_expert_move_t;

/* Local. Lists the copies that change one placement of `ranks` ranks into another; both are as in
 * unisono_expert_exchange_options_t. *count is the room of `moves` on entry and the number of moves
 * on return; if the number of moves is larger than the room, only the first moves are written.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_find_expert_moves(const int* experts_before,
                                                          const int* counts_before,
                                                          const int* experts_after,
                                                          const int* counts_after, int ranks,
                                                          unisono_expert_move_t* moves,
                                                          size_t* count) UNISONO_NOEXCEPT;

/* Local. Writes bytes[ranks][ranks]: the bytes that each rank sends to each other rank for these
 * moves.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t unisono_bytes_of_moves(const unisono_expert_move_t* moves,
                                                       size_t count, int ranks, size_t expert_bytes,
                                                       size_t* bytes) UNISONO_NOEXCEPT;

/* Collective. Copies weights between steps, expert_bytes per move: from held[i] on the rank that
 * sends moves[i] to placed[i] on the rank that receives it. On a rank that does not send moves[i],
 * held[i] may be NULL; on a rank that does not receive moves[i], placed[i] may be NULL. If a rank
 * sends an expert to several ranks, held[i] of the first of these moves is used. All weights are
 * read before any weights are written.
 * Errors: those of move_experts() in parallel/expert_balance.hpp, on all ranks, before any memory
 * is written. */
UNISONO_EXPORT unisono_result_t unisono_move_experts(const unisono_expert_move_t* moves,
                                                     size_t count, size_t expert_bytes,
                                                     const void* const* held, void* const* placed,
                                                     unisono_comm_t comm) UNISONO_NOEXCEPT;

#if defined(__cplusplus)
}
#endif
