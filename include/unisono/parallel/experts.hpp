// Mixture of experts. Dispatch sends each token to the ranks that hold the experts chosen for the
// token. Combine returns the outputs of these experts to the token's rank and adds them, each
// multiplied by its weight.
//
//   unisono::ExpertExchange exchange(comm, {.experts = 64, .k = 8});
//   // chosen: [tokens][k]; -1: no expert
//   const unisono::Routing routing = exchange.route(chosen);
//   std::vector<std::byte> rows(routing.rows() * row_bytes);
//   exchange.dispatch(routing, {{.in = tokens, .out = rows, .row_bytes = row_bytes}});
//   ... experts compute rows of routing.first_row(e), routing.rows_of(e) ...
//   exchange.combine(routing, {.rows = outputs, .out = sums, .dtype = unisono::Dtype::bf16,
//                              .hidden = 2048, .weights = weights});
//
// All ranks of the communicator make the calls of an ExpertExchange in the same order, because the
// calls are collective. Only max_tokens(), max_rows(), masked() and the destructor are local.
//
// Threads: one thread at a time.
//
// Errors: if one rank passes wrong arguments, all ranks get the same error. The exchange, its
// routings and the caller's memory are then unchanged, and the exchange remains usable. If a rank
// dies, the other ranks get the errors that Communicator::run() lists.
//
// Prefix sums over (expert, source rank, token) determine the index of each row. Results therefore
// have the same bits for any timing and any transport. If tokens or rows are in registered memory
// (Communicator::allocate, register_buffer), the ranks on one host read them directly. Data in
// other memory is first copied into memory of the exchange. Between hosts, all_to_all_v sends the
// rows: each token once to each host that holds at least one of the token's experts.
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
//                 The index of each expert's first row is a multiple of the alignment. Rows of
//                 zeros fill the gaps
//   rank_major    one row for each token that the rank receives, even if the token chose several
//                 experts of this rank. experts() lists the chosen experts of each row. The caller
//                 adds the outputs of these experts, each multiplied by its weight
//   flat          one row for each slot that names an expert of this rank, without gaps, ordered
//                 by source rank, token and slot
enum class ExpertLayout : std::uint8_t { expert_major, rank_major, flat };

// Options of an ExpertExchange. All ranks pass the same options.
struct ExpertExchangeOptions {
  int experts = 0;
  int k = 1;  // experts per token
  ExpertLayout layout = ExpertLayout::expert_major;
  // expert_major: the index of each expert's first row is a multiple of this number.
  int alignment = 1;
  // The largest number of rows that one expert accepts, counted over all ranks; -1: no limit. The
  // expert accepts rows in the order of source rank, token and slot, and drops the rows beyond the
  // capacity. The dropped tokens depend on the order of all tokens, not on the number of ranks that
  // hold the tokens in this order.
  std::int64_t capacity = -1;
  // The experts that each rank holds. Several ranks may hold replicas of one expert; the tokens of
  // this expert then use the replicas in turn. Empty: each rank holds consecutive experts, and all
  // ranks hold the same number. If the number of experts is not divisible by the number of ranks,
  // each of the first ranks holds one expert more.
  std::vector<std::vector<int>> experts_of_rank = {};
  // The largest number of tokens that a rank will route at once, and the bytes of a token's row. If
  // both are set, the exchange allocates memory in advance, enough for evenly spread tokens. More
  // tokens or larger rows are no error: the memory then grows on all ranks.
  std::size_t max_tokens = 0;
  std::size_t row_bytes = 0;
};

// The source of a received row.
struct RowSource {
  int rank = -1;  // -1: padding
  std::int64_t token = -1;
  int slot = -1;  // rank_major: the token's first slot on this rank
};

// Local. Returns the options of a new exchange on the ranks that remain after
// Communicator::shrink(). Each remaining rank keeps its experts. If a lost rank held an expert, the
// tokens of this expert use its replicas on other ranks. All ranks get the same options.
// Threads: any.
// Errors: usage if `survivors` was not shrunk from `ranks_before` ranks, or if all ranks that held
// an expert are lost.
UNISONO_EXPORT ExpertExchangeOptions after_shrink(const ExpertExchangeOptions& options,
                                                  const Communicator& survivors, int ranks_before);

namespace detail {
struct ExpertExchangeState;
struct RoutingState;
}  // namespace detail

// The ranks that each token is sent to. route() makes a routing, which can be used any number of
// times, also for the backward pass. Only the exchange that made a routing can use it. A routing
// keeps no reference to the caller's memory. All members are local.
class UNISONO_EXPORT Routing {
 public:
  Routing(Routing&&) noexcept;
  Routing& operator=(Routing&&) noexcept;
  ~Routing();

