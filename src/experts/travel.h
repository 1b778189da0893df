// Rows on their way: as they are, or coded.
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
struct Travel {
  std::span<const std::byte> in = {};  // as it travels
  std::size_t row_bytes = 0;           // of `in`
  std::span<std::byte> out = {};
  std::size_t out_row_bytes = 0;
  PartForm form = {};
  std::size_t count = 0;                      // coded: elements of a row
  kernels::CodedRowFunctions functions = {};  // coded
  bool is_rounded = false;  // `in` is as it was: whoever reads it takes it for coded

  bool is_coded() const { return form.coding != RowCoding::none && !is_rounded; }
  // Row `row` of `out` from one that has come.
  void write(std::size_t row, const std::byte* from, kernels::Store store) const;
};

// What tells whether the caller has changed memory meanwhile: of much of it some words spread over
// all.
std::uint64_t fingerprint(std::span<const std::byte> memory);

// Rows under way between hosts. Not to be moved while they are.
struct SentRows {
  std::vector<std::size_t> send;
  std::vector<std::size_t> receive;  // bytes, by rank
  std::vector<std::byte> outgoing;
  std::vector<std::byte> own;     // for `incoming`, unless peers read it
  std::span<std::byte> incoming;  // by source rank
  Request request;                // the last: it waits for the others
};

}  // namespace unisono::experts
