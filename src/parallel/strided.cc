#include "parallel/strided.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernels/kernels.h"
#include "reshard/elements.h"

namespace unisono::parallel {
namespace {

// An ordinary store first reads the target. For data larger than the caches, this takes a third of
// the time.
constexpr std::size_t kStreamedBytes = std::size_t{8} << 20;

// A loop over all operands: `size` iterations, in which each operand advances by its stride in
// bytes.
struct Loop {
  std::size_t size = 1;
  std::vector<std::ptrdiff_t> strides = {};
};

// The loops of a walk, outermost first, as few as possible. The innermost loop follows the smallest
// stride of the first operand, which is the one written.
class Walk {
 public:
  explicit Walk(std::span<const Tensor> operands) {
    const Tensor& first = operands.front();
    const auto bytes = static_cast<std::ptrdiff_t>(size_of(first.dtype));
    for (const Tensor& operand : operands) {
      start_.push_back(static_cast<std::byte*>(operand.data));
    }
    for (std::size_t dim = 0; dim < first.dims(); ++dim) {
      empty_ = empty_ || first.shape[dim] == 0;
      if (first.shape[dim] == 1) {
        continue;
      }
      Loop loop{.size = first.shape[dim]};
      for (const Tensor& operand : operands) {
        loop.strides.push_back(operand.strides[dim] * bytes);
      }
      loops_.push_back(std::move(loop));
    }
    std::stable_sort(loops_.begin(), loops_.end(), [](const Loop& a, const Loop& b) {
      return std::abs(a.strides.front()) > std::abs(b.strides.front());
    });
    join();
    const bool contiguous =
        !loops_.empty() && std::all_of(loops_.back().strides.begin(), loops_.back().strides.end(),
                                       [&](std::ptrdiff_t stride) { return stride == bytes; });
    inner_ = {.size = 1, .strides = std::vector<std::ptrdiff_t>(operands.size(), bytes)};
    if (contiguous || operands.size() == 2) {
      if (!loops_.empty()) {
        inner_ = loops_.back();
        loops_.pop_back();
      }
    }
  }

  // Calls body(addresses, elements, strides in bytes) for each innermost run. If there are not
  // exactly two operands, a run of more than one element is contiguous in all of them.
  template <typename Body>
  void run(const Body& body) {
    if (!empty_) {
      std::vector<std::byte*> at = start_;
      turn(0, at, body);
    }
  }

 private:
  // Merges two loops if the outer one continues where the inner one ends.
  void join() {
    for (std::size_t i = loops_.size(); i-- > 1;) {
      Loop& outer = loops_[i - 1];
      const Loop& inner = loops_[i];
      bool goes_on = true;
      for (std::size_t k = 0; k < start_.size(); ++k) {
        goes_on = goes_on &&
                  outer.strides[k] == inner.strides[k] * static_cast<std::ptrdiff_t>(inner.size);
      }
      if (goes_on) {
        outer.size *= inner.size;
        outer.strides = inner.strides;
        loops_.erase(loops_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }

  template <typename Body>
  void turn(std::size_t depth, std::vector<std::byte*>& at, const Body& body) {
    if (depth == loops_.size()) {
      body(at, inner_.size, inner_.strides);
      return;
    }
    const Loop& loop = loops_[depth];
    for (std::size_t i = 0; i < loop.size; ++i) {
      turn(depth + 1, at, body);
      for (std::size_t k = 0; k < at.size(); ++k) {
        at[k] += loop.strides[k];
      }
    }
    for (std::size_t k = 0; k < at.size(); ++k) {
      at[k] -= loop.strides[k] * static_cast<std::ptrdiff_t>(loop.size);
    }
  }

  std::vector<std::byte*> start_;
  std::vector<Loop> loops_;
  Loop inner_;
  bool empty_ = false;
};

template <std::size_t kBytes>
void copy_spaced(std::byte* out, const std::byte* in, std::size_t count, std::ptrdiff_t out_stride,
                 std::ptrdiff_t in_stride) {
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(out, in, kBytes);
    out += out_stride;
    in += in_stride;
  }
}

}  // namespace

Tensor view_of(const Tensor& tensor, const ElementRanges& held, const std::vector<Range>& box) {
  Tensor view = tensor;
  std::ptrdiff_t offset = 0;
  for (std::size_t dim = 0; dim < box.size(); ++dim) {
    offset +=
        tensor.strides[dim] * static_cast<std::ptrdiff_t>(index_in(held[dim], box[dim].first));
    view.shape[dim] = box[dim].count;
  }
  view.data = static_cast<std::byte*>(tensor.data) +
              offset * static_cast<std::ptrdiff_t>(size_of(tensor.dtype));
  return view;
}

kernels::Store store_for(std::size_t bytes) {
  return bytes >= kStreamedBytes ? kernels::Store::streaming : kernels::Store::cached;
}

void copy_elements(const Tensor& in, const Tensor& out, kernels::Store store) {
  const std::size_t bytes = size_of(in.dtype);
  const auto step = static_cast<std::ptrdiff_t>(bytes);
  const std::array<Tensor, 2> operands = {out, in};
  Walk(operands).run([&](const std::vector<std::byte*>& at, std::size_t count,
                         const std::vector<std::ptrdiff_t>& strides) {
    if (at[0] == at[1] && strides[0] == strides[1]) {
      return;
    }
    if (strides[0] == step && strides[1] == step) {
      kernels::copy(at[0], at[1], count * bytes, store);
    } else if (bytes == 1) {
      copy_spaced<1>(at[0], at[1], count, strides[0], strides[1]);
    } else if (bytes == 2) {
      copy_spaced<2>(at[0], at[1], count, strides[0], strides[1]);
    } else if (bytes == 4) {
      copy_spaced<4>(at[0], at[1], count, strides[0], strides[1]);
    } else {
      copy_spaced<8>(at[0], at[1], count, strides[0], strides[1]);
    }
  });
  if (store == kernels::Store::streaming) {
    kernels::fence_streaming();
  }
}

void reduce_elements(std::span<const Tensor> sources, const Tensor& out, const Combine& combine,
                     kernels::Store store) {
  std::vector<Tensor> operands = {out};
  operands.insert(operands.end(), sources.begin(), sources.end());
  if (operands.size() == 2) {
    copy_elements(sources.front(), out, store);
    return;
  }
  Walk(operands).run([&](const std::vector<std::byte*>& at, std::size_t count,
                         const std::vector<std::ptrdiff_t>&) {
    std::array<const void*, kernels::kMaxSources> from = {};
    std::copy(at.begin() + 1, at.end(), from.begin());
    combine(at[0], from.data(), count);
  });
  if (store == kernels::Store::streaming) {
    kernels::fence_streaming();
  }
}

void scale_elements(const Tensor& tensor, kernels::ScaleFunction scale, double factor) {
  Walk({&tensor, 1})
      .run([&](const std::vector<std::byte*>& at, std::size_t count,
               const std::vector<std::ptrdiff_t>&) { scale(at[0], at[0], count, factor); });
}

void fill_with_zeros(const Tensor& tensor) {
  const std::size_t bytes = size_of(tensor.dtype);
  Walk({&tensor, 1})
      .run([&](const std::vector<std::byte*>& at, std::size_t count,
               const std::vector<std::ptrdiff_t>&) { std::memset(at[0], 0, count * bytes); });
}

}  // namespace unisono::parallel
