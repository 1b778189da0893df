// Words of the user in messages: how they are shown, and which known word may have been meant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace unisono {

// Without the blanks around it.
std::string_view trimmed(std::string_view text);

// The words between the blanks of a line.
std::vector<std::string_view> words_of(std::string_view line);

// Without the sequences that colour text on a terminal or move its cursor (ESC [ ... letter).
std::string without_escapes(std::string_view text);

// `text` in quotes, short, as valid UTF-8 without control characters: ? stands for what is neither.
std::string in_quotes(std::string_view text);

// The candidate closest to `word` by edit distance, empty if none is near.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);

// `, did you mean "ring"?`, or nothing if no candidate is near.
std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace unisono
