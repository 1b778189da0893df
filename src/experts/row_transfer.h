// Rows in transit: unchanged, or coded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "experts/forms.h"
#include "kernels/coded_rows.h"
#include "unisono/communicator.hpp"
#include "unisono/parallel/experts.hpp"

namespace unisono::experts {

// One payload, as its ranks read or send it.
struct RowTransfer {
  std::span<const std::byte> in = {};  // as sent
  std::size_t row_bytes = 0;           // of `in`
  std::span<std::byte> out = {};
  std::size_t out_row_bytes = 0;
  PartForm form = {};
  std::size_t count = 0;                      // coded: elements per row
  kernels::CodedRowFunctions functions = {};  // coded
  bool is_rounded = false;  // `in` is not coded: the reader rounds it as if it were

  bool is_coded() const { return form.coding != RowCoding::none && !is_rounded; }
  // Writes row `row` of `out` from a received row.
  void write(std::size_t row, const std::byte* from, kernels::Store store) const;
};

// Rows in transit between hosts. Not movable meanwhile.
struct SentRows {
  std::vector<std::size_t> send;
  std::vector<std::size_t> receive;  // bytes, by rank
  std::vector<std::byte> outgoing;
  std::vector<std::byte> own;     // for `incoming`, unless peers read it
  std::span<std::byte> incoming;  // by source rank
  Request request;                // last, because it waits for the others
};

}  // namespace unisono::experts
