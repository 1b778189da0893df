// Mixture of experts: dispatch brings the tokens of every rank to the ranks of their experts,
// combine brings the experts' outputs back and sums them with their weights.
//
//   unisono::Exchange exchange(comm, {.experts = 64, .k = 8});
//   // chosen: [tokens][k], -1: none
//   const unisono::Routing routing = exchange.route(chosen);
//   std::vector<std::byte> rows(routing.rows() * row_bytes);
//   exchange.dispatch(routing, {{.in = tokens, .out = rows, .row_bytes = row_bytes}});
//   ... experts compute rows of routing.first_row(e), routing.rows_of(e) ...
//   exchange.combine(routing, {.rows = outputs, .out = sums, .dtype = unisono::Dtype::bf16,
//                              .hidden = 2048, .weights = weights});
//
// The calls of an Exchange are collective, but for the destructor, max_tokens(), max_rows() and
// masked(): all ranks of the communicator make them in the same order, one thread a rank. What one
// rank does wrong is an error with the same sentence on all ranks; the exchange, its routings and
// all memory of the caller then are as before the call, and can be used on. Only halves that do not
// fit (a second start, a finish without one) are errors of their rank alone, before it sends
// anything. Failures of a rank are those of the communicator.
//
// Where a row goes follows from prefix sums over (expert, source rank, token): results have the
// same bits whatever the timing and the transport. Ranks of one host read tokens and rows where
// they lie, if they are registered memory (Communicator::allocate, register_buffer); other memory
// is copied once into memory of the exchange. Between hosts rows travel by all_to_all_v: a token
// once to each host that has one of its experts.
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

// How the rows that a rank receives lie.
//   expert_major  the rows of one expert together, by source rank, token and place among the k;
//                 each expert begins at a multiple of the alignment, and what is between is zero
//   rank_major    one row a source rank and token, however many of its experts are here; experts()
//                 says which. The caller sums over the experts of this rank, with their weights
//   flat          one row a source rank, token and place among the k, without gaps
enum class ExpertLayout : std::uint8_t { expert_major, rank_major, flat };

struct ExchangeOptions {
  int experts = 0;
  int k = 1;  // experts of a token
  ExpertLayout layout = ExpertLayout::expert_major;
  int alignment = 1;  // of an expert's first row, in rows: expert_major
  // At most so many rows for one expert, counted over all ranks: the first in the order of source
  // rank, token, place among the k. So the same tokens are dropped however many ranks hold them in
  // this order. -1: all are taken.
  std::int64_t capacity = -1;
  // By rank, its experts. One that is at several ranks has replicas, which its tokens use in turn.
  // Empty: the experts are cut into even, contiguous parts, the first ones being larger.
  std::vector<std::vector<int>> experts_of_rank = {};
  // Tokens that a rank is to route at once, and the bytes of a token's row, where they are known:
  // then what the exchange needs for rows of an even routing is there from the beginning. More of
  // both are no error: the memory grows, for tokens on all ranks alike.
  std::size_t max_tokens = 0;
  std::size_t row_bytes = 0;
};

// A row that has come: whose it is.
struct RowSource {
  int rank = -1;  // -1: padding
  std::int64_t token = -1;
  int slot = -1;  // its place among the k; of rank_major the first one
};

// The options of an exchange of the ranks that Communicator::shrink() has left: each keeps its
// experts, and those of the lost ranks are served by their replicas. Local; the same on all ranks.
// Errors: usage (a communicator that was not shrunk from one of as many ranks, an expert whose last
// rank is lost).
UNISONO_EXPORT ExchangeOptions after_shrink(const ExchangeOptions& options,
                                            const Communicator& survivors, int ranks_before);

namespace detail {
struct ExchangeState;
struct RoutingState;
}  // namespace detail

// Who sends which token to whom: made by route(), used any number of times, also for the backward
// pass. Holds no memory of the caller. Must not be used with another exchange.
class UNISONO_EXPORT Routing {
 public:
  explicit Routing(std::unique_ptr<detail::RoutingState> state);
  Routing(Routing&&) noexcept;
  Routing& operator=(Routing&&) noexcept;
  ~Routing();

