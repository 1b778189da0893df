// Provenance strips: a grid with a row per chunk and a column per rank. The strip in a cell shows
// which ranks' contributions the chunk contains there; `>r` marks a chunk that is sent to rank r in
// this step. For all_to_all, a row contains the blocks for one rank, and its strip has one place
// per source rank. With counts, a block's width is proportional to its length. The page of
// `unisono view` draws the same rows and strips.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
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
constexpr std::string_view kPart = "+";  // of a block
constexpr int kMostRows = 64;
constexpr char kNoBreak = '~';

// [from][to]: the number of columns of a block. Empty: one column each.
using BlockWidths = std::vector<std::vector<int>>;

// The row for the rank that receives most takes about `columns`, or one per element if there are
// fewer. A block that is not empty takes at least one column.
BlockWidths block_widths(const Counts& counts, int columns) {
  BlockWidths widths;
  const std::int64_t most = counts.empty() ? 0 : totals_of(counts).most_received;
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
    by_target_ = cut_of(schedule.collective) == VectorCut::pairs;
  }

  int rows() const { return by_target_ ? schedule_.ranks : schedule_.chunks; }

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
  std::string row_name(int row) const { return fmt::format("{}{}", by_target_ ? "→" : "c", row); }
  std::string column_name(int rank) const {
    return compact_ ? fmt::format("{}", rank) : fmt::format("rank {}", rank);
  }
  // Returns the gap before a rank's column; in a compact grid, the place of `>` separates two
  // ranks.
  std::string_view gap(int rank) const { return !compact_ ? "  " : rank == 0 ? " " : ""; }
  bool row_whole(int rank, int row) const;
  std::string grid(int step) const;
  // all_to_all: chunks of a block, the first one of a block, and the row that a chunk is in.
  int per_block() const { return schedule_.chunks / (schedule_.ranks * schedule_.ranks); }
  int block(int from, int to) const { return (from * schedule_.ranks + to) * per_block(); }
  int row_of(int chunk) const { return by_target_ ? chunk / per_block() % schedule_.ranks : chunk; }
  std::vector<int> rows_of(const Move& move) const;
  bool block_whole(int from, int to) const;
  std::vector<std::vector<bool>> wholes() const;
  std::string gained(const std::vector<std::vector<bool>>& before) const;

  const Schedule& schedule_;
  const Console& console_;
  Provenance state_;
  bool by_target_ = false;
  bool compact_ = false;  // no brackets; the moves are listed below the grid
  BlockWidths widths_;
};

