#include "cli/failure.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "base/words.h"
#include "cli/console.h"
#include "cli/language.h"
#include "cli/wrap.h"

namespace unisono::cli {
namespace {

std::string indented(std::string_view text, int width) {
  std::string result;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    result += text.starts_with(' ') ? fmt::format("  {}\n", text.substr(0, end))
                                    : wrap(text.substr(0, end), 2, width);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return result;
}

}  // namespace

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates,
                         std::string_view prefix) {
  const std::string_view nearest = nearest_word(word, candidates);
  return nearest.empty() ? std::string{} : fmt::format("did you mean {}{}?", prefix, nearest);
}

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
    case ErrorCode::config:
      return kUsage;
    case ErrorCode::mismatch:
    case ErrorCode::corrupt:
      return kAnswerIsNo;
    case ErrorCode::timeout:
      return kTimedOut;
    case ErrorCode::connection:
    case ErrorCode::peer_lost:
    case ErrorCode::aborted:
    case ErrorCode::resource:
    case ErrorCode::internal:
    case ErrorCode::evicted:
      return kCouldNotRun;
  }
  return kCouldNotRun;
}

void print_error(const Console& console, std::string_view code, std::string_view message,
                 std::string_view detail, std::string_view next) {
  std::fflush(stdout);
  std::array<std::string, 5> said = {fmt::format("error[{}]:", code), std::string(message),
                                     std::string(detail), "next", std::string(next)};
  localize_all(said);
  const auto& [head, what, more, mark, try_this] = said;
  std::string text = fmt::format("{} {}\n{}", console.paint_err(Paint::bad, head), what,
                                 indented(more, console.width()));
  if (!next.empty()) {
    text += fmt::format("{}   {}\n", console.paint_err(Paint::strong, mark), try_this);
  }
  std::fputs(text.c_str(), stderr);
}

}  // namespace unisono::cli
