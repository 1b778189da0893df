// Detects whether this process is a forked child of the one that made an object: a child has no
// threads, and may have inherited locks that nobody will release.
#pragma once

#include <memory>

namespace unisono {

class ForkDetector {
 public:
  // Throws resource.
  ForkDetector();
  // False in the child of a fork. One load: the kernel wipes the page there.
  bool same_process() const noexcept { return *page_ != 0; }

 private:
  struct Unmap {
    void operator()(volatile char* page) const noexcept;
  };
  std::unique_ptr<volatile char, Unmap> page_;
};

}  // namespace unisono
