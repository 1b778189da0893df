#include "membership/meet_again.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "bootstrap/addresses.h"
#include "bootstrap/net_setup.h"
#include "membership/net_agreement.h"
#include "membership/quorum.h"

namespace unisono::comm {
namespace {

constexpr const char* kSurvivors = "~survivors-";  // appended to the name of a job

}  // namespace

std::string first_name(const std::string& job) {
  return job.substr(0, job.find(kSurvivors));
}

std::string name_of_survivors(const std::string& job, const std::string& mark) {
  return first_name(job) + kSurvivors + mark;
}

NetMeeting meet_again_over_network(ConnectOptions& options, Endpoints& endpoints,
                                   const Rules& rules, Survivors& survivors) {
  const auto self = static_cast<std::size_t>(options.rank);
  std::vector<tcp::Address> where = endpoints.addresses[self];
  for (tcp::Address& address : where) {
    address = address.with_port(0);
  }
  std::vector<UniqueFd> listeners = listen_at_all(where, ports_of(options));
  BusinessCard mine = card_of(options);
  for (const UniqueFd& listener : listeners) {
    mine.addresses.push_back(tcp::local_address(listener.get()));
  }
  NetAgreement agreement{.self = identity_of(options, ""),
                         .addresses = endpoints.addresses,
                         .endpoints = endpoints.sockets,
                         .mine = mine,
                         .is_gone = rules.is_gone,
                         .patience_ms = rules.patience_ms,
                         .timeout_ms = rules.timeout_ms,
                         .quorum = rules.quorum,
                         .last = survivors.ranks};
  const AgreedView answer = agree_over_network(agreement);
  const auto place = std::find(answer.ranks.begin(), answer.ranks.end(), options.rank);
  if (place == answer.ranks.end()) {
    throw_evicted();
  }
  survivors = {.ranks = answer.ranks, .mark = answer.mark};
  options.rank = static_cast<int>(place - answer.ranks.begin());
  options.size = static_cast<int>(answer.ranks.size());
  options.job = name_of_survivors(options.job, answer.mark);
  tcp::Identity identity = identity_of(options, "");
  auto acceptor = std::make_unique<tcp::Acceptor>(std::move(listeners), identity);
  return settle(std::move(acceptor), std::move(identity), answer.cards, mine);
}

}  // namespace unisono::comm