  std::size_t tokens() const;  // of this rank
  std::size_t rows() const;    // that a dispatch writes here, with the padding
  // Where the rows of the expert `local` are, counted among those of this rank; expert_major only.
  // Errors: usage.
  std::size_t first_row(int local) const;
  std::size_t rows_of(int local) const;
  // Experts of this rank, by `local`.
  std::span<const int> experts_here() const;
  // By row: whose it is.
  std::span<const RowSource> sources() const;
  // rank_major: [rows][k], the `local` number of each of the token's experts, -1 for those of other
  // ranks. Else by row, one.
  std::span<const int> experts() const;
  // By expert: tokens on all ranks that chose it, and how many were dropped for the capacity.
  std::span<const std::int64_t> chosen() const;
  std::int64_t dropped() const;
  // By rank: rows that dispatch brings there, without padding. Their maximum over their mean is the
  // imbalance.
  std::span<const std::int64_t> rows_of_ranks() const;

 private:
  friend class Exchange;
  std::unique_ptr<detail::RoutingState> state_;
};

// How rows travel. i8, f8e4m3: as 8-bit integers or floats with one f32 scale for each 128
// elements, 0.52 of the bytes of bf16; made from bf16, f16 or f32 where a row is sent, and undone
// where it is read. Where all ranks are on one host, rows are read as they are and rounded to the
// same bits. With G, the greatest magnitude of its 128, each element is then off by at most
// G / 254 (i8), or by 1/16 of itself or G / 458752, what is more (f8e4m3), on all ranks alike, also
// for rows that stay on their rank. 128 elements with an infinity or a NaN become NaN.
enum class RowCoding : std::uint8_t { none, i8, f8e4m3 };

// One kind of rows that travels with the tokens.
struct Payload {
  std::span<const std::byte> in = {};  // [tokens][row_bytes]; one_a_slot: [tokens][k][row_bytes]
  // [rows()][row_bytes], or more rows, such as max_rows(): then the rest stays as it is.
  std::span<std::byte> out = {};
  std::size_t row_bytes = 0;
  // Each place among the k has an element of its own, as weights do. Not for rank_major.
  bool one_a_slot = false;
  RowCoding coding = RowCoding::none;
  Dtype dtype = Dtype::bf16;  // of the rows' elements, for a coding; the same on all ranks
};
inline constexpr int kMaxPayloads = 8;

struct CombineRows {
  std::span<const std::byte> rows = {};  // [rows()][hidden] of dtype, or more rows
  // [tokens][hidden] of dtype. Overlaps nothing that is given, but may be `residual`.
  std::span<std::byte> out = {};
  Dtype dtype = Dtype::bf16;  // a float
  std::size_t hidden = 0;
  // [tokens][k], or empty: all are 1. Must be empty for rank_major, whose rows are sums already.
  std::span<const float> weights = {};
  // [tokens][hidden] of dtype, or empty: what the sum begins with. May be `out`.
  std::span<const std::byte> residual = {};
  RowCoding coding = RowCoding::none;
};

// What is not for rank_major must be empty there. What is written overlaps nothing else here.
struct CombineGradient {
  std::span<const std::byte> out_gradient = {};  // [tokens][hidden] of dtype
  std::span<std::byte> rows_gradient = {};       // [rows()][hidden] of dtype, or more rows
  Dtype dtype = Dtype::bf16;                     // a float
  std::size_t hidden = 0;
  // [tokens][k], or empty: all are 1; not for rank_major.
  std::span<const float> weights = {};
  std::span<const std::byte> rows = {};    // as of combine; not for rank_major
  std::span<float> weights_gradient = {};  // [tokens][k]; not for rank_major
};

// For mask(): until the next one.
inline constexpr std::int64_t kUntilMaskedAnew = std::numeric_limits<std::int64_t>::max();

class UNISONO_EXPORT Exchange {
 public:
  // The communicator must outlive the exchange, and not be moved. Errors: usage (experts that
  // nobody holds, k < 1, ...), mismatch (options that differ between ranks).
  Exchange(Communicator& communicator, const ExchangeOptions& options);
  Exchange(Exchange&&) noexcept;
  Exchange& operator=(Exchange&&) noexcept;
  ~Exchange();

  // Shapes: [tokens][k], row-major; the number of tokens may differ between ranks and be 0.
  // Errors: usage (an expert that does not exist, a length that k does not divide).
  Routing route(std::span<const std::int32_t> experts);
  Routing route(std::span<const std::int64_t> experts);

  // The most tokens that a rank has routed at once, or ExchangeOptions::max_tokens if that is more:
  // the same on all ranks.
  std::size_t max_tokens() const;
  // The most rows, with padding, that a routing of max_tokens() tokens a rank can bring to this
  // rank, whatever is chosen: buffers of this length serve all of them.
  std::size_t max_rows() const;

