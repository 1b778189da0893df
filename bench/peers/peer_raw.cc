// Measures bare sockets: the ranks of each pair send all bytes to each other.
#include <unistd.h>

#include "peers/mesh.h"
#include "tcp/raw.h"

namespace unisono::bench {
namespace {

class RawPeer final : public Peer {
 public:
  explicit RawPeer(const LaunchOptions& launch)
      : rank_(launch.rank), size_(launch.size), sockets_(connect_mesh(launch)) {}

  std::string name() const override { return "raw"; }
  std::string version() const override { return "sockets"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::function<void()> bind(const Operation& operation) override {
    if (operation.kind != Kind::exchange || size_ % 2 != 0) {
      return {};
    }
    const Flow flow{.socket = sockets_[static_cast<std::size_t>(rank_ ^ 1)][0].get(),
                    .out = static_cast<std::byte*>(operation.in),
                    .in = static_cast<std::byte*>(operation.out),
                    .bytes = operation.count * size_of(operation.dtype)};
    const bool yields = size_ > ::sysconf(_SC_NPROCESSORS_ONLN);
    return [flow, yields] { exchange({flow}, std::size_t{256} << 10, yields); };
  }

 private:
  int rank_;
  int size_;
  tcp::Channels sockets_;
};

}  // namespace

std::unique_ptr<Peer> make_peer(const LaunchOptions& options) {
  return std::make_unique<RawPeer>(options);
}

}  // namespace unisono::bench
