// The property of any bytes as an encoded message, and of any bytes as floats. The first byte
// selects the code: even i8, odd bf16.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/coded_blocks.h"

namespace unisono::fuzz {

using Floats = std::vector<float>;

inline Floats decoded(MoveCode code, const char* bytes, std::size_t elements) {
  Floats floats(elements);
  kernels::find_coded_blocks(code).decode(floats.data(), bytes, elements);
  return floats;
}

inline Floats through_code(MoveCode code, const Floats& floats) {
  std::vector<char> coded(coded_bytes(code, floats.size()));
  kernels::find_coded_blocks(code).encode(coded.data(), floats.data(), floats.size());
  return decoded(code, coded.data(), floats.size());
}

inline bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// Returns the greatest magnitude in a block; NaN if an element is NaN.
inline float greatest_magnitude(const Floats& floats, std::size_t block) {
  float greatest = 0;
  for (std::size_t i = block; i < floats.size() && i < block + kCodeBlock; ++i) {
    greatest = std::isnan(floats[i]) ? floats[i] : std::fmax(greatest, std::fabs(floats[i]));
    if (std::isnan(greatest)) {
      break;
    }
  }
  return greatest;
}

// `greatest`: the greatest magnitude of its block of `elements`.
inline bool is_bf16_near(float value, float rounded, float greatest, std::size_t elements) {
  if (!std::isfinite(value)) {
    return std::isnan(value) ? std::isnan(rounded) : value == rounded;
  }
  const double off = std::fabs(double{rounded} - value);
  const bool is_tiny = greatest < 0x1p-126F && elements >= 4;
  const double bound = is_tiny ? sum_error(MoveCode::bf16).worst / 2 * greatest + 0x1p-149
                               : std::ldexp(std::fabs(value), -8) + 0x1p-134;
  return off <= bound;
}

inline bool is_i8_near(float value, float rounded, float greatest) {
  if (!std::isfinite(greatest)) {
    return std::isnan(rounded);
  }
  return std::fabs(double{rounded} - value) <=
         sum_error(MoveCode::i8).worst / 2 * greatest + 0x1p-149;
}

// Returns an empty text if the property holds, otherwise the failure. Encoded floats are near the
// originals, by the bounds of base/move_code.h, and do not change when they are encoded again.
inline std::string rounding_property(MoveCode code, const Floats& floats) {
  const Floats rounded = through_code(code, floats);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    const std::size_t block = i / kCodeBlock * kCodeBlock;
    const float greatest = greatest_magnitude(floats, block);
    const std::size_t elements = std::min(kCodeBlock, floats.size() - block);
    if (code == MoveCode::bf16 ? !is_bf16_near(floats[i], rounded[i], greatest, elements)
                               : !is_i8_near(floats[i], rounded[i], greatest)) {
      return "element " + std::to_string(i) + ": " + std::to_string(floats[i]) + " becomes " +
             std::to_string(rounded[i]);
    }
  }
  return same_bits(through_code(code, rounded), rounded) ? "" : "rounded again it is another";
}

// A message that is cut at block boundaries decodes to the same values as the whole.
inline std::string cutting_property(MoveCode code, std::string_view bytes, const Floats& whole) {
  for (std::size_t done = 0; done < whole.size(); done += kCodeBlock) {
    const std::size_t some = std::min(kCodeBlock, whole.size() - done);
    const Floats piece = decoded(code, bytes.data() + coded_bytes(code, done), some);
    if (std::memcmp(piece.data(), whole.data() + done, some * sizeof(float)) != 0) {
      return "a piece of it is decoded to other numbers";
    }
  }
  return "";
}

inline std::string coded_blocks_property(std::string_view text) {
  if (text.empty()) {
    return "";
  }
  const MoveCode code = (text.front() & 1) == 0 ? MoveCode::i8 : MoveCode::bf16;
  const std::string message(text.substr(1));  // a copy, so that a read beyond its end is detected
  Floats floats(message.size() / sizeof(float));
  if (!floats.empty()) {
    std::memcpy(floats.data(), message.data(), floats.size() * sizeof(float));
  }
  if (const std::string problem = rounding_property(code, floats); !problem.empty()) {
    return "floats: " + problem;
  }
  const std::size_t elements = coded_elements(code, message.size());
  if (elements == 0) {
    return "";  // no message has this length
  }
  if (coded_bytes(code, elements) != message.size()) {
    return "a length means another";
  }
  const Floats whole = decoded(code, message.data(), elements);
  if (const std::string problem = cutting_property(code, message, whole); !problem.empty()) {
    return problem;
  }
  const std::string problem = rounding_property(code, whole);
  return problem.empty() ? "" : "what was decoded: " + problem;
}

}  // namespace unisono::fuzz
