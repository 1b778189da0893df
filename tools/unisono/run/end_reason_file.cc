#include "run/end_reason_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace unisono::cli {

EndReasonFile::EndReasonFile() : memory_(::memfd_create("unisono-launcher", MFD_CLOEXEC)) {}

std::string EndReasonFile::environment() const {
  constexpr const char* kNone = "UNISONO_LAUNCHER";  // takes it away
  return memory_ ? fmt::format("{}=/proc/{}/fd/{}", kNone, ::getpid(), memory_.get()) : kNone;
}

void EndReasonFile::write(const std::string& reason, const std::string& advice) {
  if (!memory_ || written_) {
    return;
  }
  written_ = true;
  const std::string text = fmt::format("{}\n{}", reason, advice);
  [[maybe_unused]] const ssize_t written = ::pwrite(memory_.get(), text.data(), text.size(), 0);
}

}  // namespace unisono::cli
