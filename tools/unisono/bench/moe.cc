#include "bench/moe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "bench/moe_routing.h"
#include "kernels/kernels.h"
#include "kernels/weighted_sum.h"
#include "unisono/parallel/experts.hpp"

namespace unisono::cli {
namespace {

// The tokens are those of two ranks with a core each. More ranks than cores share them, so that the
// machine has as much to do.
std::vector<MoeCase> cases_of(const Communicator& comm) {
  const int ranks = comm.size();
  const int ranks_here = std::max(2, ranks / comm.hosts());
  const bool shares = static_cast<unsigned>(ranks_here) > std::thread::hardware_concurrency();
  std::vector<MoeCase> all = {
      {.tokens = 4096, .hidden = 2048, .experts = 64, .k = 8, .routing = "uniform", .chosen = {}},
      {.tokens = 4096, .hidden = 2048, .experts = 64, .k = 8, .routing = "zipf", .chosen = {}},
      {.tokens = 2048, .hidden = 4096, .experts = 8, .k = 2, .routing = "uniform", .chosen = {}},
      {.tokens = 2048, .hidden = 4096, .experts = 8, .k = 2, .routing = "one", .chosen = {}},
      {.tokens = 128, .hidden = 7168, .experts = 64, .k = 8, .routing = "uniform", .chosen = {}},
      {.tokens = 64, .hidden = 2048, .experts = 64, .k = 8, .routing = "uniform", .chosen = {}},
      {.tokens = 1, .hidden = 7168, .experts = 64, .k = 8, .routing = "uniform", .chosen = {}}};
  for (MoeCase& row : all) {
    row.experts = std::max(row.experts, ranks);
    if (shares) {
      row.tokens = std::max<std::size_t>(1, row.tokens * 2 / static_cast<std::size_t>(ranks_here));
    }
  }
  return all;
}

// Small integers, whose weighted sums are exact in bf16.
constexpr float kGreatestValue = 6;
std::uint16_t value_of(int rank, std::size_t token, std::size_t i) {
  return to_bf16(static_cast<float>((static_cast<std::size_t>(rank) * 5 + token * 3 + i) % 13) - 6)
      .bits;
}
float weight_of(std::size_t place) {
  return place % 2 == 0 ? 1.0F : 0.5F;
}
// What an expert makes of an element while results are checked: no two of them do the same.
std::uint16_t output_of(std::uint16_t value, int expert) {
  return to_bf16(to_float(bf16{value}) * static_cast<float>(expert + 1)).bits;
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

// What is measured, in the order of measure().
enum Variant : std::size_t {
  kDispatch,
  kCombine,
  kTextbookDispatch,
  kTextbookCombine,
  kDispatchI8,
  kCombineI8,
  kRoute,
  kCopyRows,
  kSumRows,
  kList,
  kVariants
};

// One case on one rank: its memory, and the ways to do it.
class Bench {
 public:
  Bench(Communicator& comm, const MoeCase& row, const TextbookExchange& textbook)
      : comm_(comm),
        textbook_(textbook),
        row_(row),
        row_bytes_(row.hidden * 2),
        chosen_(draw_routing(row, comm.rank())),
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
    if (comm.hosts() == 1) {
      list();
    }
  }

  // By Variant; 0 for what needs one host.
  std::vector<double> measure() {
    std::vector<std::function<void()>> all = {[this] { dispatch(RowCoding::none); },
                                              [this] { combine(RowCoding::none); },
                                              [this] { textbook_dispatch(); },
                                              [this] { textbook_combine(); },
                                              [this] { dispatch(RowCoding::i8); },
                                              [this] { combine(RowCoding::i8); },
                                              [this] { route(); }};
    if (comm_.hosts() == 1) {
      all.insert(all.end(), {[this] { copy_rows(); }, [this] { sum_rows(); }, [this] { list(); }});
    }
    std::vector<double> us = time_in_turn(comm_, all);
    us.resize(kVariants, 0.0);
    return us;
  }

  // Wrong elements on all ranks, of both ways, against one process that has the tokens and the
  // choices of all ranks, and all experts.
  std::int64_t check() {
    find_expected_rows();
    std::int64_t wrong = 0;
    for (const bool textbook : {false, true}) {
      std::memset(rows_.bytes().data(), 0xff, rows_.bytes().size());
      std::memset(out_.data(), 0xff, out_.size());
      comm_.barrier();
      textbook ? textbook_dispatch() : dispatch(RowCoding::none);
      wrong += wrong_rows(0);
      compute();
      textbook ? textbook_combine() : combine(RowCoding::none);
      wrong += wrong_sums(false);
    }
    dispatch(RowCoding::i8);
    wrong += wrong_rows(kGreatestValue / 254 + kGreatestValue / 256);  // bf16 is rounded as well
    dispatch(RowCoding::none);
    compute();
    combine(RowCoding::i8);
    wrong += wrong_sums(true);
    std::vector<std::int64_t> mine = {wrong};
    std::vector<std::int64_t> all = {0};
    comm_.all_reduce(mine, all, sum);
    return all[0];
  }

 private:
  void route() { (void)exchange_.route(std::span<const std::int32_t>(chosen_)); }
  void dispatch(RowCoding coding) {
    exchange_.dispatch(
        routing_,
        {{.in = tokens_.bytes(), .out = rows_.bytes(), .row_bytes = row_bytes_, .coding = coding}});
  }
  void combine(RowCoding coding) {
    exchange_.combine(routing_, {.rows = rows_.bytes(),
                                 .out = out_,
                                 .dtype = Dtype::bf16,
                                 .hidden = row_.hidden,
                                 .weights = weights_,
                                 .coding = coding});
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
    std::vector<float> factors(k);
    for (std::size_t token = 0; token < row_.tokens; ++token) {
      int used = 0;
      for (std::size_t place = token * k; place < (token + 1) * k; ++place) {
        if (chosen_[place] >= 0) {
          factors[static_cast<std::size_t>(used)] = weights_[place];
          rows[static_cast<std::size_t>(used++)] = back_.data() + order_[place] * row_bytes_;
        }
      }
      sum_of(out_.data() + token * row_bytes_, nullptr, rows.data(), factors.data(), used,
             row_.hidden);
    }
  }

  void prepare_textbook() {
    const auto ranks = static_cast<std::size_t>(comm_.size());
    // Contiguous experts: a stable sort by expert is one by rank, too.
    for (std::size_t place = 0; place < chosen_.size(); ++place) {
      if (chosen_[place] >= 0) {
        sorted_.push_back(place);
      }
    }
    std::stable_sort(sorted_.begin(), sorted_.end(),
                     [&](std::size_t a, std::size_t b) { return chosen_[a] < chosen_[b]; });
    order_.assign(chosen_.size(), 0);
    for (std::size_t i = 0; i < sorted_.size(); ++i) {
      order_[sorted_[i]] = i;
    }
    send_.assign(ranks, 0);
    const int each = row_.experts / comm_.size();
    const int larger = row_.experts % comm_.size();
    for (const std::size_t place : sorted_) {
      const std::int32_t expert = chosen_[place];
      const int edge = larger * (each + 1);
      const int rank = expert < edge ? expert / (each + 1) : larger + (expert - edge) / each;
      send_[static_cast<std::size_t>(rank)] += row_bytes_;
    }
    packed_.resize(sorted_.size() * row_bytes_);
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
    textbook_.counts(send_, receive_);
    textbook_.rows(packed_, send_, came_, receive_);
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
    textbook_.rows(came_, receive_, back_, send_);
    sum_rows();
  }

  // By row, whose it is, from what the routers of all ranks chose.
  void find_expected_rows() {
    std::vector<std::vector<ExpectedRow>> of_expert(static_cast<std::size_t>(row_.experts));
    for (int rank = 0; rank < comm_.size(); ++rank) {
      const std::vector<std::int32_t> chosen = draw_routing(row_, rank);
      for (std::size_t place = 0; place < chosen.size(); ++place) {
        if (chosen[place] >= 0) {
          of_expert[static_cast<std::size_t>(chosen[place])].push_back(
              {.rank = rank, .token = place / static_cast<std::size_t>(row_.k)});
        }
      }
    }
    for (const int expert : routing_.experts_here()) {
      const auto& rows = of_expert[static_cast<std::size_t>(expert)];
      expected_.insert(expected_.end(), rows.begin(), rows.end());
    }
  }
  // The experts of this rank. A row that is not among those of its expert is seen by wrong_sums().
  void compute() {
    auto* values = reinterpret_cast<std::uint16_t*>(rows_.bytes().data());
    for (std::size_t local = 0; local < routing_.experts_here().size(); ++local) {
      const std::size_t first = routing_.first_row(static_cast<int>(local)) * row_.hidden;
      const std::size_t count = routing_.rows_of(static_cast<int>(local)) * row_.hidden;
      for (std::size_t i = first; i < first + count; ++i) {
        values[i] = output_of(values[i], routing_.experts_here()[local]);
      }
    }
  }

  std::int64_t wrong_rows(float tolerance) const {
    std::int64_t wrong = 0;
    const auto* values = reinterpret_cast<const bf16*>(rows_.bytes().data());
    if (expected_.size() != routing_.rows()) {
      return static_cast<std::int64_t>(row_.hidden * (expected_.size() + routing_.rows()));
    }
    for (std::size_t row = 0; row < expected_.size(); ++row) {
      for (std::size_t i = 0; i < row_.hidden; ++i) {
        const bf16 wanted = {value_of(expected_[row].rank, expected_[row].token, i)};
        const float off = to_float(values[row * row_.hidden + i]) - to_float(wanted);
        wrong += !(std::fabs(off) <= tolerance);
      }
    }
    return wrong;
  }
  // `coded`: rows came as i8, off by 1/254 of their greatest element, and rounded to bf16.
  std::int64_t wrong_sums(bool coded) const {
    std::int64_t wrong = 0;
    const auto* values = reinterpret_cast<const bf16*>(out_.data());
    const auto k = static_cast<std::size_t>(row_.k);
    for (std::size_t i = 0; i < row_.tokens * row_.hidden; ++i) {
      const std::size_t token = i / row_.hidden;
      const std::uint16_t one = value_of(comm_.rank(), token, i % row_.hidden);
      float sum = 0;
      float off = 0;
      for (std::size_t place = token * k; place < (token + 1) * k; ++place) {
        const int expert = chosen_[place];
        sum += expert < 0 ? 0.0F : weights_[place] * to_float(bf16{output_of(one, expert)});
        off += weights_[place] * kGreatestValue * static_cast<float>(expert + 1);
      }
      const float allowed = coded ? off / 127 + std::fabs(sum) / 128 : 0.0F;
      wrong += !(std::fabs(to_float(values[i]) - to_float(to_bf16(sum))) <= allowed);
    }
    return wrong;
  }

  Communicator& comm_;
  const TextbookExchange& textbook_;
  MoeCase row_;
  std::size_t row_bytes_;
  std::vector<std::int32_t> chosen_;
  Exchange exchange_;
  Routing routing_;
  Region tokens_;
  Region rows_;
  std::vector<std::byte> out_;
  std::vector<float> weights_;
  struct ExpectedRow {
    int rank = 0;
    std::size_t token = 0;
  };
  std::vector<ExpectedRow> expected_;
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

void print_title(const Communicator& comm, const std::string& textbook) {
  fmt::print(
      "moe, bf16, {} ranks on {} host{}, expert_major, registered memory; medians in us\n"
      "x: against the limit of one host: each rank copies the rows it needs, or reads k and writes "
      "one\ntext: against the textbook way: pack, counts, {}, permute; i8: rows as i8 "
      "against bf16\n\n"
      "{:>6} {:>6} {:>4} {:>2} {:8} {:>10} {:>6} {:>6} {:>6} {:>10} {:>6} {:>6} {:>6} {:>8} {:>8} "
      "{:>6}\n",
      comm.size(), comm.hosts(), comm.hosts() == 1 ? "" : "s", textbook, "tokens", "hidden", "E",
      "k", "routing", "dispatch", "x", "text", "i8", "combine", "x", "text", "i8", "list", "route",
      "wrong");
}

std::string ratio_text(double us, double of) {
  return of > 0 ? fmt::format("{:.2f}", us / of) : "-";
}

void print_row(const MoeCase& row, const std::vector<double>& us, std::int64_t wrong) {
  fmt::print(
      "{:>6} {:>6} {:>4} {:>2} {:8} {:>10.1f} {:>6} {:>6} {:>6} {:>10.1f} {:>6} {:>6} {:>6} {:>8} "
      "{:>8.1f} {:>6}\n",
      row.tokens, row.hidden, row.experts, row.k, row.routing, us[kDispatch],
      ratio_text(us[kDispatch], us[kCopyRows]), ratio_text(us[kDispatch], us[kTextbookDispatch]),
      ratio_text(us[kDispatchI8], us[kDispatch]), us[kCombine],
      ratio_text(us[kCombine], us[kSumRows]), ratio_text(us[kCombine], us[kTextbookCombine]),
      ratio_text(us[kCombineI8], us[kCombine]),
      us[kList] > 0 ? fmt::format("{:.1f}", us[kList]) : "-", us[kRoute], wrong);
  std::fflush(stdout);
}

}  // namespace

TextbookExchange own_exchange(Communicator& comm) {
  return {.name = "all_to_all_v",
          .counts = [&comm](std::span<const std::size_t> send,
                            std::span<std::size_t> receive) { comm.all_to_all(send, receive); },
          .rows =
              [&comm](std::span<const std::byte> in, std::span<const std::size_t> send,
                      std::span<std::byte> out, std::span<const std::size_t> receive) {
                comm.all_to_all_v(in, send, out, receive);
              }};
}

int run_bench_moe(Communicator& comm, const std::string& routing,
                  const TextbookExchange& textbook) {
  constexpr std::size_t kHidden = 2048;  // of a routing from a file
  const bool speaks = comm.rank() == 0;
  const std::vector<MoeCase> cases =
      routing.empty() ? cases_of(comm)
                      : std::vector<MoeCase>{read_routing(routing, kHidden, comm.size())};
  if (speaks) {
    print_title(comm, textbook.name);
    if (!routing.empty() && cases[0].left_out != 0) {
      fmt::print("{}\n", left_out_text(cases[0], comm.size()));
    }
  }
  std::int64_t wrong_in_all = 0;
  for (const MoeCase& row : cases) {
    Bench bench(comm, row, textbook);
    const std::int64_t wrong = bench.check();
    const std::vector<double> us = bench.measure();
    wrong_in_all += wrong;
    if (speaks) {
      print_row(row, us, wrong);
    }
  }
  return wrong_in_all == 0 ? 0 : 1;
}

}  // namespace unisono::cli
