// The destination and style of output: colour, width, quiet, verbose.
#pragma once

#include <string>
#include <string_view>

namespace unisono::cli {

enum class Paint : unsigned char { plain, strong, dim, good, bad, warn, accent };

class Console {
 public:
  // `color` is auto, always or never.
  static Console make(std::string_view color, bool json, bool quiet, bool verbose);

  bool json() const { return json_; }
  bool quiet() const { return quiet_; }
  bool verbose() const { return verbose_; }
  bool out_is_terminal() const { return out_terminal_; }
  bool out_color() const { return out_color_; }
  bool err_color() const { return err_color_; }
  // Columns of stdout: those of the terminal, otherwise $COLUMNS, otherwise 100.
  int width() const { return width_; }

  // Returns `text`, in colour if the stream supports it.
  std::string paint(Paint paint, std::string_view text) const;
  std::string paint_err(Paint paint, std::string_view text) const;

  // Shows progress: one line on stderr, rewritten in place; only on a terminal, never with --quiet.
  void progress(std::string_view text) const;
  void end_progress() const;
  // Prints a remark of one line on stderr; not with --quiet.
  void note(std::string_view text) const;

 private:
  bool json_ = false;
  bool quiet_ = false;
  bool verbose_ = false;
  bool out_terminal_ = false;
  bool err_terminal_ = false;
  bool out_color_ = false;
  bool err_color_ = false;
  int width_ = 100;
};

// The colour for rank `rank`, as an escape sequence.
std::string_view rank_color(int rank);
inline constexpr std::string_view kResetColor = "\x1b[0m";

// Returns the columns that a UTF-8 text occupies: two for each Chinese character, one for any
// other.
int display_width(std::string_view text);

}  // namespace unisono::cli
