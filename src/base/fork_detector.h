// Whether this process is still the one that made something: the child of a fork has no threads,
// and locks that nobody will ever release.
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
