// The buffers of Communicator's typed forms, and functions that build a Call from buffers.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "unisono/call.hpp"
#include "unisono/export.hpp"
#include "unisono/types.hpp"

namespace unisono {

// A buffer: anything from which std::span can be constructed, such as a span of any extent, a
// std::vector, a std::array or an array.
template <typename B>
concept InBuffer = requires(B& buffer) { std::span(buffer); };

// A buffer whose elements outlive the call, so not a temporary that owns its elements.
template <typename B>
concept AsyncInBuffer = InBuffer<B> && requires(B&& buffer) { std::span(std::forward<B>(buffer)); };

// The element type of a buffer, without const.
template <InBuffer B>
using ElementOf = typename decltype(std::span(std::declval<B&>()))::value_type;

// A buffer with writable elements.
template <typename B>
concept OutBuffer =
    AsyncInBuffer<B> &&
    !std::is_const_v<typename decltype(std::span(std::declval<B&>()))::element_type>;

// A buffer with the same element type as another buffer.
template <typename B, typename Other>
concept InBufferLike = InBuffer<B> && std::is_same_v<ElementOf<B>, ElementOf<Other>>;
template <typename B, typename Other>
concept AsyncInBufferLike = AsyncInBuffer<B> && InBufferLike<B, Other>;
template <typename B, typename Other>
concept OutBufferLike = OutBuffer<B> && InBufferLike<B, Other>;

// A buffer that send() and recv() accept without a length. Not a built-in array: in send(array, 4),
// the 4 could be a length or a rank.
template <typename B>
concept Message = InBuffer<B> && std::is_trivially_copyable_v<ElementOf<B>> &&
                  !std::is_array_v<std::remove_reference_t<B>>;

namespace detail {

template <InBuffer B>
std::span<const ElementOf<B>> view(B& buffer) {
  return std::span(buffer);
}
template <InBuffer B>
std::span<ElementOf<B>> out_view(B& buffer) {
  return std::span(buffer);
}

template <typename T>
constexpr Dtype dtype_of() {
  static_assert(kDtypeOf<T>.has_value(), "unisono: no Dtype for this element type");
  return *kDtypeOf<T>;
}
// Throws usage if a span does not have the length that the other arguments require.
UNISONO_EXPORT void expect(Collective collective, const char* what, std::size_t have,
                           std::size_t need);
// Returns the number of elements in a message. Throws usage if this is not a whole number.
UNISONO_EXPORT std::size_t whole_elements(std::size_t bytes, std::size_t element_bytes);
// Compares the buffer lengths of a v-form with its lists.
UNISONO_EXPORT void expect_parts(const Call& call, std::size_t in, std::size_t out, int rank,
                                 int ranks);
template <typename T>
Call vector_call(Collective collective, std::span<const T> in, std::span<T> out,
                 Reduction reduction, int root) {
  expect(collective, "out", out.size(), in.size());
  return {.collective = collective,
          .in = in.data(),
          .out = out.data(),
          .count = in.size(),
          .dtype = dtype_of<T>(),
          .reduction = reduction,
          .root = root};
}
template <typename T>
Call reduce_call(std::span<const T> in, std::span<T> out, Reduction reduction, int root,
                 bool is_root) {
  if (is_root) {
    expect(Collective::reduce, "out", out.size(), in.size());
  }
  return {.collective = Collective::reduce,
          .in = in.data(),
          .out = out.data(),
          .count = in.size(),
          .dtype = dtype_of<T>(),
          .reduction = reduction,
          .root = root};
}
// Builds a call in which one buffer has a part of `count` elements, and the other buffer has the
// parts of all ranks.
template <typename T>
Call part_call(Collective collective, std::span<const T> in, std::span<T> out, std::size_t count,
               int root, Reduction reduction = sum) {
  return {.collective = collective,
          .in = in.data(),
          .out = out.data(),
          .count = count,
          .dtype = dtype_of<T>(),
          .reduction = reduction,
          .root = root};
}
template <typename T>
Call scatter_call(std::span<const T> in, std::span<T> out, int root, int rank, int ranks) {
  if (rank == root) {
    expect(Collective::scatter, "in", in.size(), out.size() * static_cast<std::size_t>(ranks));
  }
  return part_call(Collective::scatter, in, out, out.size(), root);
}
template <typename T>
Call gather_call(std::span<const T> in, std::span<T> out, int root, int rank, int ranks) {
  if (rank == root) {
    expect(Collective::gather, "out", out.size(), in.size() * static_cast<std::size_t>(ranks));
  }
  return part_call(Collective::gather, in, out, in.size(), root);
}
template <typename T>
Call all_gather_call(std::span<const T> in, std::span<T> out, int ranks) {
  expect(Collective::all_gather, "out", out.size(), in.size() * static_cast<std::size_t>(ranks));
  return part_call(Collective::all_gather, in, out, in.size(), 0);
}
template <typename T>
Call reduce_scatter_call(std::span<const T> in, std::span<T> out, int ranks, Reduction reduction) {
  expect(Collective::reduce_scatter, "in", in.size(), out.size() * static_cast<std::size_t>(ranks));
  return part_call(Collective::reduce_scatter, in, out, out.size(), 0, reduction);
}
template <typename T>
Call pair_call(std::span<const T> in, std::span<T> out, int ranks) {
  const auto n = static_cast<std::size_t>(ranks < 1 ? 1 : ranks);  // run() refuses 0 ranks
  expect(Collective::all_to_all, "in", in.size(), in.size() / n * n);
  expect(Collective::all_to_all, "out", out.size(), in.size());
  return {.collective = Collective::all_to_all,
          .in = in.data(),
          .out = out.data(),
          .count = in.size() / n,
          .dtype = dtype_of<T>()};
}
template <typename T>
Call v_call(Collective collective, std::span<const T> in, std::span<T> out,
            std::span<const std::size_t> counts, int root, int rank, int ranks,
            Reduction reduction = sum, std::span<const std::size_t> recv_counts = {}) {
  const Call call{.collective = collective,
                  .in = in.data(),
                  .out = out.data(),
                  .dtype = dtype_of<T>(),
                  .reduction = reduction,
                  .root = root,
                  .counts = counts,
                  .recv_counts = recv_counts};
  expect_parts(call, in.size(), out.size(), rank, ranks);
  return call;
}

}  // namespace detail
}  // namespace unisono
