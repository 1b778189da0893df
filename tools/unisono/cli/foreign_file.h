// Recognises files of other programs that were given by mistake.
#pragma once

#include <string>
#include <string_view>

namespace unisono::cli {

// "an execution trace of Chakra (protobuf)". Empty: the format is not known.
std::string foreign_file(std::string_view text);
// Like foreign_file(), for binary files. Reads only the beginning.
std::string foreign_binary_file(const std::string& path);

// Returns whether a text can be a JSON object or array.
bool begins_as_json(std::string_view text);

}  // namespace unisono::cli
