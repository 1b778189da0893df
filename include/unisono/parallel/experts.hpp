// Mixture of experts: dispatch brings each rank's tokens to the ranks of their experts; combine
// brings the experts' outputs back and sums them with their weights.
//
//   unisono::ExpertExchange exchange(comm, {.experts = 64, .k = 8});
//   // chosen: [tokens][k], -1: none
//   const unisono::Routing routing = exchange.route(chosen);
//   std::vector<std::byte> rows(routing.rows() * row_bytes);
//   exchange.dispatch(routing, {{.in = tokens, .out = rows, .row_bytes = row_bytes}});
//   ... experts compute rows of routing.first_row(e), routing.rows_of(e) ...
//   exchange.combine(routing, {.rows = outputs, .out = sums, .dtype = unisono::Dtype::bf16,
//                              .hidden = 2048, .weights = weights});
//
// The calls of an ExpertExchange are collective, except max_tokens(), max_rows(), masked() and the
// destructor: all ranks of the communicator make them in the same order.
//
// Threads: one thread per rank.
//
// Errors: if one rank passes wrong arguments, all ranks get the same error. The exchange and its
// routings are then unchanged and remain usable, and the caller's memory is unchanged. When a rank
// dies, the errors are those of the communicator.
//
// The position of each row follows from prefix sums over (expert, source rank, token), so results
// have the same bits for any timing and any transport. Ranks on one host read tokens and rows
// directly if they are registered memory (Communicator::allocate, register_buffer); other memory is
// first copied into memory of the exchange. Between hosts, all_to_all_v sends the rows. It sends
// each token once to each host that has at least one of the token's experts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"
#include "unisono/types.hpp"

namespace unisono {

// The layout of the rows that a rank receives. A token has k slots: slot j holds the j-th of the k
// experts that the token chose.
//   expert_major  the rows of an expert are contiguous, ordered by source rank, token and slot.
//                 The first row of each expert is at a multiple of the alignment, and rows of
//                 zeros fill the gaps
//   rank_major    one row for each source rank and token, even if the token chose several experts
//                 of this rank. experts() lists the chosen experts of each row. The caller sums
//                 over these experts, with weights
//   flat          one row for each source rank, token and slot, without gaps
enum class ExpertLayout : std::uint8_t { expert_major, rank_major, flat };

// Options of an ExpertExchange; the same on all ranks.
struct ExpertExchangeOptions {
  int experts = 0;
  int k = 1;  // experts per token
  ExpertLayout layout = ExpertLayout::expert_major;
  int alignment = 1;  // expert_major: each expert's first row is a multiple of this
  // The most rows for one expert, counted over all ranks. The expert keeps its first rows in the
  // order of source rank, token and slot, and drops the others. So the same tokens are dropped for
  // any number of ranks that hold the tokens in this order. -1: no limit.
  std::int64_t capacity = -1;
  // The experts of each rank. An expert that is on several ranks has replicas there, and its tokens
  // use the replicas in turn. Empty: each rank gets consecutive experts, as many as every other
  // rank. If the number of ranks does not divide the experts, the first ranks get one more.
  std::vector<std::vector<int>> experts_of_rank = {};
  // The most tokens that a rank will route at once, and the bytes of a token's row. If both are
  // known, the exchange allocates memory for an even routing in advance. It is no error to exceed
  // them: the memory then grows on all ranks alike.
  std::size_t max_tokens = 0;
  std::size_t row_bytes = 0;
};

// The source of a received row.
struct RowSource {
  int rank = -1;  // -1: padding
  std::int64_t token = -1;
  int slot = -1;  // of the token; rank_major: its first slot on this rank
};

// Local. Returns the options of an exchange on the ranks that remain after Communicator::shrink().
// Each rank keeps its experts. Tokens of an expert on a lost rank use its replicas on other ranks.
// All ranks get the same options.
// Threads: any.
// Errors: usage (a communicator that was not shrunk from `ranks_before` ranks, an expert whose last
// rank is lost).
UNISONO_EXPORT ExpertExchangeOptions after_shrink(const ExpertExchangeOptions& options,
                                                  const Communicator& survivors, int ranks_before);

namespace detail {
struct ExpertExchangeState;
struct RoutingState;
}  // namespace detail

// A routing: for each token, the ranks that it is sent to. route() makes a routing. A routing can
// be used any number of times, also for the backward pass, but only with the exchange that made it.
// It keeps no reference to the caller's memory. All members are local.
class UNISONO_EXPORT Routing {
 public:
  Routing(Routing&&) noexcept;
  Routing& operator=(Routing&&) noexcept;
  ~Routing();

