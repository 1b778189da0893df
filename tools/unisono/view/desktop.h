// Opens a file with the desktop's default program.
#pragma once

#include <string>

namespace unisono::cli {

// Returns true if there is a display.
bool has_desktop();

// Starts the desktop's opener and does not wait for it. Returns false if there is none.
bool open_on_desktop(const std::string& path);

}  // namespace unisono::cli
