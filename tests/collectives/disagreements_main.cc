// Ranks that disagree on one call, in ways drawn at random: every rank must be told.
//
//   random_disagreements [--count N] [--seed S] [--jobs N] [--verbose]
//
// In each trial some ranks of a world, or of a group of it, make a call that differs from the
// others' in one field; then all make the same next call and a barrier, or leave. Each rank must
// get a mismatch in the first call, the next one or the barrier; if the call was its last one, it
// must say so on stderr when it leaves, or have left before the others came. A call that returns
// must have the right result for what this rank called. The text must name two ranks that differ.
// Where the ranks are is UNISONO_TEST_WORLD. A trial is a function of its seed.
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "bootstrap/testing.h"
#include "disagreements.h"
#include "run_case.h"
#include "unisono/communicator.hpp"

namespace unisono::testing {
namespace {

constexpr int kTagTimeoutMs = 1500;
constexpr int kTimeoutMs = 60'000;  // bounds a hang

// The call in which a rank got its error, or after which no mistake was found.
enum class When : std::uint8_t { call, next, barrier, leaving, never };
constexpr std::array kWhen = {"in the call", "in the next call", "in the barrier after it",
                              "when it left", "never"};

struct Answer {
  std::string to_text() const {
    return std::to_string(static_cast<int>(when)) + (disagreement ? "1" : "0") +
           (alike ? "1" : "0") + std::to_string(text.size()) + " " + text + wrong;
  }
  // Parses to_text(); a rank that died leaves other text.
  static Answer parse(const std::string& all) {
    const std::size_t space = all.find(' ');
    if (space < 4 || space == std::string::npos) {
      return {.text = all.empty() ? "died" : all};
    }
    const auto bytes = static_cast<std::size_t>(std::stoul(all.substr(3, space - 3)));
    return {.when = static_cast<When>(all[0] - '0'),
            .disagreement = all[1] == '1',
            .alike = all[2] == '1',
            .text = all.substr(space + 1, bytes),
            .wrong = all.substr(space + 1 + bytes)};
  }

  When when = When::never;
  bool disagreement = false;  // the error reports a disagreement
  bool alike = false;         // max_error: all ranks choose the same algorithm nevertheless
  std::string text = {};      // text of the error
  std::string wrong = {};     // mistake in a result
};

// One rank of a trial.
class Participant {
 public:
  Participant(const Disagreement& trial, int rank, const std::string& job)
      : trial_(trial), rank_(rank), job_(job) {}

  Answer take_part() {
    try {
      ConnectOptions options = comm::testing::options_for(rank_, trial_.ranks, job_);
      options.timeout_ms = trial_.field == Field::tag ? kTagTimeoutMs : kTimeoutMs;
      Communicator world = Communicator::connect(options);
      std::optional<Communicator> group;
      try {
        answer_.when = When::call;  // the others may get the error during the split
        if (trial_.members < trial_.ranks) {
          group = world.split(rank_ < trial_.members ? 0 : -1, rank_);
        }
        make_calls(world, group);
        answer_.when = When::never;
      } catch (const Error& error) {
        answer_.text = error.what();
        answer_.disagreement = is_of_disagreement(error);
      }
    } catch (const Error& error) {
      answer_.text = std::string("cannot join: ") + error.what();
    }
    return answer_;
  }

 private:
  void make_calls(Communicator& world, std::optional<Communicator>& group) {
    Communicator& on = group ? *group : world;
    if (rank_ < trial_.members) {
      answer_.when = When::call;
      trial_.is_message() ? pass_message(on) : disagree(on);
      answer_.when = When::next;
      continue_on(on);
    }
    if (trial_.then == Then::leave && !group) {
      return;
    }
    answer_.when = When::barrier;
    group.reset();
    world.barrier();
  }

  void disagree(Communicator& on) {
    const Made& made = trial_.of(rank_);
    if (trial_.field == Field::calls && trial_.others.contains(rank_)) {
      make(on, made);
    }
    make(on, made);
  }

