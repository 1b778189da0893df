// Text in lines of a width.
#pragma once

#include <string>
#include <string_view>

namespace unisono::cli {

// Folded to `width` columns, each line after `indent` spaces, ending with a line feed.
std::string wrap(std::string_view text, int indent, int width);

}  // namespace unisono::cli
