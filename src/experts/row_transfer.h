// Rows in transfer: unchanged or coded.
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

// One payload, as peers read it or as it is sent.
struct RowTransfer {
  std::span<const std::byte> in = {};  // rows as sent
  std::size_t row_bytes = 0;           // row size in `in`
  std::span<std::byte> out = {};
  std::size_t out_row_bytes = 0;
  PartForm form = {};
  std::size_t count = 0;                      // coded: elements per row
  kernels::CodedRowFunctions functions = {};  // coded
  bool is_rounded = false;  // `in` is not coded, but readers round it as coding would

  bool is_coded() const { return form.coding != RowCoding::none && !is_rounded; }
  // Writes a received row to row `row` of `out`.
  void write(std::size_t row, const std::byte* from, kernels::Store store) const;
};

// Rows in transfer between hosts. Must not move during the transfer.
struct SentRows {
  std::vector<std::size_t> send;
  std::vector<std::size_t> receive;  // bytes, by rank
  std::vector<std::byte> outgoing;
  std::vector<std::byte> own;     // memory of `incoming`, unless peers read it
  std::span<std::byte> incoming;  // by source rank
  Request request;                // last: its destructor waits before the others run
};

}  // namespace unisono::experts