  void make(Communicator& on, const Made& made) {
    if (made.cut != 0) {
      std::vector<float> data(made.one.count);
      on.group([&] {
        const std::span<float> all(data);
        static_cast<void>(on.all_reduce_async(all.first(made.cut), sum));
        static_cast<void>(on.all_reduce_async(all.subspan(made.cut), sum));
      });
      return;
    }
    Case one = as_made_by(rank_, made.one, trial_.own);
    one.in_place = one.in_place && made.more < 0;  // the rule uses the changed counts
    CaseRun run(on, one);
    Call call = run.call();
    std::vector<std::size_t> counts(call.counts.begin(), call.counts.end());
    if (made.more >= 0) {  // the guards around the buffers have room for one element
      ++counts[static_cast<std::size_t>(made.more)];
      if (made.less >= 0) {
        --counts[static_cast<std::size_t>(made.less)];
      }
      call.counts = counts;
    }
    call.reduction.factor *= made.factor;
    if (trial_.field == Field::max_error) {
      const auto chosen = [&](const Made& made_by) {
        call.max_error = made_by.max_error;
        return on.explain(call).chosen;
      };
      const std::string common = chosen(trial_.common);
      answer_.alike =
          std::all_of(trial_.others.begin(), trial_.others.end(),
                      [&](const auto& other) { return chosen(other.second) == common; });
      call.max_error = made.max_error;
    }
    make_call(on, call, one.form);
    // Differing counts shift the data of the others, which then matches no element of the case.
    if (made.has_oracle() && !is_v(one.collective) && trial_.field != Field::max_error) {
      note(run.check());
    }
  }

  void pass_message(Communicator& on) {
    constexpr int kTag = 7;
    std::vector<char> data(trial_.common.one.count + 200'000);
    if (rank_ == trial_.sender()) {
      on.send(data.data(), trial_.others.begin()->second.one.count, trial_.receiver(), kTag);
    } else if (rank_ == trial_.receiver()) {
      on.recv(data.data(), trial_.common.one.count, trial_.sender(),
              trial_.field == Field::tag ? kTag + 1 : kTag);  // shorter than the message, or equal
    }
  }

  void continue_on(Communicator& on) {
    switch (trial_.then) {
      case Then::leave:
        break;
      case Then::collective:
        note(run_case(on, as_made_by(rank_, trial_.next, ~trial_.own)));
        break;
      case Then::exchange: {
        const int n = trial_.members;
        std::vector<int> out(1000, rank_);
        std::vector<int> in(1000);
        on.send_recv(out.data(), 4000, (rank_ + 1) % n, in.data(), 4000, (rank_ + n - 1) % n);
        break;
      }
      case Then::message: {
        // The first of two ranks waits for no other rank.
        std::vector<int> data(1000);
        const int peer = rank_ ^ 1;
        if (peer < trial_.members) {
          if (rank_ < peer) {
            on.send(data.data(), 4000, peer);
          } else {
            on.recv(data.data(), 4000, peer);
          }
        }
        break;
      }
      case Then::group: {
        std::vector<float> data(2000);
        const std::span<float> all(data);
        on.group([&] {
          static_cast<void>(on.all_reduce_async(all.first(1000), sum));
          static_cast<void>(on.broadcast_async(all.subspan(1000), 0));
        });
        break;
      }
      case Then::split:
        static_cast<void>(on.split(0, rank_));
        break;
    }
    // In a group that a rank has left, the barrier of its members is the next collective.
    if (trial_.members < trial_.ranks && trial_.then != Then::leave) {
      answer_.when = When::barrier;
      on.barrier();
    }
  }

  void note(const std::string& wrong) {
    answer_.wrong = answer_.wrong.empty() ? wrong : answer_.wrong;
  }

  // A message with another tag cannot be distinguished from a later message.
  bool is_of_disagreement(const Error& error) const {
    if (trial_.field != Field::tag) {
      return error.code() == ErrorCode::mismatch;
    }
    const std::string text = error.what();
    return (error.code() == ErrorCode::timeout && text.find("tag") != std::string::npos) ||
           (error.code() == ErrorCode::peer_lost && text.find(" has left") != std::string::npos);
  }

  const Disagreement& trial_;
  int rank_;
  const std::string& job_;
  Answer answer_;
};

// Captures what a function writes to stderr.
class Captured {
 public:
  Captured() : file_(::memfd_create("stderr", 0)), before_(::dup(STDERR_FILENO)) {
    std::fflush(stderr);
    ::dup2(file_.get(), STDERR_FILENO);
  }
  ~Captured() { restore(); }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  std::string text() {
    restore();
    std::string all(static_cast<std::size_t>(::lseek(file_.get(), 0, SEEK_END)), '\0');
    all.resize(static_cast<std::size_t>(::pread(file_.get(), all.data(), all.size(), 0)));
    return all;
  }

