// Creates exchanges and routings.
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "experts/agreement.h"
#include "experts/async.h"
#include "experts/dispatch.h"
#include "experts/load.h"
#include "experts/mask.h"
#include "experts/memory.h"
#include "experts/options.h"
#include "experts/state.h"

namespace unisono {
namespace {

using experts::CallKind;
using experts::Mistake;

std::uint64_t hash_of(const ExpertExchangeOptions& options) {
  Hash hash;
  for (const std::int64_t number : experts::numbers_of(options)) {
    hash.add(static_cast<std::uint64_t>(number));
  }
  return hash.value();
}

std::string not_an_expert(std::size_t index, std::int64_t expert,
                          const ExpertExchangeOptions& options) {
  const auto k = static_cast<std::size_t>(options.k);
  return "token " + std::to_string(index / k) + " chose expert " + std::to_string(expert) +
         " at place " + std::to_string(index % k) + ", but there are " +
         std::to_string(options.experts) + "\ngive numbers from 0 to " +
         std::to_string(options.experts - 1) + ", or -1 for none";
}

template <typename Number>
Mistake find_mistake(std::span<const Number> chosen, const ExpertExchangeOptions& options) {
  if (chosen.size() % static_cast<std::size_t>(options.k) != 0) {
    return {.text = "k = " + std::to_string(options.k) + " does not divide its " +
                    std::to_string(chosen.size()) + " choices\ngive k choices per token"};
  }
  if (chosen.size() > std::numeric_limits<std::uint32_t>::max()) {
    return {
        .text =
            std::to_string(chosen.size()) +
            " choices are more than one call can route (4294967295)\nroute the tokens in parts"};
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] < -1 || chosen[i] >= options.experts) {
      return {.text = not_an_expert(i, static_cast<std::int64_t>(chosen[i]), options)};
    }
  }
  return {};
}

// Sends `send[rank]` elements to each rank and receives elements from each rank.
template <typename Element>
std::vector<Element> exchange(Communicator& comm, const std::vector<Element>& elements,
                              std::vector<std::size_t> send, std::vector<std::size_t> receive) {
  std::vector<Element> came(std::accumulate(receive.begin(), receive.end(), std::size_t{0}));
  for (auto* counts : {&send, &receive}) {
    for (std::size_t& count : *counts) {
      count *= sizeof(Element);
    }
  }
  comm.all_to_all_v(std::as_bytes(std::span(elements)), send,
                    std::as_writable_bytes(std::span(came)), receive);
  return came;
}

// A choice with its inter-host index. The first message for each rank carries the numbers of all
// rows to that rank's host instead.
struct RemoteChoiceMessage {
  experts::ChoiceMessage messages;
  experts::InterHostIndex inter_host_index;
};

void tell_far(detail::ExpertExchangeState& state, const experts::SendLayout& send_layout,
              std::size_t choices, detail::RoutingState& routing) {
  const experts::HostMap& hosts = state.hosts;
  experts::InterHostLayout& inter_host = routing.inter_host;
  const auto numbers =
      experts::find_inter_host_rows(hosts, state.options.k, send_layout, choices, inter_host);
  std::vector<RemoteChoiceMessage> messages;
  std::vector<std::size_t> send = send_layout.send;
  std::vector<std::size_t> receive = send_layout.receive;
  for (std::size_t rank = 0, i = 0; rank < send.size(); ++rank) {
    const experts::InterHostRows& rows = inter_host.leave[hosts.host(static_cast<int>(rank))];
    messages.push_back(
        {.messages = {},
         .inter_host_index = {.token = static_cast<std::uint32_t>(rows.tokens.size()),
                              .choice = static_cast<std::uint32_t>(rows.choices.size())}});
    for (const std::size_t end = i + send[rank]; i < end; ++i) {
      messages.push_back({.messages = send_layout.messages[i], .inter_host_index = numbers[i]});
    }
    ++send[rank];
    ++receive[rank];
  }
  const std::vector<RemoteChoiceMessage> came = exchange(*state.comm, messages, send, receive);
  std::vector<experts::ChoiceMessage> choices_here;
  std::vector<experts::InterHostIndex> crossings_here;
  for (std::size_t rank = 0, i = 0; rank < receive.size(); ++rank) {
    inter_host.come[rank] = came[i].inter_host_index;
    for (const std::size_t end = i++ + receive[rank]; i < end; ++i) {
      choices_here.push_back(came[i].messages);
      crossings_here.push_back(came[i].inter_host_index);
    }
  }
  experts::take_arrivals(state.options, send_layout, choices_here, crossings_here, routing.places);
}