  std::size_t tokens() const;  // on this rank
  std::size_t rows() const;    // that a dispatch writes on this rank, padding included
  // The first row and the number of rows of this rank's expert `local`. Only for expert_major.
  // Errors: usage.
  std::size_t first_row(int local) const;
  std::size_t rows_of(int local) const;
  // The global numbers of this rank's experts.
  std::span<const int> experts_here() const;
  // The source of each row.
  std::span<const RowSource> sources() const;
  // The expert of each row, as an index among this rank's experts. rank_major: [rows][k], -1 for
  // experts of other ranks.
  std::span<const int> experts() const;
  // The tokens on all ranks that chose each expert, and how many were dropped because of the
  // capacity.
  std::span<const std::int64_t> chosen() const;
  std::int64_t dropped() const;
  // The rows that a dispatch brings to each rank, without padding. Their maximum divided by their
  // mean is the imbalance.
  std::span<const std::int64_t> rows_of_ranks() const;

 private:
  friend class ExpertExchange;
  explicit Routing(std::unique_ptr<detail::RoutingState> state);
  std::unique_ptr<detail::RoutingState> state_;
};

// The coding of rows in transit. i8 and f8e4m3 send 8-bit integers or floats with one f32 scale for
// each 128 elements, 0.52 of the bytes of bf16. The sender encodes from bf16, f16 or f32, and the
// reader decodes. If all ranks are on one host, the reader reads the rows without a coding and
// rounds them to the same bits. Let G be the greatest magnitude in a block of 128 elements. In i8
// the error of an element is at most G / 254. In f8e4m3 it is at most 1/16 of the element or G /
// 458752, whichever is larger. The rounding is the same on all ranks, also for rows that stay on
// their rank. A block with an infinity or a NaN becomes NaN. A block with G below 2^-119 (f8e4m3:
// 2^-108) becomes zeros.
enum class RowCoding : std::uint8_t { none, i8, f8e4m3 };

// One kind of data that is sent for each token, as a row.
struct Payload {
  std::span<const std::byte> in = {};  // [tokens][row_bytes]; one_a_slot: [tokens][k][row_bytes]
  // [rows()][row_bytes], or more rows, such as max_rows(); the additional rows are not written.
  std::span<std::byte> out = {};
  std::size_t row_bytes = 0;
  // true: each of the k slots of a token has its own row, as for weights. Not for rank_major.
  bool one_a_slot = false;
  RowCoding coding = RowCoding::none;
  Dtype dtype = Dtype::bf16;  // of the elements; needed for a coding; the same on all ranks
};
inline constexpr int kMaxPayloads = 8;

// The rows that combine() sums, and the memory for the sums.
struct CombineRows {
  std::span<const std::byte> rows = {};  // [rows()][hidden] of dtype, or more rows
  // [tokens][hidden] of dtype. May be `residual`; must not overlap any other buffer.
  std::span<std::byte> out = {};
  Dtype dtype = Dtype::bf16;  // a float
  std::size_t hidden = 0;
  // [tokens][k]; empty: all weights are 1. Must be empty for rank_major, because its rows are
  // already sums.
  std::span<const float> weights = {};
  // The initial value of the sum: [tokens][hidden] of dtype. Empty: zero.
  std::span<const std::byte> residual = {};
  RowCoding coding = RowCoding::none;
};

// Fields marked "not for rank_major" must be empty in that layout. Outputs must not overlap any
// other buffer.
struct CombineGradient {
  std::span<const std::byte> out_gradient = {};  // [tokens][hidden] of dtype
  std::span<std::byte> rows_gradient = {};       // [rows()][hidden] of dtype, or more rows
  Dtype dtype = Dtype::bf16;                     // a float
  std::size_t hidden = 0;
  // [tokens][k]; empty: all are 1; not for rank_major.
  std::span<const float> weights = {};
  std::span<const std::byte> rows = {};    // as in CombineRows; not for rank_major
  std::span<float> weights_gradient = {};  // [tokens][k]; not for rank_major
};

// For mask(): until the next mask().
inline constexpr std::int64_t kUntilNextMask = std::numeric_limits<std::int64_t>::max();

// Dispatches tokens to experts, and combines their outputs.
class UNISONO_EXPORT ExpertExchange {
 public:
  // Collective. The communicator must outlive the exchange and must not be moved.
  // Errors: usage (experts that no rank holds, k < 1, ...), mismatch (options that differ between
  // ranks).
  ExpertExchange(Communicator& communicator, const ExpertExchangeOptions& options);
  ExpertExchange(ExpertExchange&&) noexcept;
  ExpertExchange& operator=(ExpertExchange&&) noexcept;
  ~ExpertExchange();

  // Collective. Makes a routing.
  // Shapes: [tokens][k], row-major, -1: no expert; the number of tokens may differ between ranks
  // and be 0.
  // Errors: usage (an expert that does not exist, a length that k does not divide).
  Routing route(std::span<const std::int32_t> experts);
  Routing route(std::span<const std::int64_t> experts);

