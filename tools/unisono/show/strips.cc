// Provenance strips. A row is a chunk (all_to_all: all chunks of one source, as a strip over their
// destinations), a column a rank; a cell's strip says whose contributions it holds, and `>r` that
// it is sent to rank r in this step. Where there are counts, a block is as wide as it is long.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
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

// [from][to]: in how many columns the blocks of a source are drawn. Empty: each in one.
using BlockWidths = std::vector<std::vector<int>>;

// The fullest rank's row takes about `columns`, or one for each element if these are fewer. What is
// not empty is seen.
BlockWidths block_widths(const Counts& counts, int columns) {
  BlockWidths widths;
  const std::int64_t most = counts.empty() ? 0 : totals_of(counts).most_sent;
  const double scale = most <= columns ? 1 : columns / static_cast<double>(most);
  for (const std::vector<std::int64_t>& row : counts.send) {
    widths.emplace_back();
    for (const std::int64_t count : row) {
      const auto width = static_cast<int>(std::lround(static_cast<double>(count) * scale));
      widths.back().push_back(count == 0 ? 0 : std::max(1, width));
    }
  }
  return widths;
}

struct Cell {
  std::string text;
  Paint paint = Paint::plain;
};

class Drawing {
 public:
  Drawing(const Schedule& schedule, bool compact, BlockWidths widths, const Console& console)
      : schedule_(schedule),
        console_(console),
        state_(schedule),
        compact_(compact),
        widths_(std::move(widths)) {
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
  int width_of(int from, int to) const {
    return widths_.empty() ? 1
                           : widths_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }
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
  BlockWidths widths_;
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
      const std::string drawn = held == 0        ? std::string(kNothing)
                                : held >= slices ? letter(to)
                                                 : std::string("+");
      for (int i = 0; i < width_of(row, to); ++i) {
        text += drawn;
      }
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
      if (cell.text.empty()) {
        owed += static_cast<int>(gap(rank).size()) + widths[static_cast<std::size_t>(rank)];
        continue;
      }
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
  std::int64_t least = moves.empty() ? 0 : length_of(schedule_, moves[0]);
  std::int64_t most = least;
  for (const Move& move : moves) {
    least = std::min(least, length_of(schedule_, move));
    most = std::max(most, length_of(schedule_, move));
  }
  const char* unit = schedule_.counts.empty() ? "chunk" : "element";
  const std::string each = least == most
                               ? fmt::format("{} {}{} each", most, unit, most == 1 ? "" : "s")
                               : fmt::format("{} to {} {}s each", least, most, unit);
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

int strip_width(const Schedule& schedule, const BlockWidths& widths) {
  if (!widths.empty()) {
    int most = 0;
    for (const std::vector<int>& row : widths) {
      most = std::max(most, std::accumulate(row.begin(), row.end(), 0));
    }
    return most;
  }
  return cut_of(schedule.collective) == Cut::pairs ? schedule.ranks : contributors(schedule);
}

int widest(const Schedule& schedule, const BlockWidths& widths) {
  const int digits = display_width(fmt::format("{}", schedule.ranks - 1));
  return 8 + schedule.ranks *
                 std::max(strip_width(schedule, widths) + 2 + 1 + digits + 2, 5 + digits + 2);
}

int widest_compact(const Schedule& schedule, const BlockWidths& widths) {
  const bool by_source = cut_of(schedule.collective) == Cut::pairs;
  const int rows = by_source ? schedule.ranks : schedule.chunks;
  const int name = display_width(fmt::format("{}{}", by_source ? "from " : "c", rows - 1));
  const int digits = display_width(fmt::format("{}", schedule.ranks - 1));
  return name + 1 + schedule.ranks * (std::max(strip_width(schedule, widths), digits) + 1);
}

// The widest blocks with which `widest` says that it fits; else the narrowest.
template <typename Widest>
BlockWidths widths_within(const Schedule& schedule, int width, const Widest& widest) {
  BlockWidths widths;
  for (const int columns : {32, 24, 16, 12, 8, 4, 1}) {
    widths = block_widths(schedule.counts, columns);
    if (widest(schedule, widths) <= width) {
      break;
    }
  }
  return widths;
}

}  // namespace

std::string draw_strips(const Schedule& schedule, const ShowOptions& options,
                        const Console& console) {
  const bool by_source = cut_of(schedule.collective) == Cut::pairs;
  const int rows = by_source ? schedule.ranks : schedule.chunks;
  if (schedule.ranks > static_cast<int>(kRankLetters.size()) || rows > kMostRows) {
    return {};
  }
  BlockWidths widths = widths_within(schedule, options.width, widest);
  const bool compact = widest(schedule, widths) > options.width;
  if (compact) {
    widths = widths_within(schedule, options.width, widest_compact);
  }
  if (widest_compact(schedule, widths) > options.width) {
    return {};
  }
  Drawing drawing(schedule, compact, std::move(widths), console);
  std::string text;
  if (!schedule.counts.empty() && options.step < 0) {
    text += draw_counts(schedule.counts, options.width, console) + "\n";
  }
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
        !schedule.counts.empty()
            ? "strip: destinations whose data from this source the rank holds, as wide as there is "
              "of it; >r: goes to r"
        : by_source
            ? "strip: destinations whose data from this source the rank holds; >r: goes to r"
        : reduces(schedule.collective) || contributors(schedule) > 1
            ? "strip: ranks whose contribution is in; >r: goes to rank r in this step; !: twice"
            : "strip: the rank whose data it is, · nothing yet; >r: goes to rank r in this step");
    text += "\n";
  }
  return text;
}

}  // namespace unisono::cli
