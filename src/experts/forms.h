// Properties of a call's rows, besides their sizes, that must be equal on all ranks.
#pragma once

#include <cstdint>

#include "unisono/parallel/experts.hpp"
#include "unisono/types.hpp"

namespace unisono::experts {

struct PartForm {
  Dtype dtype = Dtype::u8;
  RowCoding coding = RowCoding::none;
  bool one_a_slot = false;

  std::uint32_t bits() const {
    return static_cast<std::uint32_t>(dtype) | static_cast<std::uint32_t>(coding) << 8 |
           (one_a_slot ? 1U << 16 : 0U);
  }
  static PartForm from(std::uint32_t bits) {
    return {.dtype = static_cast<Dtype>(bits & 0xFFU),
            .coding = static_cast<RowCoding>(bits >> 8 & 0xFFU),
            .one_a_slot = (bits >> 16 & 1U) != 0};
  }
};

}  // namespace unisono::experts
