// group(): several operations started as one. Consecutive small all_reduces with the same dtype and
// op are fused.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/hash.h"
#include "comm/call_queue.h"
#include "comm/core.h"
#include "comm/group.h"
#include "select/planner.h"

namespace unisono::detail {
namespace {

// Longer vectors are not fused: they gain nothing from one start fewer, and would need two copies.
constexpr std::size_t kFuseBytes = 32768;

std::size_t bytes_of(const Call& call) {
  return call.count * size_of(call.dtype);
}

bool can_fuse(const PostedCollective* posted) {
  return posted != nullptr && posted->prepared->collective == Collective::all_reduce &&
         posted->call.count != 0 && !posted->prepared->encoded &&
         posted->call.reduction.op != ReduceOp::user && bytes_of(posted->call) <= kFuseBytes;
}

bool fuses_with(const PostedCollective* a, const PostedCollective* b) {
  return can_fuse(a) && can_fuse(b) && a->call.dtype == b->call.dtype &&
         a->call.reduction.op == b->call.reduction.op &&
         a->call.reduction.factor == b->call.reduction.factor &&
         a->prepared->algorithm == b->prepared->algorithm;
}

// One all_reduce of several vectors, packed into one.
struct Fused {
  std::vector<RequestState*> parts;
  std::vector<std::byte> packed;

  Call pack() {
    std::size_t bytes = 0;
    for (const RequestState* part : parts) {
      bytes += bytes_of(part->collective->call);
    }
    packed.resize(bytes);
    std::byte* to = packed.data();
    for (const RequestState* part : parts) {
      std::memcpy(to, part->collective->call.in, bytes_of(part->collective->call));
      to += bytes_of(part->collective->call);
    }
    Call call = parts.front()->collective->call;
    call.algorithm = parts.front()->collective->prepared->algorithm;
    call.max_error = 0;  // none of the fused calls may be encoded
    call.in = packed.data();
    call.out = packed.data();
    call.count = bytes / size_of(call.dtype);
    return call;
  }
  // Differs between ranks that fuse different counts, even if the totals are equal.
  std::uint64_t salt() const {
    Hash hash;
    for (const RequestState* part : parts) {
      hash.add(part->collective->call.count);
    }
    return hash.value();
  }
  void unpack() const {
    const std::byte* from = packed.data();
    for (const RequestState* part : parts) {
      std::memcpy(part->collective->call.out, from, bytes_of(part->collective->call));
      from += bytes_of(part->collective->call);
    }
  }
};

}  // namespace

void Core::run_together(const std::function<void()>& body) {
  group_->world().check_usable();
  if (together_) {
    body();  // a nested group is part of the outer one
    return;
  }
  together_ = true;
  try {
    body();
  } catch (...) {
    together_ = false;
    collected_.clear();
    throw;
  }
  together_ = false;
  const auto requests = std::exchange(collected_, {});

  std::vector<std::unique_ptr<Fused>> fused;
  std::vector<std::shared_ptr<RequestState>> started;
  for (std::size_t i = 0; i < requests.size();) {
    std::size_t end = i + 1;
    while (end < requests.size() &&
           fuses_with(requests[i]->collective.get(), requests[end]->collective.get())) {
      ++end;
    }
    if (end - i == 1) {
      queue_->post(*requests[i]);
      started.push_back(requests[i++]);
      continue;
    }
    auto& pack = fused.emplace_back(std::make_unique<Fused>());
    for (; i < end; ++i) {
      pack->parts.push_back(requests[i].get());
    }
    started.push_back(run_async(pack->pack(), pack->salt()));
  }
  std::unique_ptr<Error> failure;
  for (const auto& request : started) {
    try {
      queue_->wait(*request, request->timeout_ms);
    } catch (const Error& error) {
      if (failure == nullptr) {
        failure = std::make_unique<Error>(error);
      }
    }
  }
  for (const auto& pack : fused) {
    if (failure == nullptr) {
      pack->unpack();
    }
    for (RequestState* part : pack->parts) {
      if (failure != nullptr) {
        part->error = std::make_unique<Error>(*failure);
      }
      part->done.store(true, std::memory_order_release);
      if (part->on_done != nullptr) {
        std::exchange(part->on_done, nullptr)(failure.get());
      }
    }
  }
  if (failure != nullptr) {
    throw Error(*failure);
  }
}

}  // namespace unisono::detail