  std::size_t tokens() const;  // tokens of this rank
  std::size_t rows() const;    // rows that a dispatch writes on this rank, padding included
  // Return the first row and the number of rows of the expert experts_here()[local]. Only for
  // expert_major.
  // Errors: usage.
  std::size_t first_row(int local) const;
  std::size_t rows_of(int local) const;
  // Returns the global numbers of this rank's experts.
  std::span<const int> experts_here() const;
  // Returns the source of each row.
  std::span<const RowSource> sources() const;
  // Returns the expert of each row, as an index into experts_here(); -1: padding. rank_major:
  // returns [rows][k], the expert of each slot; -1: the slot's expert is not on this rank.
  std::span<const int> experts() const;
  // chosen() returns, for each expert, the number of tokens on all ranks that chose the expert.
  // dropped() returns the number of choices that were dropped because of the capacity.
  std::span<const std::int64_t> chosen() const;
  std::int64_t dropped() const;
  // Returns the number of rows that a dispatch brings to each rank, without padding. The largest of
  // these numbers divided by their mean is the imbalance.
  std::span<const std::int64_t> rows_of_ranks() const;

 private:
  friend class ExpertExchange;
  explicit Routing(std::unique_ptr<detail::RoutingState> state);
  std::unique_ptr<detail::RoutingState> state_;
};

// The coding of rows in transit. i8 sends 8-bit integers, and f8e4m3 sends 8-bit floats. Both send
// one f32 scale for each block of 128 elements: in all 0.52 times the bytes of bf16. The sender
// encodes bf16, f16 or f32, and the receiver decodes. If all ranks are on one host, no rank
// encodes: the receiver reads the rows directly and rounds the elements to the same bits. Rows that
// stay on their rank are rounded in the same way. Let G be the greatest magnitude in a block.
//   i8      the error of an element is at most G / 254
//   f8e4m3  the error of an element is at most 1/16 of the element or G / 458752, whichever is
//           larger
// A block that contains an infinity or a NaN becomes NaN. A block with G below 2^-119 (f8e4m3:
// 2^-108) becomes zeros.
enum class RowCoding : std::uint8_t { none, i8, f8e4m3 };

// Data that dispatch() sends for each token, as one row.
struct Payload {
  std::span<const std::byte> in = {};  // [tokens][row_bytes]; one_a_slot: [tokens][k][row_bytes]
  // [rows()][row_bytes]. May have more rows, such as max_rows(); dispatch() does not write them.
  std::span<std::byte> out = {};
  std::size_t row_bytes = 0;
  // true: each of the k slots of a token has its own row, for example its weight. Not for
  // rank_major.
  bool one_a_slot = false;
  RowCoding coding = RowCoding::none;
  Dtype dtype = Dtype::bf16;  // type of the elements; needed for a coding; same on all ranks
};
inline constexpr int kMaxPayloads = 8;

// The rows that combine() sums, and the memory for the sums.
struct CombineRows {
  std::span<const std::byte> rows = {};  // [rows()][hidden] of dtype, or more rows
  // [tokens][hidden] of dtype. May be `residual`; must not overlap any other buffer.
  std::span<std::byte> out = {};
  Dtype dtype = Dtype::bf16;  // a float type
  std::size_t hidden = 0;
  // [tokens][k]. Empty: all weights are 1. Must be empty for rank_major, whose rows are already
  // weighted sums.
  std::span<const float> weights = {};
  // [tokens][hidden] of dtype: the initial values of the sums. Empty: zeros.
  std::span<const std::byte> residual = {};
  RowCoding coding = RowCoding::none;
};

// The arguments of combine_backward(). Fields marked "not for rank_major" must be empty in that
// layout. Outputs must not overlap any other buffer.
struct CombineGradient {
  std::span<const std::byte> out_gradient = {};  // [tokens][hidden] of dtype
  std::span<std::byte> rows_gradient = {};       // [rows()][hidden] of dtype, or more rows
  Dtype dtype = Dtype::bf16;                     // a float type
  std::size_t hidden = 0;
  // [tokens][k]. Empty: all weights are 1. Not for rank_major.
  std::span<const float> weights = {};
  std::span<const std::byte> rows = {};    // as in CombineRows; not for rank_major
  std::span<float> weights_gradient = {};  // [tokens][k]; not for rank_major
};

// The default of mask(): the ranks stay excluded until the next mask().
inline constexpr std::int64_t kUntilNextMask = std::numeric_limits<std::int64_t>::max();

// Dispatches tokens to experts, and combines the outputs of the experts.
class UNISONO_EXPORT ExpertExchange {
 public:
  // Collective. The communicator must outlive the exchange and must not be moved.
  // Errors: usage if no rank holds some expert, if k < 1, or for other wrong options; mismatch if
  // the options differ between ranks.
  ExpertExchange(Communicator& communicator, const ExpertExchangeOptions& options);
  ExpertExchange(ExpertExchange&&) noexcept;
  ExpertExchange& operator=(ExpertExchange&&) noexcept;
  ~ExpertExchange();

  // Collective. Makes a routing.
  // Shapes: [tokens][k], row-major; -1: no expert. The number of tokens may differ between ranks
  // and may be 0.
  // Errors: usage if an expert does not exist, or if k does not divide the length of `experts`.
  Routing route(std::span<const std::int32_t> experts);
  Routing route(std::span<const std::int64_t> experts);