 private:
  void restore() {
    std::fflush(stderr);
    ::dup2(before_.get(), STDERR_FILENO);
  }
  UniqueFd file_;
  UniqueFd before_;
};

// Counts ranks by field and by the call in which they got the error.
struct Tally {
  static constexpr std::size_t kColumns = 8;
  static constexpr std::array<const char*, kColumns> kNames = {
      "trials", "in call", "next", "barrier", "leaving", "left", "fine", "failed"};
  enum Column : std::uint8_t { trials, told, left = 5, fine, failed };
  std::array<std::array<long, kColumns>, kFields.size()> counts = {};

  long& at(Field field, std::size_t column) {
    return counts.at(static_cast<std::size_t>(field)).at(column);
  }
  void add(const std::string& text) {
    std::istringstream stream(text);
    for (auto& row : counts) {
      for (long& count : row) {
        long more = 0;
        stream >> more;
        count += more;
      }
    }
  }
  std::string to_text() const {
    std::string text;
    for (const auto& row : counts) {
      for (const long count : row) {
        text += std::to_string(count) + " ";
      }
    }
    return text;
  }
  void print() const {
    std::array<long, kColumns> sum = {};
    std::printf("%-11s", "field");
    for (const char* name : kNames) {
      std::printf("%9s", name);
    }
    for (std::size_t field = 0; field <= counts.size(); ++field) {
      std::printf("\n%-11s", field < counts.size() ? kFields.at(field) : "all");
      for (std::size_t column = 0; column < kColumns; ++column) {
        const long count = field < counts.size() ? counts.at(field).at(column) : sum.at(column);
        sum.at(column) += count;
        std::printf("%9ld", count);
      }
    }
    std::printf("\n");
  }
};

// Returns an empty text, or the reason why an error's text misleads: it must show two calls that
// differ, or state that one rank sends another message than the other expects.
std::string check_text(const Disagreement& trial, const std::string& text) {
  static const std::regex kSides(
      "rank ([0-9]+)(?: \\([0-9]+ of its group\\))?(?: calls ([^;]*); | and |sends )rank "
      "([0-9]+)(?: \\([0-9]+ of its group\\))?(?: calls ([^\n]*))?");
  if (trial.is_message()) {
    return "";
  }
  std::smatch found;
  if (!std::regex_search(text, found, kSides)) {
    return text.find(" sends ") != std::string::npos ? "" : "it does not name two ranks";
  }
  const int one = std::stoi(found[1]);
  const int other = std::stoi(found[3]);
  if (!trial.others.contains(one) && !trial.others.contains(other)) {
    return "it names two ranks that agree";
  }
  return found[2].matched && found[2] == found[4] ? "it shows two equal calls" : "";
}

class Verdict {
 public:
  Verdict(const Disagreement& trial, const std::vector<Answer>& answers, const std::string& written)
      : trial_(trial), answers_(answers), written_(written) {
    for (int rank = 0; rank < trial_.ranks; ++rank) {
      judge(rank);
    }
    if (!agrees() && told_ == 0 && !trial_.moves_nothing()) {
      fail("nobody was told");
    }
  }
  const std::string& failures() const { return failures_; }
  void count(Tally& tally) const {
    ++tally.at(trial_.field, Tally::trials);
    for (std::size_t when = 0; when < when_.size(); ++when) {
      tally.at(trial_.field, Tally::told + when) += when_.at(when);
    }
    tally.at(trial_.field, Tally::fine) += fine_;
    tally.at(trial_.field, Tally::failed) += failures_.empty() ? 0 : 1;
  }

 private:
  void fail(const std::string& why) { failures_ += "  " + why + "\n"; }
  bool agrees() const { return trial_.field == Field::nothing || answers_.front().alike; }

  void judge(int rank) {
    const Answer& answer = answers_[static_cast<std::size_t>(rank)];
    const std::string name = "rank " + std::to_string(rank) + " ";
    if (!answer.wrong.empty()) {
      fail(name + "got a wrong result without an error: " + answer.wrong);
    }
    if (agrees()) {
      ++fine_;
      if (!answer.text.empty()) {
        fail(name + "must not fail: " + answer.text);
      }
      return;
    }
    if (!answer.text.empty()) {
      ++told_;
      ++when_.at(static_cast<std::size_t>(answer.when));
      const std::string wrong =
          answer.disagreement ? check_text(trial_, answer.text) : "it is another error";
      if (!wrong.empty()) {
        fail(name + "was told " + kWhen.at(static_cast<std::size_t>(answer.when)) + ", but " +
             wrong + ": " + answer.text);
      }
    } else if (written_.find(name + "leaves a world in which ranks made different calls") !=
               std::string::npos) {
      ++told_;
      ++when_.at(static_cast<std::size_t>(When::leaving));
    } else {
      ++when_.at(static_cast<std::size_t>(When::never));
      if (trial_.then != Then::leave) {  // otherwise it left before the others came
        fail(name + "was never told");
      }
    }
    if (trial_.ends_all_in_the_call() && rank < trial_.members &&
        (answer.text.empty() || answer.when != When::call)) {
      fail(name + "depends on all others, but was not told in the call");
    }
  }

