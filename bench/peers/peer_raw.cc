// What the sockets alone take: each of two ranks sends all bytes to the other.
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
    if (operation.kind != Kind::exchange || size_ != 2) {
      return {};
    }
    const Flow flow{.socket = sockets_[static_cast<std::size_t>(1 - rank_)][0].get(),
                    .out = static_cast<std::byte*>(operation.in),
                    .in = static_cast<std::byte*>(operation.out),
                    .bytes = operation.count * size_of(operation.dtype)};
    return [flow] { exchange({flow}, std::size_t{256} << 10); };
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
