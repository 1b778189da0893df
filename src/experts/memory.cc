#include "experts/memory.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>

#include "experts/rows.h"

namespace unisono::experts {
namespace {

// Touches the memory, which avoids page faults later.
void touch(detail::ExpertExchangeState& state, Region& region, std::size_t bytes,
           Mistake& mistake) {
  if (region.bytes().size() >= bytes || !mistake.text.empty()) {
    return;
  }
  const std::span<std::byte> memory = shared_memory(state, region, bytes, mistake);
  std::fill(memory.begin(), memory.end(), std::byte{0});
}

void reserve_here(detail::ExpertExchangeState& state, std::size_t tokens, Mistake& mistake) {
  const std::size_t row_bytes = state.options.row_bytes;
  const auto most = static_cast<std::size_t>(std::max(state.options.k, state.comm->size()));
  if (row_bytes > std::numeric_limits<std::size_t>::max() / (tokens * most)) {
    throw std::length_error("more bytes than can be addressed");
  }
  const std::size_t even = tokens * static_cast<std::size_t>(state.options.k) * row_bytes;
  const std::size_t here = state.hosts.here().size();
  if (state.is_read()) {
    touch(state, state.staged[0], even, mistake);
  }
  if (state.hosts.single()) {
    return;
  }
  const std::size_t others = static_cast<std::size_t>(state.comm->size()) - here;
  const std::size_t taken = tokens * ((others + here - 1) / here) * row_bytes;
  if (state.is_read()) {
    touch(state, state.relayed[0], taken, mistake);
  }
  state.sent[0].own.reserve(std::max(taken, even));
  state.sent[0].outgoing.reserve(even);
}

}  // namespace

std::size_t most_rows(const detail::ExpertExchangeState& state, std::size_t tokens) {
  const ExpertExchangeOptions& options = state.options;
  const auto rank = static_cast<std::size_t>(state.comm->rank());
  const std::size_t experts_here = state.physical_experts.experts_of_rank[rank].size();
  const std::size_t all = tokens * static_cast<std::size_t>(state.comm->size());
  std::size_t rows = experts_here == 0 ? 0 : all * static_cast<std::size_t>(options.k);
  const auto capacity = static_cast<std::size_t>(options.capacity);
  if (options.capacity >= 0 && experts_here != 0 && capacity < rows / experts_here + 1) {
    rows = std::min(rows, experts_here * capacity);
  }
  switch (options.layout) {
    case ExpertLayout::expert_major:
      return rows + std::min(rows, experts_here) * static_cast<std::size_t>(options.alignment - 1);
    case ExpertLayout::rank_major:
      return std::min(rows, all);
    case ExpertLayout::flat:
      break;
  }
  return rows;
}

void reserve(detail::ExpertExchangeState& state, std::size_t tokens, CallKind call) {
  if (state.options.row_bytes == 0 || tokens == 0) {
    return;
  }
  Mistake mistake;
  try {
    reserve_here(state, tokens, mistake);
  } catch (const std::exception&) {
    mistake = {.code = ErrorCode::resource,
               .text = "it has no memory for the rows of " + std::to_string(tokens) +
                       " tokens\ngive a smaller max_tokens, or no row_bytes"};
  }
  agree(*state.comm, mistake, to_text(call));
}

}  // namespace unisono::experts
