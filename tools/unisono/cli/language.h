// The language of the first screen and of the most frequent errors: English, or Chinese.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/text.h"

namespace unisono::cli {

enum class Language : unsigned char { english, chinese };

// Returns UNISONO_LANG if it is set, otherwise the locale of messages: LC_ALL, LC_MESSAGES, LANG.
Language asked_language();

// Returns the translation of an English text by the table of chinese.cc, line by line; nothing if
// it lacks a line.
std::optional<std::string> in_chinese(std::string_view english);

// Translates texts that are printed together into the asked language: either all of them, or none.
void localize_all(std::span<std::string> texts);
std::string localized(std::string_view english);

// Returns the text in the asked language.
std::string spoken(const Text& text);

}  // namespace unisono::cli
