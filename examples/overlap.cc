// Overlaps communication with computation, as in training: averages a layer's gradient over the
// ranks while the next layer's gradient is computed.
//
//   unisono run -n 2 -- ./overlap
#include <cstddef>
#include <cstdio>
#include <span>
#include <unisono/unisono.hpp>
#include <vector>

namespace {

constexpr std::size_t kLayers = 8;
constexpr std::size_t kParameters = std::size_t{1} << 18;

// Stands for the backward pass of a layer. Every rank computes different values.
void compute_gradient(std::size_t layer, int rank, std::span<float> gradient) {
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = static_cast<float>(layer * 10 + i % 7) + static_cast<float>(rank);
  }
}

// Returns true if `gradient` is the average of the ranks' gradients.
bool is_average(std::size_t layer, int ranks, std::span<const float> gradient) {
  const float mean_rank = static_cast<float>(ranks - 1) / 2;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float expected = static_cast<float>(layer * 10 + i % 7) + mean_rank;
    if (gradient[i] < expected - 1e-3F || gradient[i] > expected + 1e-3F) {
      return false;
    }
  }
  return true;
}

int run() {
  auto comm = unisono::Communicator::connect();
  std::vector<std::vector<float>> gradients(kLayers, std::vector<float>(kParameters));
  std::vector<unisono::Request> requests;
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    compute_gradient(layer, comm.rank(), gradients[layer]);
    // Returns at once. The vector must live, and must not change, until wait() has returned.
    requests.push_back(comm.all_reduce_async(gradients[layer], unisono::avg));
  }
  bool right = true;
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    requests[layer].wait();
    right = right && is_average(layer, comm.size(), gradients[layer]);
  }
  std::printf("rank %d: %zu layers of %zu parameters: %s\n", comm.rank(), kLayers, kParameters,
              right ? "right" : "wrong");
  return right ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const unisono::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
