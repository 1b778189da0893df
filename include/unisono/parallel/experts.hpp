// Mixture of experts: brings the rows of tokens to the ranks of their experts and back.
//
// Thread rule: that of the Communicator, which an Exchange uses and which must outlive it. All
// ranks of the group make the same calls in the same order. Errors of arguments are told to all
// ranks in the same words (ErrorCode::usage) and leave everything usable; those of the communicator
// are as there.
//
// A row goes where prefix sums over (expert, source rank, token, choice) say, so that results are
// the same bits whatever the timing and the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"
#include "unisono/types.hpp"

namespace unisono::parallel {

// How the rows that a rank receives lie.
enum class ExpertLayout : std::uint8_t {
  expert_major,  // the rows of one expert together, padded with zero rows to the alignment
  rank_major,    // by source rank and token, each token once
  flat           // by source rank, token and choice: one row for each choice of an expert here
};

struct ExchangeOptions {
  int experts = 0;
  int k = 0;  // choices of a token
  std::vector<int> places =
      {};  // by expert: its rank; empty: contiguous blocks, the first ones larger
  ExpertLayout layout = ExpertLayout::expert_major;
  std::int64_t alignment = 1;  // expert_major: the rows of an expert are a multiple of this
  // Rows that an expert takes at most; 0: all. It takes the first ones in the order (source rank,
  // token, choice), so that the same are dropped for any number of ranks that hold the tokens in
  // one order.
  std::int64_t capacity = 0;
};

// Where a received row comes from.
struct RowSource {
  int rank = -1;    // -1: a row of padding
  int choice = -1;  // -1: rank_major, where a row stands for all choices of this rank
  std::int64_t token = -1;
};

namespace detail {
struct ExchangeState;
struct RoutingState;
}  // namespace detail

// Who sends which rows to whom. Can be used for any number of exchanges, for the backward pass too.
class UNISONO_EXPORT Routing {
 public:
  explicit Routing(std::unique_ptr<const detail::RoutingState> state);
  Routing(Routing&&) noexcept;
  Routing& operator=(Routing&&) noexcept;
  ~Routing();
  std::int64_t tokens() const;                 // of this rank
  std::int64_t rows() const;                   // that this rank receives, with padding
  std::span<const RowSource> sources() const;  // by received row
  // expert_major: by expert of this rank, in the order of their numbers, its first row; then
  // rows().
  std::span<const std::int64_t> expert_offsets() const;
  // By expert, of all ranks: the rows that it gets, without padding.
  std::span<const std::int64_t> loads() const;
  std::int64_t dropped() const;  // choices of all ranks that exceeded the capacity

 private:
  friend class Exchange;
  std::unique_ptr<const detail::RoutingState> state_;
};

// Something that travels with the tokens. `in`: tokens() rows, `out`: rows() rows; they must not
// overlap. Row sizes are the same on all ranks.
struct Payload {
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t row_bytes = 0;
};

struct Combine {
  const void* in = nullptr;  // rows() rows of `hidden` elements
  void* out = nullptr;       // tokens() rows of `hidden` elements
  std::size_t hidden = 0;
  Dtype dtype = Dtype::bf16;  // f32, bf16 or f16
  // tokens() x k; empty: the experts have applied them, as they must for rank_major. NaN is an
  // error where the choice has an expert.
  std::span<const float> weights = {};
  const void* add = nullptr;  // tokens() rows that are added last (a residual), or nullptr
};

class UNISONO_EXPORT Exchange {
 public:
  // All ranks call it with the same options.
  Exchange(Communicator& communicator, const ExchangeOptions& options);
  Exchange(Exchange&&) noexcept;
  Exchange& operator=(Exchange&&) noexcept;
  ~Exchange();

  // The experts of this rank's tokens: tokens x k, -1 for none. An expert that is named twice gets
  // two rows. Cost: all ranks learn all choices (4 bytes each).
  Routing route(std::span<const std::int32_t> experts);
  Routing route(std::span<const std::int64_t> experts);

  // A token that several experts of one rank want travels once.
  void dispatch(const Routing& routing, std::span<const Payload> payloads);

  // Sums the rows of each token in f32 in the order of its choices, times their weights, then adds
  // `add`, and rounds once. A token without an expert becomes 0, or `add`. rank_major: one row a
  // rank, in the order of the first choice that it has. Without weights this is the backward pass
  // of dispatch.
  void combine(const Routing& routing, const Combine& arguments);

 private:
  std::unique_ptr<detail::ExchangeState> state_;
};

}  // namespace unisono::parallel
