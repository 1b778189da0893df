// Gloo over TCP, on the loopback interface or on UNISONO_BENCH_HOST. Its options are created once
// per row, which favours Gloo. reduce_scatter is Gloo's older, in-place algorithm class.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "peers/peer.h"

namespace unisono::bench {
namespace {

void sum_floats(void* out, const void* a, const void* b, std::size_t count) {
  gloo::sum<float>(out, a, b, count);
}

// Returns a function that shares ownership of Gloo's options, because std::function must be
// copyable and the options are not.
template <typename Options>
std::function<void()> repeat(const std::shared_ptr<Options>& options,
                             void (*collective)(Options&)) {
  return [options, collective] { collective(*options); };
}

class GlooPeer final : public Peer {
 public:
  explicit GlooPeer(const LaunchOptions& launch) {
    context_ = std::make_shared<gloo::rendezvous::Context>(launch.rank, launch.size);
    gloo::rendezvous::FileStore store(launch.directory);
    const char* host = std::getenv("UNISONO_BENCH_HOST");  // NOLINT(concurrency-mt-unsafe)
    auto device = gloo::transport::tcp::CreateDevice(
        gloo::transport::tcp::attr(host != nullptr ? host : "127.0.0.1"));
    context_->connectFullMesh(store, device);
  }

  std::string name() const override { return "gloo"; }
  std::string version() const override {
    return std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) + "." +
           std::to_string(GLOO_VERSION_PATCH);
  }
  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }
  std::function<void()> bind(const Operation& operation) override;

 private:
  std::function<void()> bind_rooted(const Operation& operation);
  std::function<void()> bind_exchange(const Operation& operation);
  std::function<void()> bind_reduce_scatter(const Operation& operation);
  template <typename Options>
  std::shared_ptr<Options> options() {
    auto made = std::make_shared<Options>(context_);
    made->setTag(row_);
    return made;
  }
  // Returns true on the root, which alone has the whole vector of a gather or scatter.
  bool is_root() const { return context_->rank == kRoot; }

  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::uint32_t row_ = 0;
};

std::function<void()> GlooPeer::bind_rooted(const Operation& operation) {
  auto* in = static_cast<float*>(operation.in);
  auto* out = static_cast<float*>(operation.out);
  const std::size_t count = operation.count;
  const std::size_t all = count * static_cast<std::size_t>(size());
  if (operation.kind == Kind::broadcast) {
    auto made = options<gloo::BroadcastOptions>();
    made->setRoot(kRoot);
    made->setOutput(out, count);
    return repeat(made, gloo::broadcast);
  }
  if (operation.kind == Kind::reduce) {
    auto made = options<gloo::ReduceOptions>();
    made->setRoot(kRoot);
    made->setInput(in, count);
    made->setOutput(out, count);
    made->setReduceFunction(sum_floats);
    return repeat(made, gloo::reduce);
  }
  if (operation.kind == Kind::gather) {
    auto made = options<gloo::GatherOptions>();
    made->setRoot(kRoot);
    made->setInput(in, count);
    if (is_root()) {
      made->setOutput(out, all);
    }
    return repeat(made, gloo::gather);
  }
  auto made = options<gloo::ScatterOptions>();
  made->setRoot(kRoot);
  if (is_root()) {
    std::vector<float*> parts;
    for (std::size_t at = 0; at < all; at += count) {
      parts.push_back(in + at);
    }
    made->setInputs(parts, count);
  }
  made->setOutput(out, count);
  return repeat(made, gloo::scatter);
}

std::function<void()> GlooPeer::bind_exchange(const Operation& operation) {
  if (size() % 2 != 0) {
    return {};
  }
  const std::size_t bytes = operation.count * sizeof(float);
  std::shared_ptr<gloo::transport::UnboundBuffer> in =
      context_->createUnboundBuffer(operation.in, bytes);
  std::shared_ptr<gloo::transport::UnboundBuffer> out =
      context_->createUnboundBuffer(operation.out, bytes);
  return [in, out, partner = rank() ^ 1, slot = std::uint64_t{row_}] {
    out->recv(partner, slot);
    in->send(partner, slot);
    in->waitSend();
    out->waitRecv();
  };
}

std::function<void()> GlooPeer::bind_reduce_scatter(const Operation& operation) {
  const auto ranks = static_cast<std::size_t>(size());
  const std::size_t count = operation.count;
  auto* in = static_cast<float*>(operation.in);
  const std::vector<int> parts(ranks, static_cast<int>(count));
  auto algorithm = std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
      context_, std::vector<float*>{in}, static_cast<int>(count * ranks), parts);
  return [algorithm, in, out = operation.out, bytes = count * sizeof(float)] {
    algorithm->run();
    std::memcpy(out, in, bytes);
  };
}

std::function<void()> GlooPeer::bind(const Operation& operation) {
  if (operation.dtype != Dtype::f32 || operation.memory != Memory::ordinary) {
    return {};
  }
  ++row_;
  auto* in = static_cast<float*>(operation.in);
  auto* out = static_cast<float*>(operation.out);
  const std::size_t count = operation.count;
  const std::size_t all = count * static_cast<std::size_t>(size());
  switch (operation.kind) {
    case Kind::all_reduce: {
      auto made = std::make_shared<gloo::AllreduceOptions>(context_);
      made->setTag(row_);
      made->setInput(in, count);
      made->setOutput(out, count);
      made->setReduceFunction(sum_floats);
      return [made] { gloo::allreduce(*made); };
    }
    case Kind::all_gather: {
      auto made = options<gloo::AllgatherOptions>();
      made->setInput(in, count);
      made->setOutput(out, all);
      return repeat(made, gloo::allgather);
    }
    case Kind::all_to_all: {
      auto made = options<gloo::AlltoallOptions>();
      made->setInput(in, all);
      made->setOutput(out, all);
      return repeat(made, gloo::alltoall);
    }
    case Kind::barrier:
      return repeat(options<gloo::BarrierOptions>(), gloo::barrier);
    case Kind::exchange:
      return bind_exchange(operation);
    case Kind::window:
      return {};
    case Kind::reduce_scatter:
      return bind_reduce_scatter(operation);
    case Kind::broadcast:
    case Kind::reduce:
    case Kind::gather:
    case Kind::scatter:
      return bind_rooted(operation);
  }
  return {};
}

}  // namespace

std::unique_ptr<Peer> make_peer(const LaunchOptions& options) {
  return std::make_unique<GlooPeer>(options);
}

}  // namespace unisono::bench
