// Converts arguments of the C interface to a Call.
#pragma once

#include "base/private.h"
#include "capi/capi.h"

namespace unisono::c_api {

// Lists of a v-form, with n entries each; NULL if a list is absent.
struct PartLists {
  const std::size_t* counts = nullptr;
  const std::size_t* displs = nullptr;
  const std::size_t* recv_counts = nullptr;
  const std::size_t* recv_displs = nullptr;
};

// Throw Error(usage) for a value outside the enumeration.
Collective collective_of(unisono_collective_t collective);
UNISONO_PRIVATE Dtype dtype_of(unisono_dtype_t dtype);
ReduceOp op_of(unisono_op_t op);
// Converts an operation that has no parameters.
Reduction plain_reduction(unisono_op_t op);

// Addresses and sizes of the buffers.
struct Data {
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;
  unisono_dtype_t dtype = UNISONO_U8;
};

Call call_of(Collective collective, const Data& data, int root = 0, unisono_op_t op = UNISONO_SUM);
// Converts the caller's struct for a given number of ranks.
UNISONO_PRIVATE Call call_of(const unisono_call_t* given, int ranks);
Call with_lists(Call call, const PartLists& lists, int ranks);

}  // namespace unisono::c_api
