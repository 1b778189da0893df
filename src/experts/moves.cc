// Moves expert weights between ranks.
#include <algorithm>
#include <cstdint>
#include <exception>
#include <numeric>
#include <string>

#include "base/hash.h"
#include "experts/agreement.h"
#include "unisono/parallel/expert_balance.hpp"

namespace unisono {
namespace {

using Counts = std::vector<std::size_t>;

std::string mistake_of(std::span<const ExpertMove> moves, int ranks) {
  for (const ExpertMove& move : moves) {
    for (const int rank : {move.from, move.to}) {
      if (rank < 0 || rank >= ranks) {
        return "expert " + std::to_string(move.expert) + " moves from rank " +
               std::to_string(move.from) + " to rank " + std::to_string(move.to) +
               ", but there are " + std::to_string(ranks) +
               "\npass the moves that find_expert_moves() returned";
      }
    }
  }
  return {};
}

// Returns the memory of the moves for which `is_mine` returns true, grouped by the other rank, in
// the order of the moves.
template <typename Bytes, typename IsMine>
std::vector<std::span<Bytes>> find_memory(std::span<const ExpertMove> moves, int ranks,
                                          std::size_t expert_bytes, int ExpertMove::* other,
                                          const IsMine& is_mine,
                                          const std::function<std::span<Bytes>(int)>& memory_of,
                                          experts::Mistake& mistake) {
  std::vector<std::span<Bytes>> found;
  for (int rank = 0; rank < ranks; ++rank) {
    for (const ExpertMove& move : moves) {
      if (move.*other != rank || !is_mine(move)) {
        continue;
      }
      found.push_back(memory_of(move.expert));
      if (found.back().size() != expert_bytes && mistake.text.empty()) {
        mistake.text = "expert " + std::to_string(move.expert) + " has " +
                       std::to_string(found.back().size()) + " bytes, not " +
                       std::to_string(expert_bytes) + "\npass memory for all of its weights";
      }
    }
  }
  return found;
}

void expect_same(Communicator& comm, std::span<const ExpertMove> moves, std::size_t expert_bytes) {
  Hash hash;
  hash.add(expert_bytes);
  for (const ExpertMove& move : moves) {
    for (const int number : {move.expert, move.from, move.to}) {
      hash.add(static_cast<std::uint64_t>(number));
    }
  }
  const std::uint64_t mine = hash.value();
  std::vector<std::uint64_t> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::span(&mine, 1), all);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] != all[0]) {
      throw Error(ErrorCode::mismatch,
                  "experts: rank 0 calls move_experts() with other moves than rank " +
                      std::to_string(rank) + "\ngive all ranks the same moves and bytes",
                  {.peer = static_cast<int>(rank)});
    }
  }
}

std::size_t sum_of(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

}  // namespace

std::vector<std::vector<std::size_t>> bytes_of_moves(std::span<const ExpertMove> moves, int ranks,
                                                     std::size_t expert_bytes) {
  if (const std::string text = mistake_of(moves, ranks); !text.empty()) {
    throw Error(ErrorCode::usage, "bytes_of_moves: " + text);
  }
  const auto count = static_cast<std::size_t>(std::max(ranks, 0));
  std::vector<Counts> bytes(count, Counts(count, 0));
  for (const ExpertMove& move : moves) {
    bytes[static_cast<std::size_t>(move.from)][static_cast<std::size_t>(move.to)] += expert_bytes;
  }
  return bytes;
}

void move_experts(Communicator& comm, std::span<const ExpertMove> moves, std::size_t expert_bytes,
                  const std::function<std::span<const std::byte>(int expert)>& held,
                  const std::function<std::span<std::byte>(int expert)>& placed) {
  const int rank = comm.rank();
  experts::Mistake mistake{.text = mistake_of(moves, comm.size())};
  std::vector<std::span<const std::byte>> from;
  std::vector<std::span<std::byte>> to;
  if (mistake.text.empty()) {
    try {
      from = find_memory<const std::byte>(
          moves, comm.size(), expert_bytes, &ExpertMove::to,
          [rank](const ExpertMove& move) { return move.from == rank; }, held, mistake);
      to = find_memory<std::byte>(
          moves, comm.size(), expert_bytes, &ExpertMove::from,
          [rank](const ExpertMove& move) { return move.to == rank; }, placed, mistake);
    } catch (const std::exception& error) {
      mistake.text = std::string("it cannot describe where an expert is: ") + error.what();
    }
  }
  experts::agree(comm, mistake, "move_experts()");
  expect_same(comm, moves, expert_bytes);
  const auto bytes = bytes_of_moves(moves, comm.size(), expert_bytes);
  const Counts& send = bytes[static_cast<std::size_t>(rank)];
  Counts receive;
  for (const Counts& of_rank : bytes) {
    receive.push_back(of_rank[static_cast<std::size_t>(rank)]);
  }
  std::vector<std::byte> outgoing;
  outgoing.reserve(sum_of(send));
  for (const std::span<const std::byte> weights : from) {
    outgoing.insert(outgoing.end(), weights.begin(), weights.end());
  }
  std::vector<std::byte> incoming(sum_of(receive));
  comm.all_to_all_v(outgoing, send, incoming, receive);
  const std::byte* next = incoming.data();
  for (const std::span<std::byte> weights : to) {
    std::copy_n(next, weights.size(), weights.begin());
    next += weights.size();
  }
}

}  // namespace unisono
