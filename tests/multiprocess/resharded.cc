// Four ranks: 0 and 1 hold the rows of a matrix, and 2 and 3 get all of it.
#include <cstddef>
#include <cstdio>
#include <exception>
#include <vector>

#include "unisono/parallel/reshard.hpp"
#include "unisono/unisono.hpp"

namespace {

namespace up = unisono::parallel;

constexpr std::size_t kRows = 4096;
constexpr std::size_t kColumns = 2048;

float element(std::size_t index) {
  return static_cast<float>(index % 16381);
}

int run() {
  auto comm = unisono::Communicator::connect();
  auto reshard = up::Reshard::create(comm, {{.name = "w",
                                             .shape = {kRows, kColumns},
                                             .from = up::MeshLayout::parse("tp=2: tp=shard(0)"),
                                             .to = up::MeshLayout::parse("dp=2 on 2-3")}});
  if (comm.rank() < 2) {
    std::vector<float> rows(kRows / 2 * kColumns);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i] = element(static_cast<std::size_t>(comm.rank()) * rows.size() + i);
    }
    const std::vector<up::Tensor> in = {up::Tensor::of(rows, {kRows / 2, kColumns})};
    reshard.run(in, std::vector<up::Tensor>(1));
    return 0;
  }
  std::vector<float> all(kRows * kColumns);
  const std::vector<up::Tensor> out = {up::Tensor::of(all, {kRows, kColumns})};
  reshard.run(std::vector<up::Tensor>(1), out);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] != element(i)) {
      std::fprintf(stderr, "rank %d: element %zu is %g\n", comm.rank(), i,
                   static_cast<double>(all[i]));
      return 1;
    }
  }
  std::printf("rank %d: all elements are right\n", comm.rank());
  return 0;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
