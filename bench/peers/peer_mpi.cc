// Open MPI and MPICH with their default settings. This file is compiled once for each.
#include <mpi.h>

#include <array>
#include <stdexcept>

#include "peers/peer.h"

namespace unisono::bench {
namespace {

class MpiPeer final : public Peer {
 public:
  MpiPeer() {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  MpiPeer(const MpiPeer&) = delete;
  MpiPeer& operator=(const MpiPeer&) = delete;
  ~MpiPeer() override { MPI_Finalize(); }

  std::string name() const override { return UNISONO_MPI_NAME; }
  std::string version() const override {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    // Finds the version in "Open MPI v4.1.4, package: ..." or "MPICH Version:\t4.0.2\n...".
    const std::string all(text.data());
    const std::size_t begin = all.find_first_of("0123456789");
    return all.substr(begin, all.find_first_not_of("0123456789.", begin) - begin);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::function<void()> bind(const Operation& operation) override;

 private:
  int rank_ = 0;
  int size_ = 1;
};

std::function<void()> MpiPeer::bind(const Operation& operation) {
  if (operation.dtype != Dtype::f32 || operation.memory != Memory::ordinary) {
    return {};
  }
  const MPI_Comm world = MPI_COMM_WORLD;
  const MPI_Datatype type = MPI_FLOAT;
  const int count = static_cast<int>(operation.count);
  const void* in = operation.in;
  void* out = operation.out;
  switch (operation.kind) {
    case Kind::all_reduce:
      return [=] { MPI_Allreduce(in, out, count, type, MPI_SUM, world); };
    case Kind::all_gather:
      return [=] { MPI_Allgather(in, count, type, out, count, type, world); };
    case Kind::reduce_scatter:
      return [=] { MPI_Reduce_scatter_block(in, out, count, type, MPI_SUM, world); };
    case Kind::all_to_all:
      return [=] { MPI_Alltoall(in, count, type, out, count, type, world); };
    case Kind::barrier:
      return [=] { MPI_Barrier(world); };
    case Kind::exchange:
      if (size_ % 2 != 0) {
        return {};
      }
      return [=, partner = rank_ ^ 1] {
        MPI_Sendrecv(in, count, type, partner, 0, out, count, type, partner, 0, world,
                     MPI_STATUS_IGNORE);
      };
    case Kind::window:
      if (size_ % 2 != 0) {
        return {};
      }
      return [=, partner = rank_ ^ 1] {
        std::array<MPI_Request, 2 * kWindow> requests;
        for (std::size_t i = 0; i < kWindow; ++i) {
          MPI_Irecv(static_cast<float*>(out) + i * static_cast<std::size_t>(count), count, type,
                    partner, 0, world, &requests[i]);
        }
        for (std::size_t i = 0; i < kWindow; ++i) {
          MPI_Isend(in, count, type, partner, 0, world, &requests[kWindow + i]);
        }
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
      };
    case Kind::broadcast:
      return [=] { MPI_Bcast(out, count, type, kRoot, world); };
    case Kind::reduce:
      return [=] { MPI_Reduce(in, out, count, type, MPI_SUM, kRoot, world); };
    case Kind::gather:
      return [=] { MPI_Gather(in, count, type, out, count, type, kRoot, world); };
    case Kind::scatter:
      return [=] { MPI_Scatter(in, count, type, out, count, type, kRoot, world); };
  }
  return {};
}

}  // namespace

std::unique_ptr<Peer> make_peer(const LaunchOptions& /*options*/) {
  return std::make_unique<MpiPeer>();
}

}  // namespace unisono::bench
