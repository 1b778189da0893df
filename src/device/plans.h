// Caches the kernel's input for each kind of call, built when the kind first occurs.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "device/context.h"
#include "device/image.h"
#include "unisono/call.hpp"

namespace unisono::device {

// Key of a kind of call. A v-form's sizes are not part of the key; each call supplies them.
struct CallShape {
  Collective collective = Collective::barrier;
  Dtype dtype = Dtype::u8;
  ReduceOp op = ReduceOp::sum;  // from kernel_op()
  std::size_t count = 0;
  int root = 0;
  bool in_place = false;
  bool direct = true;     // every rank reaches all buffers
  bool captured = false;  // used by a graph, so the plan is never dropped
  std::string algorithm = {};
  friend auto operator<=>(const CallShape&, const CallShape&) = default;
};

class Plans {
 public:
  // `common`: fields shared by all launches of the group, with the maximum number of channels.
  Plans(Context& context, const Launch& common, std::size_t scratch_bytes);

  // Returns a plan without buffers and block sizes, or nullptr. Errors: usage, resource.
  const Launch* find(const CallShape& kind) const;
  // Builds a plan. May drop other plans. REQUIRES: find() returns nullptr; if is_full(), no dropped
  // plan is running.
  const Launch& add(const CallShape& kind);
  bool is_full() const;

 private:
  struct Zone {
    std::uint64_t base = 0;
    std::size_t used = 0;
  };
  Launch make(const CallShape& kind, Zone& zone) const;
  std::uint64_t put(Zone& zone, const void* data, std::size_t bytes) const;

  Context& context_;
  Launch common_;
  std::size_t scratch_bytes_;
  Zone passing_, kept_;
  std::map<CallShape, Launch> plans_ = {};
};

}  // namespace unisono::device
