// What an Exchange and a Routing hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "experts/agreement.h"
#include "experts/places.h"
#include "experts/travel.h"
#include "unisono/communicator.hpp"
#include "unisono/parallel/experts.hpp"

namespace unisono::detail {

struct RoutingState {
  std::shared_ptr<const char> exchange;  // ExchangeState::identity
  std::uint64_t number = 0;  // among the routings of the exchange, the same on all ranks
  int k = 1;
  std::size_t tokens = 0;
  ExpertLayout layout = ExpertLayout::expert_major;
  std::vector<int> experts_here;
  experts::Places places;
};

// A dispatch or a combine that has been started.
struct StartedCall {
  experts::CallKind kind = experts::CallKind::dispatch;
  const RoutingState* routing = nullptr;
  std::vector<experts::Travel> travels;
  CombineRows combine;
  std::vector<experts::Opening> openings;
  std::unique_ptr<experts::SplitOpening> opening;  // under way; else openings are there
};

struct ExchangeState {
  ExchangeState(Communicator& communicator, const ExchangeOptions& wanted)
      : comm(&communicator), options(wanted), one_host(communicator.hosts() == 1) {}

  Communicator* comm;
  ExchangeOptions options;
  bool one_host;  // then ranks read each other's memory
  experts::Seats seats;
  // Its address tells exchanges apart; routings keep it, so that no other gets the same.
  std::shared_ptr<const char> identity = std::make_shared<const char>('\0');
  std::uint64_t routings = 0;
  // Copies, for peers, of what they cannot read where it lies.
  Region staged[kMaxPayloads];
  std::vector<std::byte> coded[kMaxPayloads];  // where no peer reads it
  experts::SentRows sent[kMaxPayloads];        // between hosts
  std::unique_ptr<StartedCall> started;
};

}  // namespace unisono::detail
