#include "bench/progress_line.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace unisono::cli {

ProgressLine::ProgressLine(bool wanted) {
  winsize size = {};
  if (wanted && (::isatty(STDERR_FILENO) == 1 || ::isatty(STDIN_FILENO) == 1)) {
    terminal_ = UniqueFd(::open("/dev/tty", O_WRONLY | O_NOCTTY | O_CLOEXEC));
  }
  if (terminal_ && ::ioctl(terminal_.get(), TIOCGWINSZ, &size) == 0) {
    width_ = size.ws_col;
  }
}

void ProgressLine::show(std::string_view text) {
  if (width_ > 1) {
    std::fflush(stdout);
    // A line that wraps could not be rewritten.
    write(fmt::format("\r\x1b[K{}", text.substr(0, static_cast<std::size_t>(width_ - 1))));
    shown_ = true;
  }
}

void ProgressLine::clear() {
  if (shown_) {
    write("\r\x1b[K");
    shown_ = false;
  }
}

void ProgressLine::write(std::string_view text) const {
  [[maybe_unused]] const auto written = ::write(terminal_.get(), text.data(), text.size());
}

}  // namespace unisono::cli
