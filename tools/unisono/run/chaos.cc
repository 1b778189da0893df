#include "run/chaos.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <random>

#include "bootstrap/addresses.h"
#include "cli/failure.h"
#include "run/hosts.h"
#include "unisono/error.hpp"

namespace unisono::cli {
namespace {

using chaos::FaultSpec;

constexpr unsigned kMostDrawnSeed = 1'000'000;  // short enough to read out

int signal_of(FaultSpec::Kind kind) {
  return kind == FaultSpec::Kind::kill ? SIGKILL : kind == FaultSpec::Kind::stop ? SIGSTOP : 0;
}

[[noreturn]] void refuse(const std::string& what, const std::string& detail) {
  throw UsageError("--chaos: " + what, detail, "unisono help run");
}

// Quotes a word unless a shell would leave it unchanged.
std::string word_text(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=@%+";
  return !word.empty() && word.find_first_not_of(kPlain) == std::string::npos ? word
                                                                              : shell_quote(word);
}

}  // namespace

Chaos::Chaos(const chaos::Plan& plan, const std::optional<tcp::Address>& relay_at) {
  for (const FaultSpec& strike : plan.strikes) {
    events_.push_back(
        {.at = Milliseconds(strike.at_ms), .rank = strike.rank, .signal = signal_of(strike.kind)});
    if (strike.for_ms >= 0) {
      events_.push_back({.at = Milliseconds(strike.at_ms + strike.for_ms),
                         .rank = strike.rank,
                         .signal = SIGCONT});
    }
  }
  std::stable_sort(events_.begin(), events_.end(),
                   [](const Event& a, const Event& b) { return a.at > b.at; });
  if (relay_at) {
    relay_.emplace(*relay_at, plan.link);
  }
}

std::vector<std::string> Chaos::environment() const {
  return relay_ ? std::vector<std::string>{"UNISONO_RELAY=" + tcp::to_text(relay_->place())}
                : std::vector<std::string>{};
}

std::vector<Chaos::ScheduledFault> Chaos::due(Milliseconds since_start) {
  std::vector<ScheduledFault> blows;
  for (; !events_.empty() && events_.back().at <= since_start; events_.pop_back()) {
    blows.push_back({.rank = events_.back().rank, .signal = events_.back().signal});
  }
  return blows;
}

void Chaos::reset(int rank) {
  relay_->reset(rank);
}

std::vector<Chaos::ScheduledFault> Chaos::left() const {
  std::vector<ScheduledFault> blows;
  for (auto event = events_.rbegin(); event != events_.rend(); ++event) {
    if (event->signal != SIGCONT) {
      blows.push_back({.rank = event->rank, .signal = event->signal});
    }
  }
  return blows;
}

std::optional<Chaos::Milliseconds> Chaos::next() const {
  return events_.empty() ? std::nullopt : std::optional(events_.back().at);
}

std::optional<chaos::Plan> read_chaos(const Arguments& arguments, int ranks,
                                      const std::string& transport, const std::string& first_host) {
  if (!arguments.has("chaos")) {
    return std::nullopt;
  }
  if (arguments.text("chaos").empty()) {
    refuse("it is empty", "for example --chaos delay=5ms,loss=1%,kill=random,seed=7");
  }
  Parsed<chaos::Plan> parsed = chaos::parse(arguments.text("chaos"));
  if (!parsed) {
    refuse(parsed.message, "for example --chaos delay=5ms,loss=1%,kill=random,seed=7");
  }
  chaos::Plan& plan = *parsed.value;
  for (const FaultSpec& strike : plan.strikes) {
    if (strike.rank >= ranks) {
      refuse(fmt::format("there is no rank {}", strike.rank),
             fmt::format("the job has ranks 0 to {}", ranks - 1));
    }
  }
  if (plan.needs_relay() && transport != "tcp" && (first_host.empty() || transport == "shm")) {
    refuse(
        "delay, jitter, loss, rate, corrupt and reset need connections between ranks, and these "
        "share memory",
        "add --transport tcp; kill and stop also work with shared memory");
  }
  if (!plan.has_seed) {
    plan.link.seed = std::random_device()() % kMostDrawnSeed;
  }
  return chaos::drawn(plan, ranks);
}

std::optional<tcp::Address> relay_address(const chaos::Plan& plan, const std::string& first_host) {
  if (!plan.needs_relay()) {
    return std::nullopt;
  }
  if (first_host.empty()) {
    return tcp::Address::parse("127.0.0.1:0").value;
  }
  try {
    for (const tcp::Address& address : comm::find_target(first_host + ":1").addresses) {
      if (const auto from = tcp::source_towards(address)) {
        return from;
      }
    }
  } catch (const Error&) {  // reported below
  }
  refuse(
      fmt::format("'{}' cannot be reached from this host, where the relay between the ranks runs",
                  first_host),
      "write the first host's address in --hosts");
}

std::string replay_command(const Arguments& arguments, const chaos::Plan& plan) {
  std::string text = "unisono run";
  for (const Option& option : all_options(arguments.command())) {
    if (!arguments.has(option.name)) {
      continue;
    }
    const std::string name = fmt::format(" --{}", option.name);
    if (option.name == "chaos") {
      text += name + " " + word_text(chaos::to_text(plan));
    } else if (option.value.empty()) {
      text += name;
    } else {
      for (const std::string& value : arguments.texts(option.name)) {
        text += name + " " + word_text(value);
      }
    }
  }
  text += " --";
  for (const std::string& word : arguments.program()) {
    text += " " + word_text(word);
  }
  return text;
}

}  // namespace unisono::cli
