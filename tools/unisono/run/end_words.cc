#include "run/end_words.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace unisono::cli {

EndWords::EndWords() : memory_(::memfd_create("unisono-launcher", MFD_CLOEXEC)) {}

std::string EndWords::environment() const {
  constexpr const char* kNone = "UNISONO_LAUNCHER";  // takes it away
  return memory_ ? fmt::format("{}=/proc/{}/fd/{}", kNone, ::getpid(), memory_.get()) : kNone;
}

void EndWords::say(const std::string& words, const std::string& advice) {
  if (!memory_ || said_) {
    return;
  }
  said_ = true;
  const std::string text = fmt::format("{}\n{}", words, advice);
  [[maybe_unused]] const ssize_t written = ::pwrite(memory_.get(), text.data(), text.size(), 0);
}

}  // namespace unisono::cli
