// Ranks that disagree on one call, in ways drawn at random: every rank must be told.
//
//   random_disagreements [--count N] [--seed S] [--verbose]
//
// In each trial one rank makes a call that differs from the others' in one field; then all make the
// same next call and a barrier, or leave. A rank is told if one of its calls throws a mismatch, or,
// where the call was its last one, if it says so on stderr when it leaves. Where the ranks are is
// UNISONO_TEST_WORLD. A trial is a function of its seed.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/collectives.h"
#include "base/hash.h"
#include "bootstrap/testing.h"
#include "unisono/communicator.hpp"

namespace unisono::testing {
namespace {

enum class Field : std::uint8_t {
  collective,
  dtype,
  op,
  factor,
  count,
  root,
  counts,
  algorithm,
  calls,  // one rank makes one more
};
constexpr std::array kFields = {"collective", "dtype",  "op",        "factor", "count",
                                "root",       "counts", "algorithm", "calls"};
enum class Form : std::uint8_t { blocking, async, plan };

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>((state_ = mix(state_ + 1)) % n);
  }

 private:
  std::uint64_t state_;
};

struct Shape {
  Collective collective = Collective::barrier;
  Dtype dtype = Dtype::f32;
  Reduction reduction = sum;
  int root = 0;
  std::size_t count = 1;  // of v-forms, of each rank's part
  int more = -1;          // in a v-form: of this rank's part, one more, and of the next one less
  std::string algorithm = {};
};

struct Trial {
  int ranks = 2;
  Form form = Form::blocking;
  Field field = Field::collective;
  int odd = 0;  // the rank that differs
  Shape common;
  Shape other;
  std::optional<Shape> next;  // none: the call is the last one
};

bool is_user_choice(Collective collective) {
  return !is_v_form(collective) && moves_data(collective);
}

// Another algorithm than "flat" that serves any number of ranks.
const char* other_algorithm(Collective collective) {
  switch (collective) {
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::scatter:
    case Collective::gather:
      return "binomial";
    case Collective::all_to_all:
      return "pairwise";
    default:
      return "ring";
  }
}

