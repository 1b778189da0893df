// The C interface of reshard.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/words.h"
#include "capi/call.h"
#include "capi/capi.h"
#include "comm/handles.h"
#include "unisono/parallel/reshard.hpp"
#include "unisono/reshard.h"

struct unisono_reshard_handle {
  unisono::parallel::Reshard reshard;
};

namespace unisono::c_api {
namespace {

// A new last member could lie in the padding, where the size of the struct would not show its
// absence.
static_assert(offsetof(unisono_reshard_memory_t, out_strides) + sizeof(void*) ==
              sizeof(unisono_reshard_memory_t));
static_assert(offsetof(unisono_reshard_tensor_t, to) + sizeof(void*) ==
              sizeof(unisono_reshard_tensor_t));
static_assert(offsetof(unisono_reshard_part_t, bytes) + sizeof(std::size_t) ==
              sizeof(unisono_reshard_part_t));
static_assert(parallel::kMostDims == sizeof(unisono_reshard_part_t::shape) / sizeof(std::size_t));

parallel::Reshard& reshard_of(unisono_reshard_t reshard) {
  if (reshard == nullptr) {
    throw Error(ErrorCode::usage, "the reshard is NULL\nit was never created, or was freed");
  }
  return reshard->reshard;
}

std::vector<parallel::ReshardTensor> tensors_of(const unisono_reshard_tensor_t* tensors,
                                                std::size_t count) {
  std::vector<parallel::ReshardTensor> made;
  for (const unisono_reshard_tensor_t& given :
       entries_of(tensors, count, "tensors", unisono_reshard_tensor_t UNISONO_RESHARD_TENSOR_INIT,
                  "UNISONO_RESHARD_TENSOR_INIT")) {
    expect_place(given.name, "name");
    expect_place(given.from, "from");
    expect_place(given.to, "to");
    if (given.dimensions > parallel::kMostDims) {
      throw Error(ErrorCode::usage, "tensor " + in_quotes(given.name) + " has " +
                                        std::to_string(given.dimensions) +
                                        " dimensions\n`shape` is a list of at most 8");
    }
    const auto shape = view(given.shape, given.dimensions, "shape");
    made.push_back({.name = given.name,
                    .dtype = dtype_of(given.dtype),
                    .shape = {shape.begin(), shape.end()},
                    .from = parallel::MeshLayout::parse(given.from),
                    .to = parallel::MeshLayout::parse(given.to)});
  }
  return made;
}

using Shape = std::optional<std::vector<std::size_t>>;

Shape shape_of(const parallel::Reshard& reshard, std::size_t tensor, bool after) {
  const std::size_t count = reshard.plan().tensors.size();
  if (tensor >= count) {
    throw Error(ErrorCode::usage, "there is no tensor " + std::to_string(tensor) + "\nthere are " +
                                      std::to_string(count) + ", counted from 0");
  }
  return after ? reshard.out_shape(tensor) : reshard.in_shape(tensor);
}

// Describes the caller's memory of all tensors. `data`: an array of pointers.
template <typename Pointer>
std::vector<parallel::Tensor> memory_of(const parallel::Reshard& reshard, const Pointer* data,
                                        const std::ptrdiff_t* const* strides, bool after) {
  std::vector<parallel::Tensor> all;
  for (std::size_t t = 0; t < reshard.plan().tensors.size(); ++t) {
    const Shape shape = shape_of(reshard, t, after);
    parallel::Tensor& tensor = all.emplace_back();
    if (!shape) {
      continue;
    }
    void* const place = data == nullptr ? nullptr : const_cast<void*>(data[t]);
    tensor = parallel::Tensor::packed(place, reshard.plan().tensors[t].dtype, *shape);
    if (strides != nullptr && strides[t] != nullptr) {
      tensor.strides.assign(strides[t], strides[t] + shape->size());
    }
  }
  return all;
}

}  // namespace
}  // namespace unisono::c_api

using namespace unisono::c_api;  // NOLINT(google-build-using-namespace): all below is outside
namespace up = unisono::parallel;

unisono_result_t unisono_reshard_create(const unisono_reshard_tensor_t* tensors, std::size_t count,
                                        unisono_comm_t comm, unisono_reshard_t* reshard) noexcept {
  return guard([&] {
    expect_place(reshard, "reshard");
    *reshard = nullptr;
    core_of(comm);
    unisono::Communicator ranks = unisono::detail::Handles::communicator(comm->core);
    *reshard = new unisono_reshard_handle{up::Reshard::create(ranks, tensors_of(tensors, count))};
  });
}

unisono_result_t unisono_reshard_get_part(std::size_t tensor, int after, unisono_reshard_t reshard,
                                          unisono_reshard_part_t* part) noexcept {
  return guard([&] {
    unisono_reshard_part_t found = UNISONO_RESHARD_PART_INIT;
    const up::Reshard& known = reshard_of(reshard);
    if (const Shape shape = shape_of(known, tensor, after != 0)) {
      const unisono::Dtype dtype = known.plan().tensors[tensor].dtype;
      found.is_held = 1;
      found.dimensions = shape->size();
      std::copy(shape->begin(), shape->end(), std::begin(found.shape));
      found.bytes = up::Tensor::packed(nullptr, dtype, *shape).count() * size_of(dtype);
    }
    fill(part, "part", found, "UNISONO_RESHARD_PART_INIT");
  });
}

unisono_result_t unisono_reshard_run(const unisono_reshard_memory_t* memory, int timeout_ms,
                                     unisono_reshard_t reshard) noexcept {
  return guard([&] {
    const auto known =
        members_of(memory, "memory", unisono_reshard_memory_t UNISONO_RESHARD_MEMORY_INIT,
                   "UNISONO_RESHARD_MEMORY_INIT");
    up::Reshard& own = reshard_of(reshard);
    own.run(memory_of(own, known.in, known.in_strides, false),
            memory_of(own, known.out, known.out_strides, true), timeout_ms);
  });
}

int unisono_reshard_complete(std::size_t tensor, unisono_reshard_t reshard) noexcept {
  const bool is_there = reshard != nullptr && tensor < reshard->reshard.plan().tensors.size();
  return is_there && reshard->reshard.complete(tensor) ? 1 : 0;
}

unisono_result_t unisono_reshard_bytes(unisono_reshard_t reshard, std::size_t* sent,
                                       std::size_t* between_hosts) noexcept {
  return guard([&] {
    expect_place(sent, "sent");
    expect_place(between_hosts, "between_hosts");
    const up::ReshardPlan& plan = reshard_of(reshard).plan();
    *sent = plan.bytes_sent();
    *between_hosts = plan.bytes_between_hosts();
  });
}

unisono_result_t unisono_reshard_free(unisono_reshard_t* reshard) noexcept {
  return guard([&] {
    expect_place(reshard, "reshard");
    delete std::exchange(*reshard, nullptr);
  });
}