  // Local. Returns the largest number of tokens that any rank has routed at once, or
  // ExpertExchangeOptions::max_tokens if it is larger. All ranks get the same number.
  std::size_t max_tokens() const;
  // Local. Returns the largest number of rows, padding included, that this rank can receive if each
  // rank routes max_tokens() tokens. Buffers of this length serve all such routings.
  std::size_t max_rows() const;

  // Collective. Excludes the experts of some ranks from the next route() on, for example to drain
  // these ranks. The tokens of these experts then use replicas on other ranks.
  // Each rank names ranks in its call. The union of these ranks is the new mask, which replaces the
  // old mask; if all ranks pass {}, no rank is excluded. Returns the mask in ascending order.
  // A rank is included again after `routes` calls of route(). If several calls name the same rank,
  // the greatest `routes` of these calls counts. Excluded ranks must still make all calls, and may
  // have tokens. Existing routings do not change.
  // Errors: usage if a rank does not exist, if routes < 1, or if no rank remains for some expert.
  // After an error the old mask stays.
  std::vector<int> mask(std::span<const int> ranks, std::int64_t routes = kUntilNextMask);
  // Local. Returns the ranks that the next route() excludes.
  std::vector<int> masked() const;

  // Collective. Sends rows to the ranks of their experts. The tokens must not change until
  // dispatch() returns. By then all peers have read them.
  // Shapes: see Payload.
  // In place: no output may overlap an input or another output.
  // Errors: usage for wrong lengths or a routing of another exchange; mismatch if calls, routings
  // or row sizes differ between ranks.
  void dispatch(const Routing& routing, std::span<const Payload> payloads);
  void dispatch(const Routing& routing, std::initializer_list<Payload> payloads) {
    dispatch(routing, std::span<const Payload>(payloads.begin(), payloads.size()));
  }

  // Collective. Starts dispatch() on a thread of the exchange, concurrently with the caller. Calls
  // run in the order in which they were started. All ranks must start them in the same order. They
  // may overlap other calls of this exchange.
  // Until wait() returns, the routing and all buffers must live, and the tokens must not change.
  // wait() throws the errors of dispatch(). The destructor of the exchange first completes all
  // calls that have been started.
  // The first asynchronous call of an exchange waits until the other ranks make this call, and may
  // throw. Later asynchronous calls return at once.
  // The thread of the exchange calls the function that was passed to Request::on_done(). This
  // function must not destroy the exchange.
  // The label of the call is the caller's label when the call starts, followed by the load if the
  // routing is uneven.
  Request dispatch_async(const Routing& routing, std::span<const Payload> payloads);
  Request dispatch_async(const Routing& routing, std::initializer_list<Payload> payloads) {
    return dispatch_async(routing, std::span<const Payload>(payloads.begin(), payloads.size()));
  }

  // Collective. Returns the address of each row in the memory of the row's source rank; nullptr:
  // padding. Needs all ranks on one host, and `in` in registered memory on all ranks. Until the
  // next combine() or end_gather() of this exchange returns, the rows may be read, and no rank may
  // change its tokens.
  // Shapes: in: [tokens][row_bytes].
  // Errors: usage if the memory is not registered or a rank is on another host; those of
  // dispatch().
  std::vector<const std::byte*> gather_list(const Routing& routing, std::span<const std::byte> in,
                                            std::size_t row_bytes);
  void end_gather();

  // Collective. Computes out[t] = residual[t] + the sum of weight * row over the k slots of token
  // t, in the order of the slots. Slots that were dropped or that name no expert (-1) add nothing.
  // In rank_major the sum has one term for each rank that the token was sent to. These terms are
  // added in the order of the token's first slot on each rank.
  // Each product and each partial sum is rounded to f32, or to f64 if the dtype is f64. The final
  // result is rounded to the dtype.
  // Shapes: see CombineRows.
  // In place: `residual` may be `out`; nothing else may overlap.
  // Errors: usage for wrong lengths or weights that are not finite; those of dispatch().
  void combine(const Routing& routing, const CombineRows& combine);

  // Collective. Starts combine() on a thread of the exchange, with the rules of dispatch_async().
  Request combine_async(const Routing& routing, const CombineRows& combine);

  // Collective. Computes the gradients of combine():
  //   rows_gradient[row] = weight * out_gradient[token], or zero for padding
  //   weights_gradient[t][j] = the inner product of out_gradient[t] and the row of slot j of
  //                            token t, or 0 if there is no such row
  // rank_major computes rows_gradient only. The inner product is summed in f32, in an order that
  // depends on the CPU's vector width. Its last bits therefore depend on the CPU. To get the
  // gradient of dispatch(), pass the gradients of its output rows to combine(), without weights.
  // Shapes: see CombineGradient.
  // In place: no output may overlap another buffer.
  // Errors: those of combine().
  void combine_backward(const Routing& routing, const CombineGradient& gradient);

 private:
  std::unique_ptr<detail::ExpertExchangeState> state_;
};

}  // namespace unisono
