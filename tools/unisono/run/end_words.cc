#include "run/end_words.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "comm/launcher_words.h"
#include "unisono/error.hpp"

namespace unisono::cli {

EndWords::EndWords() : memory_(::memfd_create("unisono-launcher", MFD_CLOEXEC)) {
  if (!memory_) {
    throw Error(ErrorCode::resource,
                fmt::format("no memory to tell the ranks in why they end: {}\nulimit -n says how "
                            "many files a process may have open",
                            std::strerror(errno)));
  }
}

std::string EndWords::environment() const {
  return fmt::format("UNISONO_LAUNCHER=/proc/{}/fd/{}", ::getpid(), memory_.get());
}

void EndWords::say(const std::string& because, const std::string& advice) {
  if (said_) {
    return;
  }
  said_ = true;
  const std::string text =
      fmt::format("{}, because {}\n{}", comm::kEndedByLauncher, because, advice);
  [[maybe_unused]] const ssize_t written = ::pwrite(memory_.get(), text.data(), text.size(), 0);
}

}  // namespace unisono::cli
