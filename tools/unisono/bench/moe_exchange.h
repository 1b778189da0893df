// Moves the rows of a textbook mixture of experts.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace unisono::cli {

struct TextbookExchange {
  std::string name;
  // Sends one number to each rank and receives one from each.
  std::function<void(std::span<const std::size_t> send, std::span<std::size_t> receive)> counts;
  // Sends and receives bytes, which are in rank order.
  std::function<void(std::span<const std::byte> in, std::span<const std::size_t> send,
                     std::span<std::byte> out, std::span<const std::size_t> receive)>
      rows;
};

}  // namespace unisono::cli
