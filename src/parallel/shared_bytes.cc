#include "parallel/shared_bytes.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace unisono::parallel {
namespace {

using Signed = std::int64_t;

constexpr int kMostSteps = 100'000;

// The addresses [first, end) between which a tensor has its bytes. Empty: first == end.
struct Extent {
  Signed first = 0;
  Signed end = 0;
};

Extent extent_of(const Tensor& tensor) {
  const auto data = static_cast<Signed>(reinterpret_cast<std::uintptr_t>(tensor.data));
  if (tensor.data == nullptr || tensor.count() == 0) {
    return {};
  }
  const auto bytes = static_cast<Signed>(size_of(tensor.dtype));
  Extent extent{.first = data, .end = data + bytes};
  for (std::size_t dim = 0; dim < tensor.dims(); ++dim) {
    const Signed last = static_cast<Signed>(tensor.shape[dim] - 1) * tensor.strides[dim] * bytes;
    (last < 0 ? extent.first : extent.end) += last;
  }
  return extent;
}

// The distance of two bytes, one of each tensor, is `start` plus a multiple of each stride. The
// multiple of a stride is between 0 and `most`, because `start` is the distance at the least
// multiples.
class Distances {
 public:
  Distances(const Tensor& a, const Tensor& b) : start_(extent_of(a).first - extent_of(b).end + 1) {
    for (const Tensor* tensor : {&a, &b}) {
      const auto bytes = static_cast<Signed>(size_of(tensor->dtype));
      most_[1] += bytes - 1;
      for (std::size_t dim = 0; dim < tensor->dims(); ++dim) {
        const Signed stride = tensor->strides[dim] * bytes;
        if (stride != 0) {
          most_[stride < 0 ? -stride : stride] += static_cast<Signed>(tensor->shape[dim] - 1);
        }
      }
    }
  }

  bool have_zero() { return reach(most_.begin(), -start_); }

 private:
  using Strides = std::map<Signed, Signed, std::greater<>>;

  // Returns true if the strides from `stride` on can add up to `distance`.
  bool reach(Strides::const_iterator stride, Signed distance) {
    if (stride == most_.end() || distance < 0) {
      return distance == 0;
    }
    if (++steps_ > kMostSteps) {
      return true;
    }
    Signed rest = 0;  // the most that the smaller strides add
    for (auto smaller = std::next(stride); smaller != most_.end(); ++smaller) {
      rest += smaller->first * smaller->second;
    }
    const auto [length, most] = *stride;
    Signed times = std::min(most, distance / length);
    for (; times >= 0 && distance - times * length <= rest; --times) {
      if (reach(std::next(stride), distance - times * length)) {
        return true;
      }
    }
    return false;
  }

  Strides most_;  // the most multiples, by stride in bytes
  Signed start_;
  int steps_ = 0;
};

bool meet(const Extent& a, const Extent& b) {
  return a.first < b.end && b.first < a.end;
}

}  // namespace

bool share_bytes(const Tensor& a, const Tensor& b) {
  return meet(extent_of(a), extent_of(b)) && Distances(a, b).have_zero();
}

std::optional<std::pair<std::size_t, std::size_t>> find_shared_bytes(std::span<const Tensor> a,
                                                                     std::span<const Tensor> b) {
  std::vector<std::pair<Extent, std::size_t>> sorted;  // the extents of `b`
  Signed longest = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const Extent extent = extent_of(b[i]);
    if (extent.first < extent.end) {
      sorted.emplace_back(extent, i);
      longest = std::max(longest, extent.end - extent.first);
    }
  }
  std::ranges::sort(sorted, {}, [](const auto& entry) { return entry.first.first; });
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Extent extent = extent_of(a[i]);
    auto next = std::ranges::lower_bound(sorted, extent.first - longest, {},
                                         [](const auto& entry) { return entry.first.first; });
    for (; next != sorted.end() && next->first.first < extent.end; ++next) {
      if (meet(extent, next->first) && share_bytes(a[i], b[next->second])) {
        return std::pair(i, next->second);
      }
    }
  }
  return std::nullopt;
}

}  // namespace unisono::parallel
