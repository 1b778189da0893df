// Sums one number per rank, on every rank.
//
//   unisono run -n 2 -- ./hello_all_reduce
#include <cstdio>
#include <unisono/unisono.hpp>
#include <vector>

int main() {
  try {
    auto comm = unisono::Communicator::connect();
    std::vector<float> data(1000, static_cast<float>(comm.rank() + 1));
    comm.all_reduce(data, unisono::sum);

    const auto n = static_cast<float>(comm.size());
    const bool right = data.front() == n * (n + 1) / 2 && data.back() == data.front();
    std::printf("rank %d of %d: the sum is %g%s\n", comm.rank(), comm.size(), data.front(),
                right ? "" : ", which is wrong");
    return right ? 0 : 1;
  } catch (const unisono::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
