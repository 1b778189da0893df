// Rows on their way: as they are, or coded.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/coded_rows.h"
#include "unisono/communicator.hpp"
#include "unisono/parallel/experts.hpp"

namespace unisono::experts {

// One payload, as its ranks read or send it.
struct Travel {
  std::span<const std::byte> in = {};  // as it travels
  std::size_t row_bytes = 0;           // of `in`
  std::span<std::byte> out = {};
  std::size_t out_row_bytes = 0;
  bool one_a_slot = false;
  std::size_t count = 0;                      // coded: elements of a row
  kernels::CodedRowFunctions functions = {};  // coded
  RowCoding coding = RowCoding::none;

  // Row `row` of `out` from one that has come.
  void write(std::size_t row, const std::byte* from, kernels::Store store) const;
};

// Rows under way between hosts. Not to be moved while they are.
struct SentRows {
  std::vector<std::size_t> send;
  std::vector<std::size_t> receive;  // bytes, by rank
  std::vector<std::byte> outgoing;
  std::vector<std::byte> incoming;
  Request request;  // the last: it waits for the others
};

}  // namespace unisono::experts
