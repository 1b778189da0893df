#include "experts/rows.h"

#include <cstring>
#include <numeric>

#include "kernels/kernels.h"

namespace unisono::experts {

SharedPlace publish(detail::ExchangeState& state, std::size_t part, std::span<const std::byte> data,
                    Mistake& mistake) {
  if (!state.one_host || state.comm->size() == 1 || data.empty()) {
    return {};
  }
  const SharedPlace name = state.comm->place_of(data.data(), data.size());
  if (name.region != 0) {
    return name;
  }
  Region& staged = state.staged[part];
  try {
    if (staged.bytes().size() < data.size()) {
      staged = Region();
      staged = state.comm->allocate(data.size() + data.size() / 4);
    }
  } catch (const Error& error) {
    mistake = {.code = error.code(), .text = error.what()};
    return {};
  }
  kernels::copy(staged.bytes().data(), data.data(), data.size(), kernels::Store::cached);
  const SharedPlace copy = state.comm->place_of(staged.bytes().data(), data.size());
  if (copy.region == 0) {
    mistake = {.code = ErrorCode::resource,
               .text =
                   "its peers cannot be told of new memory\nlet all ranks make calls now and "
                   "then while memory is registered"};
  }
  return copy;
}

std::vector<const std::byte*> find_published(detail::ExchangeState& state,
                                             std::span<const Opening> openings, std::size_t part,
                                             const std::byte* mine) {
  std::vector<const std::byte*> found(openings.size(), nullptr);
  for (std::size_t rank = 0; rank < openings.size(); ++rank) {
    const SharedPlace& name = openings[rank].names[part];
    if (static_cast<int>(rank) == state.comm->rank()) {
      found[rank] = mine;
    } else if (name.address != 0) {
      found[rank] =
          state.comm->peer_memory(static_cast<int>(rank), name, openings[rank].named[part]);
      if (found[rank] == nullptr) {
        const std::string text = "experts: memory of rank " + std::to_string(rank) +
                                 " cannot be mapped here\ncheck the limits on memory and on "
                                 "mappings (vm.max_map_count)";
        state.comm->abort(text);
        throw Error(ErrorCode::resource, text, {.peer = static_cast<int>(rank)});
      }
    }
  }
  return found;
}

std::vector<const std::byte*> exchange_rows(detail::ExchangeState& state,
                                            std::span<const std::vector<const std::byte*>> to_ranks,
                                            std::span<const std::size_t> rows_from_ranks,
                                            std::size_t row_bytes) {
  const std::size_t ranks = to_ranks.size();
  std::vector<std::size_t> send(ranks);
  std::vector<std::size_t> receive(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    send[rank] = to_ranks[rank].size() * row_bytes;
    receive[rank] = rows_from_ranks[rank] * row_bytes;
  }
  state.outgoing.resize(std::accumulate(send.begin(), send.end(), std::size_t{0}));
  state.incoming.resize(std::accumulate(receive.begin(), receive.end(), std::size_t{0}));
  std::byte* next = state.outgoing.data();
  for (const auto& rows : to_ranks) {
    for (const std::byte* row : rows) {
      std::memcpy(next, row, row_bytes);
      next += row_bytes;
    }
  }
  state.comm->all_to_all_v(state.outgoing, send, state.incoming, receive);
  std::vector<const std::byte*> first(ranks);
  const std::byte* from = state.incoming.data();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    first[rank] = from;
    from += receive[rank];
  }
  return first;
}

}  // namespace unisono::experts