// Computes the places of all rows. Ranks exchange the number of their choices per expert, and send
// each choice only to the rank of its expert. The data that a rank receives therefore grows with
// its rows, not with the tokens of all ranks. `any`: true if any rank has choices.
void find_places(detail::ExpertExchangeState& state, const std::vector<std::int32_t>& choices,
                 bool any, detail::RoutingState& routing) {
  Communicator& comm = *state.comm;
  experts::Places& places = routing.places;
  const auto ranks = static_cast<std::size_t>(comm.size());
  const auto gather = [&](const std::vector<std::uint32_t>& mine) {
    std::vector<std::uint32_t> all(mine.size() * ranks);
    if (any) {
      comm.all_gather(mine, all);
    }
    return all;
  };
  const auto counts = gather(experts::count_choices(state.options, choices));
  experts::SendLayout send_layout = experts::place_choices(state.options, state.physical_experts,
                                                           counts, choices, comm.rank(), places);
  if (state.options.layout == ExpertLayout::rank_major) {
    experts::add_first_rows(gather(send_layout.rows), comm.rank(), places);
  }
  routing.inter_host.leave.resize(state.hosts.count());
  routing.inter_host.come.resize(ranks);
  if (any && !state.hosts.single()) {
    tell_far(state, send_layout, choices.size(), routing);
    return;
  }
  const auto messages =
      any ? exchange(comm, send_layout.messages, send_layout.send, send_layout.receive)
          : std::vector<experts::ChoiceMessage>();
  experts::take_arrivals(state.options, send_layout, messages, {}, places);
}

// Reserves memory for the largest token count of any rank. All ranks know all token counts, so all
// reserve the same memory.
void make_room(detail::ExpertExchangeState& state,
               const std::vector<experts::CallHeader>& headers) {
  std::uint64_t choices = 0;
  for (const experts::CallHeader& header : headers) {
    choices = std::max(choices, header.own);
  }
  const std::size_t tokens = choices / static_cast<std::size_t>(state.options.k);
  if (tokens <= state.max_tokens) {
    return;
  }
  experts::reserve(state, tokens, CallKind::route);
  state.max_tokens = tokens;
}

template <typename Number>
std::unique_ptr<detail::RoutingState> route(detail::ExpertExchangeState& state,
                                            std::span<const Number> chosen) {
  Communicator& comm = *state.comm;
  const auto k = static_cast<std::size_t>(state.options.k);
  const Mistake mistake = find_mistake(chosen, state.options);
  const auto headers =
      experts::open(comm, {.kind = CallKind::route, .own = chosen.size()}, mistake);
  make_room(state, headers);
  auto routing = std::make_unique<detail::RoutingState>();
  routing->exchange = state.identity;
  routing->number = ++state.routings;
  experts::readmit(state);
  routing->k = state.options.k;
  routing->tokens = chosen.size() / k;
  routing->layout = state.options.layout;
  routing->experts_here =
      state.physical_experts.experts_of_rank[static_cast<std::size_t>(comm.rank())];
  const bool any = std::any_of(headers.begin(), headers.end(),
                               [](const experts::CallHeader& header) { return header.own != 0; });
  find_places(state, std::vector<std::int32_t>(chosen.begin(), chosen.end()), any, *routing);
  routing->load = experts::describe_load(routing->places, state.physical_experts);
  return routing;
}

}  // namespace

ExpertExchange::ExpertExchange(Communicator& communicator, const ExpertExchangeOptions& options) {
  Mistake mistake;
  if (const std::string text = experts::find_mistake(options, communicator.size()); !text.empty()) {
    mistake.text = text + "\ncorrect the ExpertExchangeOptions";
  }
  experts::open(communicator, {.kind = CallKind::exchange, .options = hash_of(options)}, mistake,
                &options);
  state_ = std::make_unique<detail::ExpertExchangeState>(communicator, options);
  state_->meet();
  state_->max_tokens = options.max_tokens;
  experts::reserve(*state_, options.max_tokens, CallKind::exchange);
}
ExpertExchange::ExpertExchange(ExpertExchange&&) noexcept = default;
ExpertExchange& ExpertExchange::operator=(ExpertExchange&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
ExpertExchange::~ExpertExchange() {
  if (state_ != nullptr && state_->async != nullptr && !state_->async->close()) {
    static_cast<void>(state_.release());  // NOLINT(bugprone-unused-return-value): see close()
  }
}

std::size_t ExpertExchange::max_tokens() const {
  return state_->max_tokens;
}
std::size_t ExpertExchange::max_rows() const {
  return experts::most_rows(*state_, state_->max_tokens);
}

Routing ExpertExchange::route(std::span<const std::int32_t> experts) {
  return Routing(unisono::route(*state_, experts));
}
Routing ExpertExchange::route(std::span<const std::int64_t> experts) {
  return Routing(unisono::route(*state_, experts));
}

}  // namespace unisono