Shape draw_shape(Draw& draw, int ranks) {
  constexpr std::size_t kCounts[] = {1, 5, 64, 1000, 30'000};
  Shape shape;
  shape.collective = static_cast<Collective>(draw.below(kCollectiveCount));
  shape.count = 1 + kCounts[draw.below(std::size(kCounts))];
  shape.root = static_cast<int>(draw.below(static_cast<std::size_t>(ranks)));
  return shape;
}

bool applies(Field field, const Shape& shape) {
  switch (field) {
    case Field::op:
    case Field::factor:
      return reduces(shape.collective);
    case Field::dtype:
      return moves_data(shape.collective);
    case Field::count:
      return moves_data(shape.collective) && !is_v_form(shape.collective);
    case Field::root:
      return is_rooted(shape.collective);
    case Field::counts:
      return is_v_form(shape.collective);
    case Field::algorithm:
      return is_user_choice(shape.collective);
    case Field::calls:  // one barrier more than others is like any of the later ones
      return moves_data(shape.collective);
    default:
      return true;
  }
}

Trial draw_trial(std::uint64_t seed) {
  Draw draw(seed * 77);
  Trial trial;
  trial.ranks = 2 + static_cast<int>(draw.below(7));
  trial.odd = static_cast<int>(draw.below(static_cast<std::size_t>(trial.ranks)));
  trial.form = static_cast<Form>(draw.below(3));
  trial.common = draw_shape(draw, trial.ranks);
  do {
    trial.field = static_cast<Field>(draw.below(kFields.size()));
  } while (!applies(trial.field, trial.common));
  if (trial.field == Field::factor) {
    trial.common.reduction = Reduction::premul_sum(0.5);
  } else if (trial.field == Field::algorithm) {
    trial.common.algorithm = "flat";
  }
  trial.other = trial.common;
  switch (trial.field) {
    case Field::collective:
      while (trial.other.collective == trial.common.collective) {
        trial.other.collective = static_cast<Collective>(draw.below(kCollectiveCount));
      }
      break;
    case Field::dtype:
      trial.other.dtype = draw.below(2) == 0 ? Dtype::i32 : Dtype::f64;
      break;
    case Field::op:
      trial.other.reduction = draw.below(2) == 0 ? max : avg;
      break;
    case Field::factor:
      trial.other.reduction = Reduction::premul_sum(0.25);
      break;
    case Field::count:
      trial.other.count += draw.below(2) == 0 ? std::size_t{1} : std::size_t{40'000};
      break;
    case Field::root:
      trial.other.root = (trial.common.root + 1 +
                          static_cast<int>(draw.below(static_cast<std::size_t>(trial.ranks - 1)))) %
                         trial.ranks;
      break;
    case Field::counts:
      trial.other.more = trial.common.collective == Collective::all_to_all_v
                             ? (trial.odd + 1) % trial.ranks
                             : static_cast<int>(draw.below(static_cast<std::size_t>(trial.ranks)));
      break;
    case Field::algorithm:
      trial.other.algorithm = other_algorithm(trial.common.collective);
      break;
    case Field::calls:
      break;
  }
  if (draw.below(4) != 0 || trial.field == Field::calls) {
    trial.next = draw_shape(draw, trial.ranks);
  }
  return trial;
}

std::string describe(const Shape& shape) {
  return std::string(to_string(shape.collective)) + " " + std::string(to_string(shape.dtype)) +
         " " + std::string(to_string(shape.reduction.op)) + " count " +
         std::to_string(shape.count) + " root " + std::to_string(shape.root) + " " +
         shape.algorithm;
}

std::string describe(const Trial& trial) {
  constexpr std::array kForms = {"blocking", "async", "plan"};
  return std::to_string(trial.ranks) + " ranks, rank " + std::to_string(trial.odd) +
         " has another " + kFields.at(static_cast<std::size_t>(trial.field)) + ": " +
         describe(trial.common) + " / " + describe(trial.other) + ", " +
         kForms.at(static_cast<std::size_t>(trial.form)) + ", then " +
         (trial.next ? describe(*trial.next) : "nothing");
}

class Caller {
 public:
  explicit Caller(Communicator& comm) : comm_(comm) {}

  void call(const Shape& shape, Form form) {
    const auto n = static_cast<std::size_t>(comm_.size());
    const auto me = static_cast<std::size_t>(comm_.rank());
    counts_.assign(n, shape.count);
    recv_counts_.assign(n, shape.count);
    if (shape.more >= 0) {
      ++counts_[static_cast<std::size_t>(shape.more)];
      if (shape.collective != Collective::all_to_all_v) {
        --counts_[static_cast<std::size_t>(shape.more + 1) % n];  // the sum stays
      }
    }
    recv_counts_[me] = counts_[me];
    Call call{.collective = shape.collective,
              .in = in_.get(),
              .out = out_.get(),
              .count = is_v_form(shape.collective) ? 0 : shape.count,
              .dtype = shape.dtype,
              .reduction = shape.reduction,
              .root = is_rooted(shape.collective) ? shape.root : 0,
              .algorithm = shape.algorithm};
    if (is_v_form(shape.collective)) {
      call.counts = counts_;
      if (shape.collective == Collective::all_to_all_v) {
        call.recv_counts = recv_counts_;
      }
    }
    if (!moves_data(shape.collective)) {
      call = {.collective = shape.collective};
    }
    switch (form) {
      case Form::blocking:
        comm_.run(call);
        break;
      case Form::async: {
        Request request = comm_.run_async(call);
        request.wait();
        break;
      }
      case Form::plan: {
        Plan plan = comm_.plan(call);
        plan.start();
        break;
      }
    }
  }

 private:
  Communicator& comm_;
  // Most calls use little of them: calloc() touches nothing.
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<void, Free>;
  static constexpr std::size_t kMost = 8 * 70'002 * sizeof(double);
  Memory in_{std::calloc(kMost, 1)};
  Memory out_{std::calloc(kMost, 1)};
  std::vector<std::size_t> counts_;
  std::vector<std::size_t> recv_counts_;
};

// "told", "later" (at the barrier), "silent", or another error.
std::string take_part(const Trial& trial, int rank, const std::string& job) {
  ConnectOptions options = comm::testing::options_for(rank, trial.ranks, job);
  options.timeout_ms = 60'000;
  const char* stage = "told";
  try {
    Communicator comm = Communicator::connect(options);
    Caller caller(comm);
    try {
      const bool odd = rank == trial.odd;
      if (odd && trial.field == Field::calls) {
        caller.call(trial.common, trial.form);
      }
      caller.call(odd ? trial.other : trial.common, trial.form);
      if (!trial.next) {
        return "silent";
      }
      caller.call(*trial.next, Form::blocking);
      stage = "later";
      comm.barrier();
      return "silent";
    } catch (const Error& error) {
      return error.code() == ErrorCode::mismatch ? stage : error.what();
    }
  } catch (const Error& error) {
    return error.what();
  }
}

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

struct Tally {
  long ranks = 0, told = 0, later = 0, leaving = 0, silent = 0, other = 0, unnamed = 0;
};

// False: somebody was told something else, or nobody anything.
bool run(std::uint64_t seed, Tally& tally, bool verbose) {
  const Trial trial = draw_trial(seed);
  const std::string job = comm::testing::unique_name("disagree");
  std::vector<std::string> said;
  std::string written;
  {
    Captured captured;
    said = comm::testing::as_threads(trial.ranks,
                                     [&](int rank) { return take_part(trial, rank, job); });
    written = captured.text();
  }
  bool right = true;
  int told = 0;
  for (int rank = 0; rank < trial.ranks; ++rank) {
    std::string& one = said[static_cast<std::size_t>(rank)];
    const std::string line =
        "rank " + std::to_string(rank) + " leaves a world in which ranks made different calls";
    if (one == "silent" && written.find(line) != std::string::npos) {
      one = "leaving";
    }
    ++tally.ranks;
    tally.told += one == "told";
    tally.later += one == "later";
    tally.leaving += one == "leaving";
    tally.silent += one == "silent";
    const bool knows = one == "told" || one == "later" || one == "leaving";
    told += knows;
    const bool known = knows || one == "silent";
    tally.other += !known;
    // A rank that has left before the others came cannot be told.
    right = right && known && (one != "silent" || !trial.next);
  }
  tally.unnamed += told == 0;
  right = right && told != 0;
  if (!right || verbose) {
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), describe(trial).c_str());
    for (std::size_t rank = 0; rank < said.size(); ++rank) {
      std::printf("  rank %zu: %s\n", rank, said[rank].c_str());
    }
    std::fflush(stdout);
  }
  return right;
}

int run_all(std::uint64_t seed, long count, bool verbose) {
  Tally tally;
  int failures = 0;
  for (long i = 0; i < count; ++i) {
    failures += run(seed + static_cast<std::uint64_t>(i), tally, verbose) ? 0 : 1;
  }
  std::printf(
      "%ld trials from seed %llu, %ld ranks: told at the next call %ld, at the barrier after it "
      "%ld, when they left %ld; left before others came %ld; another error %ld; trials in which "
      "nobody was told %ld; %d failed\n",
      count, static_cast<unsigned long long>(seed), tally.ranks, tally.told, tally.later,
      tally.leaving, tally.silent, tally.other, tally.unnamed, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace unisono::testing

int main(int argc, char** argv) {
  std::uint64_t seed = 1;
  long count = 300;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--verbose") {
      verbose = true;
    } else if (word == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--count" && i + 1 < argc) {
      count = std::strtol(argv[++i], nullptr, 10);
    } else {
      std::fputs("usage: random_disagreements [--count N] [--seed S] [--verbose]\n", stderr);
      return 2;
    }
  }
  return unisono::testing::run_all(seed, count, verbose);
}
