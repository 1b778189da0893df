// Opens a file as the desktop would.
#pragma once

#include <string>

namespace unisono::cli {

// Is there a display to open something on?
bool has_desktop();

// Starts the desktop's own opener and does not wait for it. False: there is none.
bool open_on_desktop(const std::string& path);

}  // namespace unisono::cli
