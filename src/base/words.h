// Quotes user input in messages, and suggests the known word that the user may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace unisono {

// Returns `text` without surrounding blanks.
std::string_view trimmed(std::string_view text);

// Splits a line at blanks.
std::vector<std::string_view> words_of(std::string_view line);

// Removes terminal escape sequences for colour and cursor movement (ESC [ ... letter).
std::string without_escapes(std::string_view text);

// Returns `text` in quotes, shortened to about 40 bytes. Replaces invalid UTF-8 and control
// characters by ?.
std::string in_quotes(std::string_view text);

// Returns the candidate closest to `word` by edit distance, or "" if none is similar.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);

// Returns `, did you mean "ring"?`, or "" if no candidate is similar.
std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace unisono
