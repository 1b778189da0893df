// unisono with ordinary memory, registered memory, and persistent operations.
#include <memory>
#include <vector>

#include "peers/peer.h"
#include "unisono/unisono.hpp"

#ifndef UNISONO_BENCH_VERSION
#error "the build defines UNISONO_BENCH_VERSION"
#endif

namespace unisono::bench {
namespace {

Collective collective_of(Kind kind) {
  switch (kind) {
    case Kind::all_reduce:
      return Collective::all_reduce;
    case Kind::all_gather:
      return Collective::all_gather;
    case Kind::reduce_scatter:
      return Collective::reduce_scatter;
    case Kind::all_to_all:
      return Collective::all_to_all;
    case Kind::broadcast:
      return Collective::broadcast;
    case Kind::reduce:
      return Collective::reduce;
    case Kind::gather:
      return Collective::gather;
    case Kind::scatter:
      return Collective::scatter;
    case Kind::barrier:
    case Kind::exchange:
    case Kind::window:
      break;
  }
  return Collective::barrier;
}

ConnectOptions connect_options(const LaunchOptions& launch) {
  ConnectOptions options;
  options.rank = launch.rank;
  options.size = launch.size;
  // The directory is new for each job, so its last component identifies the job.
  options.job = launch.directory.substr(launch.directory.find_last_of('/') + 1);
  return options;
}

class UnisonoPeer final : public Peer {
 public:
  explicit UnisonoPeer(const LaunchOptions& launch)
      : comm_(Communicator::connect(connect_options(launch))) {}

  std::string name() const override { return "unisono"; }
  std::string version() const override { return UNISONO_BENCH_VERSION; }
  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }

  Buffer allocate(std::size_t bytes, Memory memory) override {
    if (memory != Memory::registered) {
      return Peer::allocate(bytes, memory);
    }
    auto region = std::make_shared<Region>(comm_.allocate(bytes));
    return {region, region->bytes().data()};
  }

  std::function<void()> bind(const Operation& operation) override {
    if (operation.kind == Kind::exchange) {
      return bind_exchange(operation);
    }
    if (operation.kind == Kind::window) {
      return bind_window(operation);
    }
    Call call;
    call.collective = collective_of(operation.kind);
    call.in = operation.in;
    call.out = operation.out;
    call.count = operation.count;
    call.dtype = operation.dtype;
    call.reduction = sum;
    call.root = kRoot;
    if (operation.kind == Kind::barrier) {
      call = {};
    }
    if (operation.memory == Memory::persistent) {
      auto plan = std::make_shared<Plan>(comm_.plan(call));
      return [plan] { plan->start(); };
    }
    return [this, call] { comm_.run(call); };
  }

 private:
  std::function<void()> bind_exchange(const Operation& operation) {
    if (size() % 2 != 0 || operation.memory == Memory::persistent) {
      return {};
    }
    const std::size_t bytes = operation.count * size_of(operation.dtype);
    const int partner = rank() ^ 1;
    return [this, bytes, partner, in = operation.in, out = operation.out] {
      comm_.send_recv(in, bytes, partner, out, bytes, partner);
    };
  }

  std::function<void()> bind_window(const Operation& operation) {
    if (size() % 2 != 0 || operation.memory == Memory::persistent) {
      return {};
    }
    const std::size_t bytes = operation.count * size_of(operation.dtype);
    const auto requests = std::make_shared<std::vector<Request>>();
    requests->reserve(2 * kWindow);
    return [this, bytes, partner = rank() ^ 1, in = operation.in,
            out = static_cast<std::byte*>(operation.out), requests] {
      for (std::size_t i = 0; i < kWindow; ++i) {
        requests->push_back(comm_.recv_async(out + i * bytes, bytes, partner));
      }
      for (std::size_t i = 0; i < kWindow; ++i) {
        requests->push_back(comm_.send_async(in, bytes, partner));
      }
      for (Request& request : *requests) {
        request.wait();
      }
      requests->clear();
    };
  }

  Communicator comm_;
};

}  // namespace

std::unique_ptr<Peer> make_peer(const LaunchOptions& options) {
  return std::make_unique<UnisonoPeer>(options);
}

}  // namespace unisono::bench
