#include "bench/moe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/quantile.h"
#include "bench/moe_check.h"
#include "bench/moe_routing.h"
#include "bench/moe_textbook.h"
#include "bench/moe_work.h"
#include "kernels/kernels.h"
#include "unisono/parallel/experts.hpp"

namespace unisono::cli {
namespace {

// The numbers of tokens are for two ranks with one core each. If there are more ranks than cores,
// the ranks share the tokens, so that the work of the machine stays the same.
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

// Calls the variants in turn, equally often. Returns for each the median of the slowest rank's
// time, in us.
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
      // Varies the order, because the previous variant has left its data in the caches: each
      // variant runs after each other one. An odd stride visits all elements of a power of two.
      const std::size_t variant = (i * (2 * round + 1) + round) % variants.size();
      comm.barrier();
      const Clock::time_point begin = Clock::now();
      variants[variant]();
      mine[variant] = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    }
    std::vector<double> slowest(mine.size());
    comm.all_reduce(mine, slowest, max);
    if (round + 1 == kWarmUp) {  // the number of calls must be the same on all ranks
      const double sum = std::accumulate(slowest.begin(), slowest.end(), 0.0);
      wanted = static_cast<std::size_t>(std::clamp(kBudgetUs / std::max(sum, 1.0), 5.0, 2001.0));
    }
    for (std::size_t i = 0; round >= kWarmUp && i < times.size(); ++i) {
      times[i].push_back(slowest[i]);
    }
  }
  std::vector<double> medians;
  for (const std::vector<double>& all : times) {
    medians.push_back(median(all));
  }
  return medians;
}

// The measured variants, in the order of measure().
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

// One case on one rank, with all variants.
class Bench {
 public:
  Bench(Communicator& comm, const MoeCase& row, const TextbookExchange& exchange)
      : work_(comm, row), textbook_(work_, exchange), check_(work_) {
    if (comm.hosts() == 1) {
      list();
    }
  }

  // Returns the times by Variant; 0 for a variant that requires one host and cannot run.
  std::vector<double> measure() {
    std::vector<std::function<void()>> all = {[this] { dispatch(RowCoding::none); },
                                              [this] { combine(RowCoding::none); },
                                              [this] { textbook_.dispatch(); },
                                              [this] { textbook_.combine(); },
                                              [this] { dispatch(RowCoding::i8); },
                                              [this] { combine(RowCoding::i8); },
                                              [this] { route(); }};
    if (work_.comm.hosts() == 1) {
      all.insert(all.end(),
                 {[this] { copy_rows(); }, [this] { textbook_.sum_rows(); }, [this] { list(); }});
    }
    std::vector<double> us = time_in_turn(work_.comm, all);
    us.resize(kVariants, 0.0);
    return us;
  }

  // Returns the number of wrong elements of both implementations on all ranks, compared with one
  // process that has all experts and the tokens and choices of all ranks.
  std::int64_t check() {
    std::int64_t wrong = 0;
    for (const bool textbook : {false, true}) {
      std::memset(work_.rows.bytes().data(), 0xff, work_.rows.bytes().size());
      std::memset(work_.out.data(), 0xff, work_.out.size());
      work_.comm.barrier();
      textbook ? textbook_.dispatch() : dispatch(RowCoding::none);
      wrong += check_.wrong_rows(0);
      check_.compute();
      textbook ? textbook_.combine() : combine(RowCoding::none);
      wrong += check_.wrong_sums(false);
    }
    dispatch(RowCoding::i8);
    wrong +=
        check_.wrong_rows(kGreatestValue / 254 + kGreatestValue / 256);  // bf16 is rounded as well
    dispatch(RowCoding::none);
    check_.compute();
    combine(RowCoding::i8);
    wrong += check_.wrong_sums(true);
    std::vector<std::int64_t> mine = {wrong};
    std::vector<std::int64_t> all = {0};
    work_.comm.all_reduce(mine, all, sum);
    return all[0];
  }

