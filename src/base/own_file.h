// Files under names that other users could have taken before: in a folder where everybody may make
// files, a name can lead through a link to a file of the victim, or be a file that somebody reads.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/unique_fd.h"

namespace unisono {

// Opens or, with O_CREAT, makes a regular file of this user, of this mode if it is new. Follows no
// link. If there is none, `why` says what is in the way.
UniqueFd open_own_file(const std::string& path, int flags, std::string& why, mode_t mode = 0600);
// Says why an open file is not this user's own: "belongs to user 1000". Empty: it is.
std::string why_not_own(int file);

}  // namespace unisono
