// The textbook implementation of a mixture of experts: pack the rows by rank, exchange the counts,
// exchange the rows by all_to_all_v, permute.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/moe_exchange.h"
#include "bench/moe_work.h"

namespace unisono::cli {

class TextbookWay {
 public:
  // Keeps the references.
  TextbookWay(MoeWork& work, const TextbookExchange& exchange);

  void dispatch();
  // After dispatch().
  void combine();
  // Measures the limit of each combine: reads k rows and writes one. It uses this rank's own rows,
  // with the same number and distances as the rows of all ranks.
  void sum_rows();

 private:
  MoeWork& work_;
  const TextbookExchange& textbook_;
  std::vector<std::size_t> sorted_;  // places by expert
  std::vector<std::size_t> order_;   // by place: its index in sorted_
  std::vector<std::size_t> target_;  // the target of each received row
  std::vector<std::size_t> send_;    // bytes, by rank
  std::vector<std::size_t> receive_;
  std::vector<std::byte> packed_;
  std::vector<std::byte> came_;
  std::vector<std::byte> back_;
};

}  // namespace unisono::cli
