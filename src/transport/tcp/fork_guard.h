// Closes the parent's connections in a forked child. If the child kept them open, it would hide the
// parent's death from the peers, because the child's system would continue to acknowledge data.
#pragma once

#include <vector>

namespace unisono::tcp {

// While a guard exists, these descriptors lead nowhere in a forked child; their numbers stay in
// use.
class ForkGuard {
 public:
  // Throws resource.
  explicit ForkGuard(std::vector<int> descriptors);
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  ~ForkGuard();

 private:
  std::vector<int> descriptors_;
};

}  // namespace unisono::tcp