  // Ranks whose experts get nothing from the next route() on, as they are to be drained: their
  // replicas on other ranks serve instead. The mask is what any rank names, united, and takes the
  // place of the one before; {} on all ranks lets all in again. Ranks that are out go on to make
  // all calls, and may have tokens. `routes`: for so many route()s they are out; the next one has
  // them again, on all ranks, with no further call. When several ranks name the same one, the
  // greatest number counts. Returns the mask, ascending. Routings that are there already stay as
  // they are. Errors: usage (ranks that do not exist, routes < 1, an expert without a rank that is
  // left: then the mask before stays).
  std::vector<int> mask(std::span<const int> ranks, std::int64_t routes = kUntilMaskedAnew);
  // The ranks that are out at the next route(). Local.
  std::vector<int> masked() const;

  // Brings rows to the ranks of their experts. Tokens must not change until it returns on this
  // rank; all peers have read them then. An `out` must not overlap an `in` or another `out`.
  // Errors: usage (lengths, another exchange's routing), mismatch (other calls, routings or row
  // sizes).
  void dispatch(const Routing& routing, std::span<const Payload> payloads);
  void dispatch(const Routing& routing, std::initializer_list<Payload> payloads) {
    dispatch(routing, std::span<const Payload>(payloads.begin(), payloads.size()));
  }

  // The halves of dispatch(): start says that the tokens are there, and moves them between hosts;
  // finish writes them to `out`. In between the tokens must not change, buffers and the routing
  // must live, and no other call of this exchange is allowed but for asynchronous ones. All ranks
  // make the call in halves, or none. On one host start never waits;
  // between hosts it waits until the others start. Errors: as of dispatch(), from either; usage
  // from finish, before it writes (tokens that have changed; of more than 4 KiB 512 words are
  // looked at).
  void start_dispatch(const Routing& routing, std::span<const Payload> payloads);
  void start_dispatch(const Routing& routing, std::initializer_list<Payload> payloads) {
    start_dispatch(routing, std::span<const Payload>(payloads.begin(), payloads.size()));
  }
  void finish_dispatch();

  // dispatch() that a thread of the exchange makes, beside all that the caller does. Calls run in
  // the order in which they are started, which is the same on all ranks; apart from that they do
  // not meet other calls of this exchange, halves among them. The routing and all buffers must
  // live, and rows must not change, until wait() has returned, which throws what dispatch() would.
  // The first asynchronous call of an exchange waits for the others to make it, and can throw;
  // later ones return at once. The destructor of the exchange makes all that have been started; a
  // function of Request::on_done(), which the thread calls, must not run it. The label that the
  // caller has when it starts a call is the call's, with the load of an uneven routing behind it.
  Request dispatch_async(const Routing& routing, std::span<const Payload> payloads);
  Request dispatch_async(const Routing& routing, std::initializer_list<Payload> payloads) {
    return dispatch_async(routing, std::span<const Payload>(payloads.begin(), payloads.size()));
  }

  // Instead of rows, their addresses, by row (nullptr: padding): in the memory of their ranks,
  // which all have this memory registered, on one host. They may be read, and no rank may change
  // its tokens, until the next combine() of this exchange or end_gather() returns. Errors: usage
  // (memory that is not registered, ranks of other hosts), and as of dispatch().
  std::vector<const std::byte*> gather_list(const Routing& routing, std::span<const std::byte> in,
                                            std::size_t row_bytes);
  void end_gather();

  // out[t] = residual[t] + sum over the k places of weight * row, from left to right in f32 (f64 of
  // f64), products and sums rounded each, then once to the dtype. rank_major: over the ranks, in
  // the order of the token's first place at each. Dropped and absent places (-1) add nothing.
  // Errors: usage (lengths, weights that are not finite), and as of dispatch().
  void combine(const Routing& routing, const CombineRows& combine);

  // The halves of combine(), as those of dispatch(): in between rows, weights and residual must not
  // change.
  void start_combine(const Routing& routing, const CombineRows& combine);
  void finish_combine();

  // combine() as dispatch_async() is dispatch().
  Request combine_async(const Routing& routing, const CombineRows& combine);

  // The gradients of combine: rows_gradient[row] = weight * out_gradient[token] (padding is zero),
  // weights_gradient[t][j] = the inner product of out_gradient[t] and the row of place j (0 where
  // it has none), in f32 in the order of this machine's instruction set. rank_major: only the
  // first. The gradient of dispatch is combine() of the rows' gradients without weights. Errors: as
  // of combine().
  void combine_backward(const Routing& routing, const CombineGradient& gradient);

 private:
  std::unique_ptr<detail::ExchangeState> state_;
};

}  // namespace unisono