  const Disagreement& trial_;
  const std::vector<Answer>& answers_;
  const std::string& written_;
  std::array<long, kWhen.size()> when_ = {};
  long fine_ = 0;
  long told_ = 0;
  std::string failures_;
};

bool run(std::uint64_t seed, Tally& tally, bool verbose) {
  const Disagreement trial = draw_disagreement(seed);
  const std::string job = comm::testing::unique_name("disagree");
  std::vector<Answer> answers;
  std::string written;
  {
    Captured captured;
    const auto take_part = [&](int rank) {
      return Participant(trial, rank, job).take_part().to_text();
    };
    // Threads read each other's registered memory directly, and a rank that gets an error may free
    // its memory before the others have got theirs.
    const auto texts = trial.has_registered_memory()
                           ? comm::testing::as_processes(trial.ranks, take_part)
                           : comm::testing::as_threads(trial.ranks, take_part);
    for (const std::string& text : texts) {
      answers.push_back(Answer::parse(text));
    }
    written = captured.text();
  }
  const Verdict verdict(trial, answers, written);
  verdict.count(tally);
  const bool right = verdict.failures().empty();
  if (!right || verbose) {
    std::string text = std::string(right ? "" : "FAILED ") + "--seed " + std::to_string(seed) +
                       ": " + to_text(trial) + verdict.failures();
    for (int rank = 0; verbose && rank < trial.ranks; ++rank) {
      const Answer& answer = answers[static_cast<std::size_t>(rank)];
      text += "  rank " + std::to_string(rank) + " " +
              kWhen.at(static_cast<std::size_t>(answer.when)) + ": " + answer.text + "\n";
    }
    text += verbose ? written : "";
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }
  return right;
}

int run_all(std::uint64_t seed, long count, int jobs, bool verbose) {
  Tally all;
  // Worlds wait most of the time, so several processes share a core.
  const auto counted = comm::testing::as_processes(jobs, [&](int job) {
    // Reuses memory, so that the kernel need not clear pages for each trial.
    ::mallopt(M_ARENA_MAX, 1);
    ::mallopt(M_MMAP_THRESHOLD, 1 << 28);
    ::mallopt(M_TRIM_THRESHOLD, 1 << 28);
    Tally tally;
    for (long i = job; i < count; i += jobs) {
      run(seed + static_cast<std::uint64_t>(i), tally, verbose);
    }
    return tally.to_text();
  });
  for (const std::string& text : counted) {
    all.add(text);
    if (const std::size_t end = text.find('['); end != std::string::npos || text.empty()) {
      std::printf("FAILED: a process ended early %s\n",
                  text.substr(std::min(end, text.size())).c_str());
    }
  }
  std::printf("random_disagreements --count %ld --seed %llu; ranks told:\n", count,
              static_cast<unsigned long long>(seed));
  all.print();
  long trials = 0;
  long failed = 0;
  for (const auto& row : all.counts) {
    trials += row.at(Tally::trials);
    failed += row.at(Tally::failed);
  }
  return trials == count && failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace unisono::testing

int main(int argc, char** argv) {
  std::uint64_t seed = 1;
  long count = 300;
  int jobs = 1;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--verbose") {
      verbose = true;
    } else if (word == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--count" && i + 1 < argc) {
      count = std::strtol(argv[++i], nullptr, 10);
    } else if (word == "--jobs" && i + 1 < argc) {
      jobs = static_cast<int>(std::strtol(argv[++i], nullptr, 10));
    } else {
      std::fputs("usage: random_disagreements [--count N] [--seed S] [--jobs N] [--verbose]\n",
                 stderr);
      return 2;
    }
  }
  return unisono::testing::run_all(seed, count, jobs, verbose);
}
