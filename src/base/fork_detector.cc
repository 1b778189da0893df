#include "base/fork_detector.h"

#include <sys/mman.h>

#include "base/private.h"
#include "unisono/error.hpp"

namespace unisono {
namespace {

constexpr std::size_t kPageBytes = 4096;

}  // namespace

UNISONO_PRIVATE ForkDetector::ForkDetector() {
  void* page =
      mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || madvise(page, kPageBytes, MADV_WIPEONFORK) != 0) {
    throw Error(
        ErrorCode::resource,
        "cannot map a page for the fork guard\ncheck the memory limits (ulimit -v, cgroup)");
  }
  page_.reset(static_cast<char*>(page));
  *page_ = 1;
}

UNISONO_PRIVATE void ForkDetector::Unmap::operator()(volatile char* page) const noexcept {
  munmap(const_cast<char*>(page), kPageBytes);
}

}  // namespace unisono
