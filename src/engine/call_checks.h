// Validates the arguments of a call, with the same error texts for host and device memory. Checks
// that apply to only one kind of memory are elsewhere.
#pragma once

#include <cstddef>
#include <string>

#include "engine/layout.h"
#include "unisono/call.hpp"
#include "unisono/error.hpp"

namespace unisono::engine {

// The calling rank.
struct Caller {
  int rank = 0;  // in its group
  int ranks = 1;
  int world_rank = 0;
};

// Throws usage; `hint` is the advice.
[[noreturn]] void refuse(const Call& call, Caller caller, const std::string& what,
                         const std::string& hint);

// The following functions throw usage.

// Checks that collective and data type are valid values, because all other code uses them as table
// indexes.
void check_words(const Call& call);
// Checks the lists: a v-form needs an entry for each rank, and other calls must not have lists.
// REQUIRES: check_words().
void check_lists(const Call& call, Caller caller);
// Makes both checks above, and checks the root and the counts. `element` is the number of bytes per
// element in transit.
void check_shape(const Call& call, Caller caller, std::size_t element);
// Checks the memory that the call reads and writes, which is `extent`. REQUIRES: check_shape().
void check_buffers(const Call& call, Caller caller, const Extent& extent);

// Byte counts beyond this limit could overflow, and no machine has so much memory.
inline constexpr std::size_t kMostBytes = std::size_t{1} << 56;
// Throws usage for more bytes, which happens when a negative number is converted to a size. `call`
// is for the error text, such as "send on rank 0".
void check_size(std::size_t bytes, const std::string& call, const ErrorContext& context);

// Returns true if the call is in place as communicator.hpp describes. REQUIRES: check_lists().
bool is_in_place(const Call& call, int rank);

}  // namespace unisono::engine
