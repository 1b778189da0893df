// Encodings for f32 elements moved between hosts: formats and lengths.
//
// i8: blocks of 32 elements; the last block may be shorter. Each block has
//   scale   bf16, little-endian: the greatest magnitude / 127, rounded to nearest
//   codes   one i8 per element: the element / scale, rounded to nearest, ties to even
// The error of an element is at most half a scale. If 127 * scale would not be a finite f32, the
// scale is rounded down. A block with an infinity or a NaN decodes to NaN. If all magnitudes of a
// block are below 127 * 2^-126, its scale is a multiple of 2^-149, stored as -2^64 times the scale
// (kernels/tiny_blocks.h). -0 is not preserved.
//
// bf16: each element is rounded to nearest, ties to even. Infinities and NaN are preserved. A
// finite element above the greatest bf16 becomes the greatest bf16. bf16 has few numbers below
// 2^-126, so a block of at least 4 elements whose magnitudes are all below 2^-126 is stored as the
// code 0xffff followed by an i8 block.
//
// Decoded values can be encoded again without further rounding if the blocks begin at the same
// elements: the products code * scale are exact, and the greatest code of a block is 127, which
// gives the same scale again. A rank can therefore forward values that it has already rounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace unisono {

enum class MoveCode : std::uint8_t { none, i8, bf16 };

// A piece of an encoded message consists of whole blocks, except at the end of the message.
inline constexpr std::size_t kCodeBlock = 32;  // elements
inline constexpr std::size_t kCodeBlockBytes = kCodeBlock + 2;

constexpr std::string_view to_string(MoveCode code) {
  return code == MoveCode::i8 ? "i8" : code == MoveCode::bf16 ? "bf16" : "none";
}

// Returns the encoded length in bytes.
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

// Returns the number of elements in an encoded length; 0 if no number of elements has that length.
constexpr std::size_t coded_elements(MoveCode code, std::size_t bytes) {
  const std::size_t blocks = (bytes + kCodeBlockBytes - 1) / kCodeBlockBytes;
  const std::size_t scales = code == MoveCode::i8 ? 2 * blocks : 0;
  const std::size_t rest = bytes < scales ? 0 : bytes - scales;
  const std::size_t elements = code == MoveCode::i8     ? rest
                               : code == MoveCode::bf16 ? bytes / 2
                                                        : bytes / sizeof(float);
  return coded_bytes(code, elements) == bytes ? elements : 0;
}

// Error bound for a sum whose inputs and result are each rounded at most once, in addition to f32
// rounding. For finite numbers, the error of an element is at most `worst` times M plus 2^-149 per
// rounding. M is the sum, over the rounded inputs, of the greatest magnitude in the element's block
// of 32. Each i8 rounding adds up to half a scale, each bf16 rounding up to 2^-8 of the element.
// The last 1 to 3 elements of a bf16 message have an error of up to 2^-134 per rounding. If the
// numbers are normally distributed and independent, the root mean square of the error is at most
// `normal` times the root mean square of the result, for any number of ranks; coded_blocks_test.cc
// measures this.
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

// No code satisfies a smaller limit.
inline constexpr double kLeastMaxError = sum_error(MoveCode::bf16).normal;

// Returns the shortest code that is accurate enough, or `none`.
constexpr MoveCode code_for(double max_error) {
  return max_error >= sum_error(MoveCode::i8).normal ? MoveCode::i8
         : max_error >= kLeastMaxError               ? MoveCode::bf16
                                                     : MoveCode::none;
}

}  // namespace unisono