 private:
  void route() { (void)work_.exchange.route(std::span<const std::int32_t>(work_.chosen)); }
  void dispatch(RowCoding coding) {
    work_.exchange.dispatch(work_.routing, {{.in = work_.tokens.bytes(),
                                             .out = work_.rows.bytes(),
                                             .row_bytes = work_.row_bytes,
                                             .coding = coding}});
  }
  void combine(RowCoding coding) {
    work_.exchange.combine(work_.routing, {.rows = work_.rows.bytes(),
                                           .out = work_.out,
                                           .dtype = Dtype::bf16,
                                           .hidden = work_.row.hidden,
                                           .weights = work_.weights,
                                           .coding = coding});
  }
  void list() {
    list_ = work_.exchange.gather_list(work_.routing, work_.tokens.bytes(), work_.row_bytes);
    work_.exchange.end_gather();
  }
  // The limit of dispatch: each needed row is copied once, from an existing list.
  void copy_rows() {
    const kernels::Store store = work_.rows.bytes().size() >= (std::size_t{4} << 20)
                                     ? kernels::Store::streaming
                                     : kernels::Store::cached;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      kernels::copy(work_.rows.bytes().data() + i * work_.row_bytes, list_[i], work_.row_bytes,
                    store);
    }
    kernels::fence_streaming();
  }

  MoeWork work_;
  TextbookWay textbook_;
  MoeCheck check_;
  std::vector<const std::byte*> list_;
};

void print_title(const Communicator& comm, const std::string& textbook) {
  fmt::print(
      "moe, bf16, {} rank{} on {} host{}, expert_major, registered memory; medians in us\n"
      "x: against the limit of one host: each rank copies the rows it needs, or reads k and writes "
      "one\ntext: against the textbook way: pack, counts, {}, permute; i8: rows as i8 "
      "against bf16\n\n"
      "{:>6} {:>6} {:>4} {:>2} {:8} {:>10} {:>6} {:>6} {:>6} {:>10} {:>6} {:>6} {:>6} {:>8} {:>8} "
      "{:>6}\n",
      comm.size(), comm.size() == 1 ? "" : "s", comm.hosts(), comm.hosts() == 1 ? "" : "s",
      textbook, "tokens", "hidden", "E", "k", "routing", "dispatch", "x", "text", "i8", "combine",
      "x", "text", "i8", "list", "route", "wrong");
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

void print_json_row(const Communicator& comm, const MoeCase& row, const std::vector<double>& us,
                    std::int64_t wrong) {
  nlohmann::ordered_json json;
  json["schema"] = "unisono.bench_moe/1";
  json["ranks"] = comm.size();
  json["hosts"] = comm.hosts();
  json["tokens"] = row.tokens;
  json["hidden"] = row.hidden;
  json["experts"] = row.experts;
  json["k"] = row.k;
  json["routing"] = row.routing;
  json["left_out"] = row.left_out;
  // In the order of Variant; null if the variant needs one host.
  constexpr const char* kNames[kVariants] = {"dispatch_us",
                                             "combine_us",
                                             "textbook_dispatch_us",
                                             "textbook_combine_us",
                                             "dispatch_i8_us",
                                             "combine_i8_us",
                                             "route_us",
                                             "copy_rows_us",
                                             "sum_rows_us",
                                             "list_us"};
  for (std::size_t variant = 0; variant < kVariants; ++variant) {
    json[kNames[variant]] = nullptr;
    if (us[variant] > 0) {
      json[kNames[variant]] = us[variant];
    }
  }
  json["wrong"] = wrong;
  fmt::print("{}\n", json.dump());
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

int run_bench_moe(Communicator& comm, const std::string& routing, const TextbookExchange& textbook,
                  bool json) {
  constexpr std::size_t kHidden = 2048;  // for a routing from a file
  const bool speaks = comm.rank() == 0;
  const std::vector<MoeCase> cases =
      routing.empty() ? cases_of(comm)
                      : std::vector<MoeCase>{read_routing(routing, kHidden, comm.size())};
  if (speaks && !json) {
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
    if (speaks && json) {
      print_json_row(comm, row, us, wrong);
    } else if (speaks) {
      print_row(row, us, wrong);
    }
  }
  return wrong_in_all == 0 ? 0 : 1;
}

}  // namespace unisono::cli
