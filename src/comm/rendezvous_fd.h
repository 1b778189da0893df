// Descriptors of the rendezvous have one owner.
#pragma once

#include "base/unique_fd.h"

namespace unisono::comm {
using unisono::UniqueFd;
}  // namespace unisono::comm