std::string Drawing::slots(int rank, int row) const {
  std::string text;
  if (by_target_) {
    for (int from = 0; from < schedule_.ranks; ++from) {
      int held = 0;
      for (int slice = 0; slice < per_block(); ++slice) {
        held += state_.shown(rank, block(from, row) + slice)[0];
      }
      const std::string drawn = held == 0             ? std::string(kNothing)
                                : held >= per_block() ? letter(from)
                                                      : std::string(kPart);
      for (int i = 0; i < width_of(from, row); ++i) {
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

// Returns each row from which the move takes data, once.
std::vector<int> Drawing::rows_of(const Move& move) const {
  std::vector<int> rows;
  for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
    rows.push_back(row_of(chunk));
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

std::string Drawing::marker(int rank, int row, int step) const {
  std::vector<int> targets;
  for (const Move& move : Provenance::moves_of(schedule_, step)) {
    const std::vector<int> rows = move.from == rank ? rows_of(move) : std::vector<int>();
    if (std::binary_search(rows.begin(), rows.end(), row)) {
      targets.push_back(move.to);
    }
  }
  return targets.empty() ? std::string{} : compact_ ? ">" : ">" + rank_list(targets);
}

// "sent  0>1 c5  1>2 c6", folded to the width of the grid.
std::string Drawing::sent_lines(int step) const {
  std::string words;
  for (const Move& move : Provenance::moves_of(schedule_, step)) {
    // A letter stands for a blank at which lines must not break.
    words += fmt::format(" {}>{}{}{}{},", move.from, move.to, kNoBreak, by_target_ ? "→" : "c",
                         rank_list(rows_of(move)));
  }
  if (words.empty()) {
    return {};
  }
  words.pop_back();
  std::string text = wrap("sent" + words, 0, console_.width());
  std::replace(text.begin(), text.end(), kNoBreak, ' ');
  return text;
}

bool Drawing::block_whole(int from, int to) const {
  for (int slice = 0; slice < per_block(); ++slice) {
    if (!state_.is_whole(to, block(from, to) + slice)) {
      return false;
    }
  }
  return true;
}

bool Drawing::row_whole(int rank, int row) const {
  if (!by_target_) {
    return state_.is_whole(rank, row);
  }
  for (int from = 0; from < schedule_.ranks; ++from) {
    if (rank != row || !block_whole(from, rank)) {
      return false;
    }
  }
  return true;
}

// [row or origin][rank]: true if the result is complete.
std::vector<std::vector<bool>> Drawing::wholes() const {
  std::vector<std::vector<bool>> whole(static_cast<std::size_t>(rows()));
  for (int row = 0; row < rows(); ++row) {
    for (int rank = 0; rank < schedule_.ranks; ++rank) {
      whole[static_cast<std::size_t>(row)].push_back(by_target_ ? block_whole(row, rank)
                                                                : row_whole(rank, row));
    }
  }
  return whole;
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
  const std::string sent = compact_ ? sent_lines(step) : std::string();
  const std::string text =
      fmt::format("{} move{}, {}", moves.size(), moves.size() == 1 ? "" : "s", each);

  const auto before = wholes();
  state_.advance();
  return sent + wrap(text + gained(before), 0, console_.width());
}

// "; afterwards c1 is whole on rank 1, c2 on 2", or "; afterwards rank 1 has the block of 0, 0 the
// block of 1"
std::string Drawing::gained(const std::vector<std::vector<bool>>& before) const {
  const auto after = wholes();
  std::vector<std::string> gains;
  for (int row = 0; row < rows(); ++row) {
    const auto place = static_cast<std::size_t>(row);
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < after[place].size(); ++rank) {
      if (after[place][rank] && !before[place][rank]) {
        ranks.push_back(static_cast<int>(rank));
      }
    }
    if (ranks.empty()) {
      continue;
    }
    const std::string names = gains.empty() ? ranks_text(ranks) : rank_list(ranks);
    if (by_target_) {
      const char* verb = !gains.empty() ? "" : ranks.size() == 1 ? " has" : " have";
      gains.push_back(fmt::format("{}{} the block of {}", names, verb, row));
    } else {
      gains.push_back(
          fmt::format("{}{} on {}", row_name(row), gains.empty() ? " is whole" : "", names));
    }
  }
  if (gains.size() > 8) {
    return fmt::format("; afterwards {} of {} results are whole", state_.whole(), state_.needed());
  }
  return gains.empty() ? std::string() : fmt::format("; afterwards {}", fmt::join(gains, ", "));
}

int strip_width(const Schedule& schedule, const BlockWidths& widths) {
  if (widths.empty()) {
    return cut_of(schedule.collective) == VectorCut::pairs ? schedule.ranks
                                                           : contributors(schedule);
  }
  std::vector<int> sums(widths.size());
  for (const std::vector<int>& row : widths) {
    std::transform(row.begin(), row.end(), sums.begin(), sums.begin(), std::plus<>());
  }
  return *std::max_element(sums.begin(), sums.end());
}

int widest(const Schedule& schedule, const BlockWidths& widths) {
  const int digits = display_width(fmt::format("{}", schedule.ranks - 1));
  return 8 + schedule.ranks *
                 std::max(strip_width(schedule, widths) + 2 + 1 + digits + 2, 5 + digits + 2);
}

int widest_compact(const Schedule& schedule, const BlockWidths& widths) {
  const bool by_target = cut_of(schedule.collective) == VectorCut::pairs;
  const int rows = by_target ? schedule.ranks : schedule.chunks;
  const int name = display_width(fmt::format("c{}", rows - 1));
  const int digits = display_width(fmt::format("{}", schedule.ranks - 1));
  return name + 1 + schedule.ranks * (std::max(strip_width(schedule, widths), digits) + 1);
}

// Returns the widest blocks that fit according to `widest`; otherwise the narrowest.
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
  const bool by_target = cut_of(schedule.collective) == VectorCut::pairs;
  const int rows = by_target ? schedule.ranks : schedule.chunks;
  const bool no_blocks = by_target && schedule.chunks % (schedule.ranks * schedule.ranks) != 0;
  if (no_blocks || schedule.ranks > static_cast<int>(kRankLetters.size()) || rows > kMostRows) {
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
    const bool has_parts = by_target && text.find(kPart) != std::string::npos;
    text += console.paint(
        Paint::dim,
        !schedule.counts.empty() ? "row →r: blocks for rank r; strip: whose blocks are here, "
                                   "widths to scale; >r: goes to rank r"
        : by_target ? "row →r: blocks for rank r; strip: whose blocks are here; >r: goes to rank r"
        : reduces(schedule.collective) || contributors(schedule) > 1
            ? "strip: ranks whose contribution is in; >r: goes to rank r in this step; !: twice"
            : "strip: the rank whose data it is, · nothing yet; >r: goes to rank r in this step");
    text += has_parts ? console.paint(Paint::dim, "; +: a part of a block") + "\n" : "\n";
  }
  return text;
}

}  // namespace unisono::cli
