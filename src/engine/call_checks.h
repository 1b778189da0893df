// What may be wrong with the arguments of a call, wherever its buffers are: said in one way for
// memory of the host and of devices. What only one of them refuses, it checks itself.
#pragma once

#include <cstddef>
#include <string>

#include "engine/layout.h"
#include "unisono/call.hpp"
#include "unisono/error.hpp"

namespace unisono::engine {

// Which of the ranks calls.
struct Caller {
  int rank = 0;
  int ranks = 1;
};

// Throws usage; `hint` is what to do.
[[noreturn]] void refuse(const Call& call, int rank, const std::string& what,
                         const std::string& hint);

// All that follow throw usage.

// That the collective and the data type are some: everything else asks tables about them.
void check_words(const Call& call);
// A v-form has an entry for each rank, any other call no lists. REQUIRES: check_words().
void check_lists(const Call& call, Caller caller);
// Both, the root and how many elements there are. `element`: bytes of one while it is moved.
void check_shape(const Call& call, Caller caller, std::size_t element);
// REQUIRES: check_shape(). `extent`: what the call reads and writes.
void check_buffers(const Call& call, int rank, const Extent& extent);

// Throws usage if no memory holds so many bytes: a negative number became a size. `call`: what is
// refused, "send on rank 0".
void check_size(std::size_t bytes, const std::string& call, const ErrorContext& context);

// In the one way that communicator.hpp says. REQUIRES: check_lists().
bool is_in_place(const Call& call, int rank);

}  // namespace unisono::engine
