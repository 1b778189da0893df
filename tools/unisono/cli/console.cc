#include "cli/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/env.h"

namespace unisono::cli {
namespace {

std::string_view escape(Paint paint) {
  switch (paint) {
    case Paint::plain:
      return "";
    case Paint::strong:
      return "\x1b[1m";
    case Paint::dim:
      return "\x1b[2m";
    case Paint::good:
      return "\x1b[32m";
    case Paint::bad:
      return "\x1b[1;31m";
    case Paint::warn:
      return "\x1b[33m";
    case Paint::accent:
      return "\x1b[1;36m";
  }
  return "";
}

std::string painted(bool on, Paint paint, std::string_view text) {
  if (!on || paint == Paint::plain || text.empty()) {
    return std::string(text);
  }
  return fmt::format("{}{}{}", escape(paint), text, kResetColor);
}

int find_width() {
  winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return size.ws_col;
  }
  if (const auto columns = read_env("COLUMNS")) {
    const int value = std::atoi(columns->c_str());
    if (value > 0) {
      return value;
    }
  }
  return 100;
}

}  // namespace

Console Console::make(std::string_view color, bool json, bool quiet, bool verbose) {
  Console console;
  console.json_ = json;
  console.quiet_ = quiet;
  console.verbose_ = verbose;
  console.out_terminal_ = ::isatty(STDOUT_FILENO) == 1;
  console.err_terminal_ = ::isatty(STDERR_FILENO) == 1;
  const auto no_color = read_env("NO_COLOR");
  const bool automatic = color == "auto" && (!no_color || no_color->empty());
  const bool always = color == "always";
  console.out_color_ = always || (automatic && console.out_terminal_);
  console.err_color_ = always || (automatic && console.err_terminal_);
  console.width_ = find_width();
  return console;
}

std::string Console::paint(Paint paint, std::string_view text) const {
  return painted(out_color_, paint, text);
}

std::string Console::paint_err(Paint paint, std::string_view text) const {
  return painted(err_color_, paint, text);
}

void Console::progress(std::string_view text) const {
  if (err_terminal_ && !quiet_) {
    std::fflush(stdout);
    fmt::print(stderr, "\r\x1b[K{}", text);
  }
}

void Console::end_progress() const {
  if (err_terminal_ && !quiet_) {
    fmt::print(stderr, "\r\x1b[K");
  }
}

void Console::note(std::string_view text) const {
  if (!quiet_) {
    std::fflush(stdout);
    fmt::print(stderr, "{}\n", text);
  }
}

std::string_view rank_color(int rank) {
  static constexpr std::array<std::string_view, 6> kColors = {"\x1b[36m", "\x1b[33m", "\x1b[35m",
                                                              "\x1b[32m", "\x1b[34m", "\x1b[31m"};
  return kColors[static_cast<std::size_t>(rank) % kColors.size()];
}

int display_width(std::string_view text) {
  int count = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    count += (byte & 0xC0U) == 0x80U ? 0 : byte >= 0xE3U ? 2 : 1;
  }
  return count;
}

}  // namespace unisono::cli
