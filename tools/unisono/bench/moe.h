// `unisono bench moe`: dispatch and combine of mixtures of experts against what this machine allows
// and the textbook way, measured in the same run, in turn.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "unisono/communicator.hpp"

namespace unisono::cli {

// What moves the rows of the textbook way.
struct TextbookExchange {
  std::string name;
  // One number to each rank and from each.
  std::function<void(std::span<const std::size_t> send, std::span<std::size_t> receive)> counts;
  // Bytes, by rank one after the other.
  std::function<void(std::span<const std::byte> in, std::span<const std::size_t> send,
                     std::span<std::byte> out, std::span<const std::size_t> receive)>
      rows;
};
TextbookExchange own_exchange(Communicator& comm);

// Returns the exit code: 1 if a result is wrong. Rank 0 speaks. `routing`: a file as read_routing()
// takes it; empty: fixed cases.
int run_bench_moe(Communicator& comm, const std::string& routing, const TextbookExchange& textbook);

}  // namespace unisono::cli