  // Local. Returns the most tokens that any rank has routed at once, or
  // ExpertExchangeOptions::max_tokens if that is larger; the same on all ranks.
  std::size_t max_tokens() const;
  // Local. Returns the most rows, padding included, that a routing of max_tokens() tokens per rank
  // can bring to this rank. Buffers of this length serve all such routings.
  std::size_t max_rows() const;

  // Collective. Excludes the experts of some ranks from the next route() on, for example to drain
  // these ranks. The tokens of these experts then use replicas on other ranks. The new mask is the
  // union of the ranks that the calls of all ranks name, and it replaces the old mask. If all ranks
  // pass {}, no rank is excluded any more. Excluded ranks must still make all calls, and may have
  // tokens. After `routes` calls of route() the ranks are included again. If several ranks name the
  // same rank, the greatest of their `routes` counts. Returns the mask in ascending order. Existing
  // routings do not change.
  // Errors: usage (ranks that do not exist, routes < 1, an expert without a remaining rank). After
  // an error the old mask stays.
  std::vector<int> mask(std::span<const int> ranks, std::int64_t routes = kUntilNextMask);
  // Local. Returns the ranks that the next route() excludes.
  std::vector<int> masked() const;

  // Collective. Brings rows to the ranks of their experts. The tokens must not change until
  // dispatch() returns; all peers have read them by then.
  // Shapes: see Payload.
  // In place: no output may overlap an input or another output.
  // Errors: usage (wrong lengths, a routing of another exchange), mismatch (calls, routings or row
  // sizes that differ between ranks).
  void dispatch(const Routing& routing, std::span<const Payload> payloads);
  void dispatch(const Routing& routing, std::initializer_list<Payload> payloads) {
    dispatch(routing, std::span<const Payload>(payloads.begin(), payloads.size()));
  }

  // Collective. Starts dispatch() on a thread of the exchange, concurrently with the caller. Calls
  // run in the order of their start, which must be the same on all ranks. They may overlap other
  // calls of this exchange. Until wait() returns, the routing and all buffers must live, and the
  // rows must not change. wait() throws the errors of dispatch(). The first asynchronous call of an
  // exchange waits until the other ranks make this call, and may throw. Later asynchronous calls
  // return at once. The destructor of the exchange first completes all calls that have been
  // started. The thread of the exchange calls the function that was passed to Request::on_done();
  // this function must not destroy the exchange. The call's label is the label that the caller has
  // at the start of the call, followed by the load if the routing is uneven.
  Request dispatch_async(const Routing& routing, std::span<const Payload> payloads);
  Request dispatch_async(const Routing& routing, std::initializer_list<Payload> payloads) {
    return dispatch_async(routing, std::span<const Payload>(payloads.begin(), payloads.size()));
  }

  // Collective. Returns the address of each row (nullptr: padding) in the memory of its rank. Needs
  // all ranks on one host and `in` as registered memory on all of them. The rows may be read, and
  // no rank may change its tokens, until the next combine() or end_gather() of this exchange
  // returns.
  // Shapes: in: [tokens][row_bytes].
  // Errors: usage (memory that is not registered, ranks on other hosts), those of dispatch().
  std::vector<const std::byte*> gather_list(const Routing& routing, std::span<const std::byte> in,
                                            std::size_t row_bytes);
  void end_gather();

  // Collective. Computes out[t] = residual[t] + the sum of weight * row over the k slots of token
  // t, in the order of the slots. Each product and each partial sum is rounded to f32, or to f64 if
  // the dtype is f64. The final result is rounded to the dtype. In rank_major there is one term for
  // each rank that the token was sent to. The terms are added in the order of the token's first
  // slot on each rank. Slots that were dropped or that name no expert (-1) add nothing.
  // Shapes: see CombineRows.
  // In place: `residual` may be `out`; nothing else may overlap.
  // Errors: usage (wrong lengths, weights that are not finite), those of dispatch().
  void combine(const Routing& routing, const CombineRows& combine);

  // Collective. Starts combine() on a thread of the exchange, with the rules of dispatch_async().
  Request combine_async(const Routing& routing, const CombineRows& combine);

  // Collective. Computes the gradients of combine(): rows_gradient[row] = weight *
  // out_gradient[token] (zero for padding); weights_gradient[t][j] = the inner product of
  // out_gradient[t] and the row of slot j of token t (0 if there is no such row). The inner product
  // is summed in f32. The order of this sum, and so its last bits, depend on the CPU's vector
  // width. rank_major computes rows_gradient only. To get the gradient of dispatch(), call
  // combine() with the rows' gradients and without weights.
  // Shapes: see CombineGradient.
  // In place: no output may overlap another buffer.
  // Errors: those of combine().
  void combine_backward(const Routing& routing, const CombineGradient& gradient);

 private:
  std::unique_ptr<detail::ExpertExchangeState> state_;
};

}  // namespace unisono
