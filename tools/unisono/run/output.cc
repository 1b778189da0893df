#include "run/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/as_size.h"
#include "cli/console.h"
#include "show/show.h"

namespace unisono::cli {
namespace {

constexpr auto kWindow = std::chrono::milliseconds(50);
constexpr std::size_t kLongestLine = 65536;
constexpr std::size_t kMostWaiting = 2000;
constexpr std::size_t kTailLines = 10;
constexpr std::size_t kScreenLines = 20;  // lines that a reader of the last line still sees

}  // namespace

OutputMerger::OutputMerger(OutputOptions options) : options_(std::move(options)) {
  last_.resize(as_size(options_.ranks) * 2);
  lanes_.resize(as_size(options_.ranks) * 2);
  tails_.resize(as_size(options_.ranks));
}

OutputMerger::Lane& OutputMerger::lane(int rank, Stream stream) {
  return lanes_[as_size(rank) * 2 + static_cast<std::size_t>(stream)];
}

void OutputMerger::add(int rank, Stream stream, std::string_view bytes, Time now) {
  Lane& own = lane(rank, stream);
  if (own.partial.empty()) {
    own.since = now;
  }
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    own.partial += bytes.substr(0, end);
    if (end != std::string_view::npos || own.partial.size() > kLongestLine) {
      add_line(rank, stream, std::move(own.partial), now);
      own.partial.clear();
      own.since = now;
    }
    bytes = end == std::string_view::npos ? std::string_view{} : bytes.substr(end + 1);
  }
}

void OutputMerger::finish(int rank, Stream stream, Time now) {
  Lane& own = lane(rank, stream);
  if (!own.partial.empty()) {
    add_line(rank, stream, std::move(own.partial), now);
    own.partial.clear();
  }
}

void OutputMerger::add_line(int rank, Stream stream, std::string text, Time now) {
  if (stream == Stream::err) {
    auto& tail = tails_[as_size(rank)];
    tail.push_back(text);
    if (tail.size() > kTailLines) {
      tail.pop_front();
    }
  } else if (rank != 0) {
    others_wrote_ = true;
  }
  if (!options_.shown.empty() && !options_.shown[as_size(rank)]) {
    return;
  }
  // Only an entry after the last line of this rank's stream may absorb the new line.
  std::uint64_t& last = last_[as_size(rank) * 2 + static_cast<std::size_t>(stream)];
  const std::uint64_t first = std::max(last, printed_) - printed_;
  for (std::size_t i = first; i < waiting_.size(); ++i) {
    Entry& entry = waiting_[i];
    if (entry.stream == stream && entry.text == text) {
      entry.ranks.push_back(rank);
      last = printed_ + i + 1;
      return;
    }
  }
  waiting_.push_back({.text = std::move(text), .stream = stream, .ranks = {rank}, .since = now});
  last = printed_ + waiting_.size();
  if (waiting_.size() > kMostWaiting) {
    print_front();
  }
}

// Returns true if the entry is printed as the rank wrote it.
bool OutputMerger::is_plain(const Entry& entry) const {
  if (options_.prefix != Prefix::automatic) {
    return options_.prefix == Prefix::never;
  }
  return options_.ranks == 1 || (entry.stream == Stream::out && !others_wrote_);
}

std::string OutputMerger::prefix_of(const Entry& entry) const {
  if (is_plain(entry)) {
    return {};
  }
  const bool color = entry.stream == Stream::out ? options_.out_color : options_.err_color;
  std::string text =
      entry.ranks.size() > 1
          ? fmt::format("[ranks {}]", rank_list(entry.ranks))
          : fmt::format("{}:{}", options_.hosts[as_size(entry.ranks.front())], entry.ranks.front());
  if (color) {
    const std::string_view paint =
        entry.ranks.size() > 1 ? std::string_view("\x1b[1m") : rank_color(entry.ranks.front());
    text = fmt::format("{}{}{}", paint, text, kResetColor);
  }
  return text + " ";
}

void OutputMerger::print_front() {
  const Entry& entry = waiting_.front();
  std::string line;
  std::FILE* file = entry.stream == Stream::out ? stdout : stderr;
  if (options_.json) {
    std::vector<int> ranks = entry.ranks;
    std::sort(ranks.begin(), ranks.end());
    const nlohmann::ordered_json row = {
        {"schema", "unisono.run_line/1"},
        {"ranks", ranks},
        {"stream", entry.stream == Stream::out ? "stdout" : "stderr"},
        {"text", entry.text}};
    line = row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    file = stdout;
  } else {
    line = prefix_of(entry) + entry.text + "\n";
  }
  std::fwrite(line.data(), 1, line.size(), file);
  if (!options_.json) {
    recent_.push_back(std::move(waiting_.front()));
    if (recent_.size() > kScreenLines) {
      recent_.pop_front();
    }
  }
  waiting_.pop_front();
  ++printed_;
}

// Prints a prompt of rank 0 ("name? "), which has no line end but must be visible.
void OutputMerger::print_prompt(Time now) {
  Lane& own = lane(0, Stream::out);
  const bool plain =
      options_.prefix == Prefix::never || (options_.prefix == Prefix::automatic && !others_wrote_);
  const bool shown = options_.shown.empty() || options_.shown[0];
  if (options_.out_is_terminal && plain && shown && !options_.json && !own.partial.empty() &&
      waiting_.empty() && now - own.since >= kWindow) {
    std::fwrite(own.partial.data(), 1, own.partial.size(), stdout);
    own.partial.clear();
  }
}

void OutputMerger::flush_due(Time now) {
  while (!waiting_.empty()) {
    const Entry& front = waiting_.front();
    const bool complete = front.ranks.size() == as_size(options_.ranks);
    if (!complete && now - front.since < kWindow) {
      break;
    }
    print_front();
  }
  print_prompt(now);
  std::fflush(stdout);
  std::fflush(stderr);
}

void OutputMerger::flush_all() {
  while (!waiting_.empty()) {
    print_front();
  }
  std::fflush(stdout);
  std::fflush(stderr);
}

std::optional<OutputMerger::Time> OutputMerger::next_due() const {
  if (!waiting_.empty()) {
    return waiting_.front().since + kWindow;
  }
  if (options_.out_is_terminal && !lanes_[0].partial.empty() && !others_wrote_) {
    return lanes_[0].since + kWindow;
  }
  return std::nullopt;
}

const std::deque<std::string>& OutputMerger::tail(int rank) const {
  return tails_[as_size(rank)];
}

bool OutputMerger::shows_tail(int rank) const {
  return std::all_of(tail(rank).begin(), tail(rank).end(), [&](const std::string& line) {
    return std::any_of(recent_.begin(), recent_.end(), [&](const Entry& entry) {
      return entry.stream == Stream::err && entry.text == line &&
             std::find(entry.ranks.begin(), entry.ranks.end(), rank) != entry.ranks.end();
    });
  });
}

}  // namespace unisono::cli
