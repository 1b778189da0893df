// The encodings of the f32 of a move between hosts: their formats and lengths.
//
// i8: blocks of 32 elements, the last one maybe shorter, each
//   scale   bf16, little-endian: the greatest magnitude / 127, rounded to nearest
//   codes   one i8 an element: the element / scale, rounded to nearest, ties to even
// An element is off by at most half a scale. A scale of which 127 times is no finite f32 is rounded
// down instead. A block with an infinity or a NaN is decoded as NaN. A block whose magnitudes are
// all below 127 * 2^-126 has a scale of whole multiples of 2^-149, written as -2^64 times the scale
// (kernels/tiny_blocks.h). There is no -0.
//
// bf16: each element rounded to nearest, ties to even. Infinities and NaN stay what they are; a
// finite element above the greatest bf16 becomes that. A block of at least 4 elements whose
// magnitudes are all below 2^-126, where bf16 has few numbers, is the code 0xffff, and a block as
// of i8.
//
// What was decoded once is encoded again without a further rounding, if the blocks begin at the
// same elements: the products code * scale are exact, the greatest code of a block is 127 and so
// gives the same scale again. So a rank may pass on what it has rounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace unisono {

enum class MoveCode : std::uint8_t { none, i8, bf16 };

// A piece of an encoded message is whole blocks, except at the message's end.
inline constexpr std::size_t kCodeBlock = 32;  // elements
inline constexpr std::size_t kCodeBlockBytes = kCodeBlock + 2;

constexpr std::string_view to_string(MoveCode code) {
  return code == MoveCode::i8 ? "i8" : code == MoveCode::bf16 ? "bf16" : "none";
}

// The bytes of so many encoded elements.
constexpr std::size_t coded_bytes(MoveCode code, std::size_t elements) {
  switch (code) {
    case MoveCode::i8:
      return elements + (elements + kCodeBlock - 1) / kCodeBlock * 2;
    case MoveCode::bf16:
      return elements * 2;
    default:
      return elements * sizeof(float);
  }
}

// Returns the encoded length of a long vector relative to the original: 34/128, 1/2, or 1.
constexpr double coded_share(MoveCode code) {
  return static_cast<double>(coded_bytes(code, kCodeBlock)) / (kCodeBlock * sizeof(float));
}

// The elements in so many encoded bytes; 0: no number of elements is that long.
constexpr std::size_t coded_elements(MoveCode code, std::size_t bytes) {
  const std::size_t blocks = (bytes + kCodeBlockBytes - 1) / kCodeBlockBytes;
  const std::size_t scales = code == MoveCode::i8 ? 2 * blocks : 0;
  const std::size_t rest = bytes < scales ? 0 : bytes - scales;
  const std::size_t elements = code == MoveCode::i8     ? rest
                               : code == MoveCode::bf16 ? bytes / 2
                                                        : bytes / sizeof(float);
  return coded_bytes(code, elements) == bytes ? elements : 0;
}

// The error of a sum if its inputs are rounded at most once each, and the result at most once,
// besides the roundings of f32. An element of a sum of finite numbers is off by at most `worst`
// times the sum, over the inputs that were rounded, of the greatest magnitude in its block of 32,
// plus 2^-149 per rounding: i8 adds half a scale per rounding, bf16 2^-8 of the element itself. The
// last 1 to 3 elements of a message in bf16 are off by up to 2^-134 per rounding. If the numbers
// are normal and independent, the root mean square of the error is at most `normal` times that of
// the result, for any number of ranks: coded_blocks_test.cc measures it.
struct SumError {
  double worst = 0;
  double normal = 0;
};
constexpr SumError sum_error(MoveCode code) {
  switch (code) {
    case MoveCode::i8:
      return {.worst = 0.008, .normal = 0.008};
    case MoveCode::bf16:
      return {.worst = 0.008, .normal = 0.003};
    default:
      return {};
  }
}

// Less than this no code can keep to.
inline constexpr double kLeastMaxError = sum_error(MoveCode::bf16).normal;

// The shortest that is accurate enough; none: there is none.
constexpr MoveCode code_for(double max_error) {
  return max_error >= sum_error(MoveCode::i8).normal ? MoveCode::i8
         : max_error >= kLeastMaxError               ? MoveCode::bf16
                                                     : MoveCode::none;
}

}  // namespace unisono
