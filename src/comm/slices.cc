#include "comm/slices.h"

#include <algorithm>

namespace unisono::comm {
namespace {

constexpr std::size_t kLeastBytes = 32 << 10;  // the least work that makes a thread worth waking
constexpr std::size_t kLine = 64;

const void* at(const void* base, std::size_t element, Dtype dtype) {
  return base == nullptr ? nullptr : static_cast<const std::byte*>(base) + element * size_of(dtype);
}

void* at(void* base, std::size_t element, Dtype dtype) {
  return base == nullptr ? nullptr : static_cast<std::byte*>(base) + element * size_of(dtype);
}

}  // namespace

int movers_of(std::size_t count, Dtype dtype, int threads) {
  const std::size_t useful = count / (kLeastBytes / size_of(dtype));
  return static_cast<int>(std::clamp<std::size_t>(useful, 1, static_cast<std::size_t>(threads)));
}

Slice slice_of(std::size_t count, Dtype dtype, int movers, int thread) {
  if (thread >= movers) {
    return {};
  }
  const std::size_t line = std::max<std::size_t>(kLine / size_of(dtype), 1);
  const std::size_t lines = count / line;
  const auto number = static_cast<std::size_t>(thread);
  const auto of = static_cast<std::size_t>(movers);
  // If the lines do not divide evenly, the first threads take one more line each.
  const auto begin = [&](std::size_t i) { return lines / of * i + std::min(i, lines % of); };
  const std::size_t first = begin(number) * line;
  const std::size_t end = number + 1 == of ? count : begin(number + 1) * line;
  return {.first = first, .count = end - first};
}

Call sliced(const Call& whole, Slice slice, Parts& parts) {
  Call call = whole;
  if (whole.collective == Collective::all_reduce || whole.collective == Collective::broadcast) {
    call.in = at(whole.in, slice.first, whole.dtype);
    call.out = at(whole.out, slice.first, whole.dtype);
    call.count = slice.count;
    return call;
  }
  std::fill(parts.counts.begin(), parts.counts.end(), slice.count);
  for (std::size_t i = 0; i < parts.displs.size(); ++i) {
    parts.displs[i] = i * whole.count + slice.first;
  }
  call.count = 0;
  call.counts = parts.counts;
  call.displs = parts.displs;
  switch (whole.collective) {
    case Collective::all_gather:
      call.collective = Collective::all_gather_v;
      call.in = at(whole.in, slice.first, whole.dtype);
      break;
    case Collective::reduce_scatter:
      call.collective = Collective::reduce_scatter_v;
      call.out = at(whole.out, slice.first, whole.dtype);
      break;
    default:
      call.collective = Collective::all_to_all_v;
      call.recv_counts = parts.counts;
      call.recv_displs = parts.displs;
      break;
  }
  return call;
}

}  // namespace unisono::comm
