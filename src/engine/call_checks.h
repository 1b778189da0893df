// Validates the arguments of a call, with the same texts for host and device memory. Checks that
// apply to only one of them are elsewhere.
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

// Checks that collective and data type are valid values; all other code looks them up in tables.
void check_words(const Call& call);
// Checks the lists: a v-form has an entry for each rank, other calls have no lists. REQUIRES:
// check_words().
void check_lists(const Call& call, Caller caller);
// Makes both checks above, and checks the root and the counts. `element`: bytes of one element in
// transit.
void check_shape(const Call& call, Caller caller, std::size_t element);
// REQUIRES: check_shape(). `extent`: what the call reads and writes.
void check_buffers(const Call& call, Caller caller, const Extent& extent);

// Throws usage if no memory can hold so many bytes: a negative number became a size. `call`: for
// the text, "send on rank 0".
void check_size(std::size_t bytes, const std::string& call, const ErrorContext& context);

// Returns true if the call is in place as communicator.hpp describes. REQUIRES: check_lists().
bool is_in_place(const Call& call, int rank);

}  // namespace unisono::engine
