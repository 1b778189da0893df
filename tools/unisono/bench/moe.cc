#include "bench/moe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/weighted_sum.h"
#include "unisono/parallel/experts.hpp"

namespace unisono::cli {
namespace {

struct Case {
  std::size_t tokens;
  std::size_t hidden;
  int experts;
  int k;
  const char* routing;
};

std::vector<Case> cases_of(int ranks) {
  std::vector<Case> all;
  const Case shapes[] = {{4096, 2048, 64, 8, "uniform"}, {4096, 2048, 64, 8, "zipf"},
                         {2048, 4096, 8, 2, "uniform"},  {2048, 4096, 8, 2, "one"},
                         {128, 7168, 64, 8, "uniform"},  {64, 2048, 64, 8, "uniform"},
                         {1, 7168, 64, 8, "uniform"}};
  for (Case row : shapes) {
    row.experts = std::max(row.experts, ranks);
    all.push_back(row);
  }
  return all;
}

// k different experts a token. "one": the first k of all, so that one rank gets everything.
std::vector<std::int32_t> draw(const Case& row, int rank) {
  std::vector<double> odds(static_cast<std::size_t>(row.experts), 1.0);
  const std::string routing = row.routing;
  for (std::size_t expert = 0; routing == "zipf" && expert < odds.size(); ++expert) {
    odds[expert] = 1.0 / static_cast<double>(expert + 1);
  }
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::discrete_distribution<std::int32_t> one(odds.begin(), odds.end());
  std::vector<std::int32_t> chosen;
  for (std::size_t token = 0; token < row.tokens; ++token) {
    const auto first = static_cast<std::ptrdiff_t>(chosen.size());
    for (int slot = 0; slot < row.k;) {
      const std::int32_t expert = routing == "one" ? slot : one(random);
      if (std::find(chosen.begin() + first, chosen.end(), expert) == chosen.end()) {
        chosen.push_back(expert);
        ++slot;
      }
    }
  }
  return chosen;
}

// Small integers, whose weighted sums are exact in bf16.
std::uint16_t value_of(int rank, std::size_t token, std::size_t i) {
  return to_bf16(static_cast<float>((static_cast<std::size_t>(rank) * 5 + token * 3 + i) % 13) - 6)
      .bits;
}
float weight_of(std::size_t place) {
  return place % 2 == 0 ? 1.0F : 0.5F;
}

// The same number of calls of each variant, in turn; the slowest rank's time of each; medians in
// us.
std::vector<double> time_in_turn(Communicator& comm,
                                 const std::vector<std::function<void()>>& variants) {
  using Clock = std::chrono::steady_clock;
  constexpr double kBudgetUs = 1e6;
  constexpr int kWarmUp = 2;
  std::vector<std::vector<double>> times(variants.size());
  std::size_t wanted = 5;
  for (std::size_t round = 0; round < wanted + kWarmUp; ++round) {
    std::vector<double> mine(variants.size());
    for (std::size_t i = 0; i < variants.size(); ++i) {
      // Each comes after each other one, as what ran before it has left its data in the caches: an
      // odd stride visits all of a power of two.
      const std::size_t variant = (i * (2 * round + 1) + round) % variants.size();
      comm.barrier();
      const Clock::time_point begin = Clock::now();
      variants[variant]();
      mine[variant] = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    }
    std::vector<double> slowest(mine.size());
    comm.all_reduce(mine, slowest, max);
    if (round + 1 == kWarmUp) {  // the same on all ranks
      const double sum = std::accumulate(slowest.begin(), slowest.end(), 0.0);
      wanted = static_cast<std::size_t>(std::clamp(kBudgetUs / std::max(sum, 1.0), 5.0, 2001.0));
    }
    for (std::size_t i = 0; round >= kWarmUp && i < times.size(); ++i) {
      times[i].push_back(slowest[i]);
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& all : times) {
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    medians.push_back(*middle);
  }
  return medians;
}

// One case on one rank: its memory, and the ways to do it.
class Bench {
 public:
  Bench(Communicator& comm, const Case& row)
      : comm_(comm),
        row_(row),
        row_bytes_(row.hidden * 2),
        chosen_(draw(row, comm.rank())),
        exchange_(comm, {.experts = row.experts, .k = row.k}),
        routing_(exchange_.route(std::span<const std::int32_t>(chosen_))),
        tokens_(comm.allocate(row.tokens * row_bytes_)),
        rows_(comm.allocate(routing_.rows() * row_bytes_)),
        out_(row.tokens * row_bytes_),
        weights_(chosen_.size()) {
    auto* values = reinterpret_cast<std::uint16_t*>(tokens_.bytes().data());
    for (std::size_t i = 0; i < row.tokens * row.hidden; ++i) {
      values[i] = value_of(comm.rank(), i / row.hidden, i % row.hidden);
    }
    for (std::size_t place = 0; place < weights_.size(); ++place) {
      weights_[place] = weight_of(place);
    }
    prepare_textbook();
    list();
  }

  std::vector<double> measure() {
    return time_in_turn(
        comm_, {[this] { dispatch(); }, [this] { copy_rows(); }, [this] { textbook_dispatch(); },
                [this] { combine(); }, [this] { sum_rows(); }, [this] { textbook_combine(); },
                [this] { list(); },
                [this] { (void)exchange_.route(std::span<const std::int32_t>(chosen_)); }});
  }

  // Wrong elements on all ranks, of both ways.
  std::int64_t check() {
    std::int64_t wrong = 0;
    for (const bool textbook : {false, true}) {
      std::memset(rows_.bytes().data(), 0xff, rows_.bytes().size());
      std::memset(out_.data(), 0xff, out_.size());
      comm_.barrier();
      textbook ? textbook_dispatch() : dispatch();
      wrong += wrong_rows();
      textbook ? textbook_combine() : combine();
      wrong += wrong_sums();
    }
    std::vector<std::int64_t> mine = {wrong};
    std::vector<std::int64_t> all = {0};
    comm_.all_reduce(mine, all, sum);
    return all[0];
  }

 private:
  void dispatch() {
    exchange_.dispatch(routing_,
                       {{.in = tokens_.bytes(), .out = rows_.bytes(), .row_bytes = row_bytes_}});
  }
  void combine() {
    exchange_.combine(routing_, {.rows = rows_.bytes(),
                                 .out = out_,
                                 .dtype = Dtype::bf16,
                                 .hidden = row_.hidden,
                                 .weights = weights_});
  }
  void list() {
    list_ = exchange_.gather_list(routing_, tokens_.bytes(), row_bytes_);
    exchange_.end_gather();
  }
  // The limit of dispatch: each needed row copied once, from a list that is there already.
  void copy_rows() {
    const kernels::Store store = rows_.bytes().size() >= (std::size_t{4} << 20)
                                     ? kernels::Store::streaming
                                     : kernels::Store::cached;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      kernels::copy(rows_.bytes().data() + i * row_bytes_, list_[i], row_bytes_, store);
    }
    kernels::fence_streaming();
  }
  // The limit of combine: k rows read, one written. The rows are this rank's own, as many and as
  // far apart as those of all.
  void sum_rows() {
    const auto sum_of = kernels::find_weighted_sum(Dtype::bf16);
    const auto k = static_cast<std::size_t>(row_.k);
    std::vector<const void*> rows(k);
    for (std::size_t token = 0; token < row_.tokens; ++token) {
      for (std::size_t slot = 0; slot < k; ++slot) {
        rows[slot] = back_.data() + order_[token * k + slot] * row_bytes_;
      }
      sum_of(out_.data() + token * row_bytes_, nullptr, rows.data(), &weights_[token * k], row_.k,
             row_.hidden);
    }
  }

  void prepare_textbook() {
    const auto ranks = static_cast<std::size_t>(comm_.size());
    // Contiguous experts: a stable sort by expert is one by rank, too.
    sorted_.resize(chosen_.size());
    std::iota(sorted_.begin(), sorted_.end(), std::size_t{0});
    std::stable_sort(sorted_.begin(), sorted_.end(),
                     [&](std::size_t a, std::size_t b) { return chosen_[a] < chosen_[b]; });
    order_.resize(chosen_.size());
    for (std::size_t i = 0; i < sorted_.size(); ++i) {
      order_[sorted_[i]] = i;
    }
    send_.assign(ranks, 0);
    const int each = row_.experts / comm_.size();
    const int larger = row_.experts % comm_.size();
    for (const std::int32_t expert : chosen_) {
      const int edge = larger * (each + 1);
      const int rank = expert < edge ? expert / (each + 1) : larger + (expert - edge) / each;
      send_[static_cast<std::size_t>(rank)] += row_bytes_;
    }
    packed_.resize(chosen_.size() * row_bytes_);
    back_.resize(packed_.size());
    came_.resize(routing_.rows() * row_bytes_);
    // Rows come by source; where each of them goes.
    for (std::size_t row = 0; row < routing_.rows(); ++row) {
      target_.push_back(row);
    }
    std::stable_sort(target_.begin(), target_.end(), [&](std::size_t a, std::size_t b) {
      return routing_.sources()[a].rank < routing_.sources()[b].rank;
    });
  }
  // Pack, counts, rows, permute.
  void textbook_dispatch() {
    const auto k = static_cast<std::size_t>(row_.k);
    for (std::size_t i = 0; i < sorted_.size(); ++i) {
      std::memcpy(packed_.data() + i * row_bytes_,
                  tokens_.bytes().data() + sorted_[i] / k * row_bytes_, row_bytes_);
    }
    receive_.resize(send_.size());
    comm_.all_to_all(send_, receive_);
    comm_.all_to_all_v(packed_, send_, came_, receive_);
    for (std::size_t i = 0; i < target_.size(); ++i) {
      std::memcpy(rows_.bytes().data() + target_[i] * row_bytes_, came_.data() + i * row_bytes_,
                  row_bytes_);
    }
  }
  void textbook_combine() {
    for (std::size_t i = 0; i < target_.size(); ++i) {
      std::memcpy(came_.data() + i * row_bytes_, rows_.bytes().data() + target_[i] * row_bytes_,
                  row_bytes_);
    }
    comm_.all_to_all_v(came_, receive_, back_, send_);
    sum_rows();
  }

  std::int64_t wrong_rows() const {
    std::int64_t wrong = 0;
    const auto* values = reinterpret_cast<const std::uint16_t*>(rows_.bytes().data());
    for (std::size_t row = 0; row < routing_.rows(); ++row) {
      const RowSource& source = routing_.sources()[row];
      for (std::size_t i = 0; i < row_.hidden; ++i) {
        wrong += values[row * row_.hidden + i] !=
                 value_of(source.rank, static_cast<std::size_t>(source.token), i);
      }
    }
    return wrong;
  }
  std::int64_t wrong_sums() const {
    std::int64_t wrong = 0;
    const auto* values = reinterpret_cast<const bf16*>(out_.data());
    const auto k = static_cast<std::size_t>(row_.k);
    for (std::size_t i = 0; i < row_.tokens * row_.hidden; ++i) {
      const std::size_t token = i / row_.hidden;
      float all = 0;
      for (std::size_t slot = 0; slot < k; ++slot) {
        all += weights_[token * k + slot];
      }
      const bf16 one = {value_of(comm_.rank(), token, i % row_.hidden)};
      wrong += to_float(values[i]) != all * to_float(one);
    }
    return wrong;
  }

  Communicator& comm_;
  Case row_;
  std::size_t row_bytes_;
  std::vector<std::int32_t> chosen_;
  Exchange exchange_;
  Routing routing_;
  Region tokens_;
  Region rows_;
  std::vector<std::byte> out_;
  std::vector<float> weights_;
  std::vector<const std::byte*> list_;
  std::vector<std::size_t> sorted_;  // places by expert
  std::vector<std::size_t> order_;   // by place, where it is among them
  std::vector<std::size_t> target_;
  std::vector<std::size_t> send_;
  std::vector<std::size_t> receive_;
  std::vector<std::byte> packed_;
  std::vector<std::byte> came_;
  std::vector<std::byte> back_;
};

}  // namespace

int run_bench_moe(Communicator& comm) {
  const bool speaks = comm.rank() == 0;
  if (comm.hosts() != 1) {
    throw Error(ErrorCode::usage,
                "bench moe: the ranks are on several hosts, and its limit is that of shared "
                "memory\nrun it on one host");
  }
  if (speaks) {
    fmt::print(
        "moe, bf16, {} ranks, expert_major, registered memory; medians in us, and against the "
        "limit\nlimit: each rank copies the rows it needs, or reads k and writes one; textbook: "
        "pack, counts, all_to_all_v, permute\n\n"
        "{:>6} {:>6} {:>4} {:>2} {:8} {:>10} {:>6} {:>8} {:>10} {:>6} {:>8} {:>8} {:>8} {:>6}\n",
        comm.size(), "tokens", "hidden", "E", "k", "routing", "dispatch", "x", "textbook",
        "combine", "x", "textbook", "list", "route", "wrong");
  }
  std::int64_t wrong_in_all = 0;
  for (const Case& row : cases_of(comm.size())) {
    Bench bench(comm, row);
    const std::int64_t wrong = bench.check();
    const std::vector<double> us = bench.measure();
    wrong_in_all += wrong;
    if (speaks) {
      fmt::print(
          "{:>6} {:>6} {:>4} {:>2} {:8} {:>10.1f} {:>6.2f} {:>8.2f} {:>10.1f} {:>6.2f} {:>8.2f} "
          "{:>8.1f} {:>8.1f} {:>6}\n",
          row.tokens, row.hidden, row.experts, row.k, row.routing, us[0], us[0] / us[1],
          us[2] / us[1], us[3], us[3] / us[4], us[5] / us[4], us[6], us[7], wrong);
      std::fflush(stdout);
    }
  }
  return wrong_in_all == 0 ? 0 : 1;
}

}  // namespace unisono::cli
