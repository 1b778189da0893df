// Provenance strips. A row is a chunk (all_to_all: all chunks of one source, as a strip over their
// destinations), a column a rank; a cell's strip says whose contributions it holds, and `>r` that
// it is sent to rank r in this step.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/wrap.h"
#include "show/provenance.h"
#include "show/show.h"

namespace unisono::cli {
namespace {

constexpr std::string_view kRankLetters =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view kNothing = "·";
constexpr std::string_view kTwice = "!";
constexpr int kMostRows = 64;
constexpr char kNoBreak = '~';

struct Cell {
  std::string text;
  Paint paint = Paint::plain;
};

class Drawing {
 public:
  Drawing(const Schedule& schedule, bool compact, const Console& console)
      : schedule_(schedule), console_(console), state_(schedule), compact_(compact) {
    by_source_ = cut_of(schedule.collective) == Cut::pairs;
  }

  int rows() const { return by_source_ ? schedule_.ranks : schedule_.chunks; }

  void advance() { state_.advance(); }
  std::string step_block(int step) const;
  std::string end_block() const;
  std::string after_line(int step);

 private:
  std::string letter(int rank) const {
    return std::string(1, kRankLetters[static_cast<std::size_t>(rank)]);
  }
  std::string slots(int rank, int row) const;
  std::string strip(int rank, int row) const {
    return compact_ ? slots(rank, row) : "[" + slots(rank, row) + "]";
  }
  std::string sent_lines(int step) const;
  std::string marker(int rank, int row, int step) const;
  std::string row_name(int row) const {
    return by_source_ ? fmt::format("from {}", row) : fmt::format("c{}", row);
  }
  std::string column_name(int rank) const {
    return compact_ ? fmt::format("{}", rank) : fmt::format("rank {}", rank);
  }
  // Before a rank's column; in a compact grid the place of `>` parts two ranks.
  std::string_view gap(int rank) const { return !compact_ ? "  " : rank == 0 ? " " : ""; }
  bool row_whole(int rank, int row) const;
  std::string grid(int step) const;
  // Chunks of a row: all of one source, or the one.
  int first_chunk(int row) const { return by_source_ ? row * per_source() : row; }
  int per_source() const { return by_source_ ? schedule_.chunks / schedule_.ranks : 1; }

