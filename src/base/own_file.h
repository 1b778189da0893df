// Opens files safely in world-writable folders. Another user may have created the name first: as a
// link to one of this user's files, or as a file that the other user can read.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/unique_fd.h"

namespace unisono {

// Opens a regular file of this user; with O_CREAT, creates it with `mode` if it does not exist.
// Follows no links. On failure, `why` contains the reason.
UniqueFd open_own_file(const std::string& path, int flags, std::string& why, mode_t mode = 0600);
// Returns why an open file is not this user's own, such as "belongs to user 1000", or "" if it is.
std::string why_not_own(int file);

}  // namespace unisono
