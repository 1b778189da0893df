// Recognises files of other programs that were given by mistake.
#pragma once

#include <string>
#include <string_view>

namespace unisono::cli {

// "an execution trace of Chakra (protobuf)". Empty: nothing that is known.
std::string foreign_file(std::string_view text);

}  // namespace unisono::cli
