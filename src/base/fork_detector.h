// Detects whether this process was forked from the process that created an object. A child has none
// of its parent's threads, and may have inherited locks that nobody will release.
#pragma once

#include <memory>

namespace unisono {

class ForkDetector {
 public:
  // Throws Error(resource).
  ForkDetector();
  // Returns false in a forked child, where the kernel has zeroed the page. Costs one load.
  bool same_process() const noexcept { return *page_ != 0; }

 private:
  struct Unmap {
    void operator()(volatile char* page) const noexcept;
  };
  std::unique_ptr<volatile char, Unmap> page_;
};

}  // namespace unisono