  const Schedule& schedule_;
  const Console& console_;
  Provenance state_;
  bool by_source_ = false;
  bool compact_ = false;  // no brackets, and who sends to whom below the grid
};

std::string Drawing::slots(int rank, int row) const {
  std::string text;
  if (by_source_) {
    const int slices = std::max(1, per_source() / schedule_.ranks);
    for (int to = 0; to < schedule_.ranks; ++to) {
      int held = 0;
      for (int slice = 0; slice < slices; ++slice) {
        held += state_.shown(rank, first_chunk(row) + to * slices + slice)[0];
      }
      text += held == 0 ? std::string(kNothing) : held >= slices ? letter(to) : std::string("+");
    }
    return text;
  }
  const auto counts = state_.shown(rank, row);
  if (counts.size() == 1) {
    text += counts[0] == 0 ? std::string(kNothing) : letter(origin_of(schedule_, row));
    return text;
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    text += counts[i] == 0   ? std::string(kNothing)
            : counts[i] == 1 ? letter(static_cast<int>(i))
                             : std::string(kTwice);
  }
  return text;
}

std::string Drawing::marker(int rank, int row, int step) const {
  std::vector<int> targets;
  const int first = first_chunk(row);
  const int last = first + per_source();
  for (const Move& move : Provenance::moves_of(schedule_, step)) {
    if (move.from == rank && move.chunk < last && move.chunk + move.chunks > first) {
      targets.push_back(move.to);
    }
  }
  return targets.empty() ? std::string{} : compact_ ? ">" : ">" + rank_list(targets);
}

// "sent  0>1 c5  1>2 c6", folded to the width of the grid.
std::string Drawing::sent_lines(int step) const {
  std::string words;
  for (const Move& move : Provenance::moves_of(schedule_, step)) {
    const int first = move.chunk / per_source();
    const int last = (move.chunk + move.chunks - 1) / per_source();
    // The blank that must not break is a letter until the lines are made.
    words += fmt::format(" {}>{}{}{}{}{}", move.from, move.to, kNoBreak, by_source_ ? "from" : "c",
                         by_source_ ? std::string(1, kNoBreak) : "", first);
    words += first == last ? "," : fmt::format("-{},", last);
  }
  if (words.empty()) {
    return {};
  }
  words.pop_back();
  std::string text = wrap("sent" + words, 0, console_.width());
  std::replace(text.begin(), text.end(), kNoBreak, ' ');
  return text;
}

bool Drawing::row_whole(int rank, int row) const {
  bool any = false;
  for (int chunk = first_chunk(row); chunk < first_chunk(row) + per_source(); ++chunk) {
    if (needs_output(schedule_, rank, chunk)) {
      any = true;
      if (!state_.is_whole(rank, chunk)) {
        return false;
      }
    }
  }
  return any;
}

std::string Drawing::grid(int step) const {
  std::vector<std::vector<Cell>> cells(static_cast<std::size_t>(rows()));
  std::vector<int> widths(static_cast<std::size_t>(schedule_.ranks));
  int name_width = 0;
  for (int row = 0; row < rows(); ++row) {
    name_width = std::max(name_width, display_width(row_name(row)));
    for (int rank = 0; rank < schedule_.ranks; ++rank) {
      const std::string move = step < 0 ? std::string{} : marker(rank, row, step);
      const Paint paint = !move.empty()          ? Paint::accent
                          : row_whole(rank, row) ? Paint::good
                                                 : Paint::plain;
      cells[static_cast<std::size_t>(row)].push_back({strip(rank, row) + move, paint});
      int& width = widths[static_cast<std::size_t>(rank)];
      width = std::max({width, display_width(cells[static_cast<std::size_t>(row)].back().text),
                        compact_ ? display_width(strip(rank, row)) + 1 : 0,
                        display_width(column_name(rank))});
    }
  }
  std::string text(static_cast<std::size_t>(name_width), ' ');
  for (int rank = 0; rank < schedule_.ranks; ++rank) {
    text += fmt::format("{}{:<{}}", gap(rank), column_name(rank),
                        widths[static_cast<std::size_t>(rank)]);
  }
  text = text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  for (int row = 0; row < rows(); ++row) {
    text += fmt::format("{:<{}}", row_name(row), name_width);
    int owed = 0;  // spaces wait until something follows them
    for (int rank = 0; rank < schedule_.ranks; ++rank) {
      const Cell& cell = cells[static_cast<std::size_t>(row)][static_cast<std::size_t>(rank)];
      text += std::string(static_cast<std::size_t>(owed), ' ') + std::string(gap(rank));
      text += console_.paint(cell.paint, cell.text);
      owed = widths[static_cast<std::size_t>(rank)] - display_width(cell.text);
    }
    text += "\n";
  }
  return text;
}

std::string Drawing::step_block(int step) const {
  const std::string phase = phase_of(schedule_, step);
  return fmt::format("{}  step {}/{}{}{}\n{}", console_.paint(Paint::strong, head_of(schedule_)),
                     step + 1, schedule_.steps, phase.empty() ? "" : "  ", phase, grid(step));
}

std::string Drawing::end_block() const {
  return fmt::format("{}  end\n{}", console_.paint(Paint::strong, head_of(schedule_)), grid(-1));
}

// "4 moves, 1 chunk each; afterwards c1 is whole on rank 1, c2 on 2"; performs the step.
std::string Drawing::after_line(int step) {
  const auto moves = Provenance::moves_of(schedule_, step);
  int least = moves.empty() ? 0 : moves[0].chunks;
  int most = least;
  for (const Move& move : moves) {
    least = std::min(least, move.chunks);
    most = std::max(most, move.chunks);
  }
  const std::string each = least == most
                               ? fmt::format("{} chunk{} each", most, most == 1 ? "" : "s")
                               : fmt::format("{} to {} chunks each", least, most);
  std::string text = compact_ ? sent_lines(step) : std::string();
  text += fmt::format("{} move{}, {}", moves.size(), moves.size() == 1 ? "" : "s", each);

  std::vector<std::vector<bool>> before(static_cast<std::size_t>(rows()));
  for (int row = 0; row < rows(); ++row) {
    for (int rank = 0; rank < schedule_.ranks; ++rank) {
      before[static_cast<std::size_t>(row)].push_back(row_whole(rank, row));
    }
  }
  state_.advance();
  std::vector<std::string> gained;
  bool first = true;
  for (int row = 0; row < rows(); ++row) {
    std::vector<int> ranks;
    for (int rank = 0; rank < schedule_.ranks; ++rank) {
      if (!before[static_cast<std::size_t>(row)][static_cast<std::size_t>(rank)] &&
          row_whole(rank, row)) {
        ranks.push_back(rank);
      }
    }
    if (!ranks.empty()) {
      gained.push_back(first ? fmt::format("{} is whole on rank{} {}", row_name(row),
                                           ranks.size() == 1 ? "" : "s", rank_list(ranks))
                             : fmt::format("{} on {}", row_name(row), rank_list(ranks)));
      first = false;
    }
  }
  if (!gained.empty() && gained.size() <= 8) {
    text += fmt::format("; afterwards {}", fmt::join(gained, ", "));
  } else if (!gained.empty()) {
    text += fmt::format("; afterwards {} of {} results are whole", state_.whole(), state_.needed());
  }
  return text + "\n";
}

int strip_width(const Schedule& schedule) {
  return cut_of(schedule.collective) == Cut::pairs ? schedule.ranks : contributors(schedule);
}

int widest(const Schedule& schedule) {
  const int digits = display_width(fmt::format("{}", schedule.ranks - 1));
  return 8 + schedule.ranks * std::max(strip_width(schedule) + 2 + 1 + digits + 2, 5 + digits + 2);
}

int widest_compact(const Schedule& schedule) {
  const bool by_source = cut_of(schedule.collective) == Cut::pairs;
  const int rows = by_source ? schedule.ranks : schedule.chunks;
  const int name = display_width(fmt::format("{}{}", by_source ? "from " : "c", rows - 1));
  const int digits = display_width(fmt::format("{}", schedule.ranks - 1));
  return name + 1 + schedule.ranks * (std::max(strip_width(schedule), digits) + 1);
}

}  // namespace

std::string draw_strips(const Schedule& schedule, const ShowOptions& options,
                        const Console& console) {
  const bool by_source = cut_of(schedule.collective) == Cut::pairs;
  const int rows = by_source ? schedule.ranks : schedule.chunks;
  if (schedule.ranks > static_cast<int>(kRankLetters.size()) || rows > kMostRows ||
      widest_compact(schedule) > options.width) {
    return {};
  }
  Drawing drawing(schedule, widest(schedule) > options.width, console);
  std::string text;
  for (int step = 0; step < schedule.steps; ++step) {
    if (options.step >= 0 && step != options.step) {
      drawing.advance();
      continue;
    }
    text += drawing.step_block(step);
    text += drawing.after_line(step);
    if (options.step >= 0) {
      return text;
    }
    text += "\n";
  }
  text += drawing.end_block();
  if (!console.quiet()) {
    text += console.paint(
        Paint::dim,
        by_source ? "strip: destinations whose data from this source the rank holds; >r: goes to r"
        : reduces(schedule.collective) || contributors(schedule) > 1
            ? "strip: ranks whose contribution is in; >r: goes to rank r in this step; !: twice"
            : "strip: the rank whose data it is, · nothing yet; >r: goes to rank r in this step");
    text += "\n";
  }
  return text;
}

}  // namespace unisono::cli
