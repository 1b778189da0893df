// State of an ExpertExchange and of a Routing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/handles.h"
#include "experts/agreement.h"
#include "experts/host_map.h"
#include "experts/inter_host.h"
#include "experts/places.h"
#include "experts/row_transfer.h"
#include "unisono/communicator.hpp"
#include "unisono/parallel/experts.hpp"

namespace unisono::experts {
class AsyncCalls;
}

namespace unisono::detail {

struct RoutingState {
  std::shared_ptr<const char> exchange;  // ExpertExchangeState::identity
  std::uint64_t number = 0;              // sequence number in the exchange, equal on all ranks
  int k = 1;
  std::size_t tokens = 0;
  ExpertLayout layout = ExpertLayout::expert_major;
  std::vector<int> experts_here;
  experts::Places places;
  experts::InterHostLayout inter_host;  // used between hosts
  std::string load;                     // for labels; empty: the load is even
};

// A dispatch or a combine that has been started.
struct StartedCall {
  experts::CallKind kind = experts::CallKind::dispatch;
  const RoutingState* routing = nullptr;
  std::vector<experts::RowTransfer> transfers;
  CombineRows combine;
  std::vector<experts::CallHeader> headers;
};

struct ExpertExchangeState {
  ExpertExchangeState(Communicator& communicator, const ExpertExchangeOptions& wanted)
      : comm(&communicator),
        options(wanted),
        hosts(communicator),
        physical_experts(experts::physical_experts_of(wanted, communicator.size())) {}
  // Collective. Creates the group of this host's ranks if there are several hosts.
  void meet() {
    if (!hosts.single() && comm->size() > comm->hosts()) {
      ranks_here = comm->split(static_cast<int>(hosts.mine()), comm->rank());
    }
  }
  // Returns true if other ranks read this rank's memory.
  bool is_read() const noexcept { return hosts.here().size() > 1; }
  Communicator& here() noexcept { return hosts.single() ? *comm : ranks_here; }

  Communicator* comm;
  ExpertExchangeOptions options;
  experts::HostMap hosts;
  Communicator ranks_here = Handles::communicator(nullptr);  // set if there are several hosts
  experts::PhysicalExperts physical_experts;
  // Identifies the exchange by its address. Routings keep it alive, so that no other exchange gets
  // the same address.
  std::shared_ptr<const char> identity = std::make_shared<const char>('\0');
  std::uint64_t routings = 0;
  std::size_t max_tokens = 0;  // most tokens that a rank has routed at once; equal on all ranks
  // The last routing that excludes each rank. Empty: all ranks are included.
  std::vector<std::uint64_t> out_until;
  // Copies of memory that peers cannot read directly.
  Region staged[kMaxPayloads];
  Region relayed[kMaxPayloads];                // rows from other hosts, for peers
  std::vector<std::byte> coded[kMaxPayloads];  // coded rows that no peer reads
  experts::SentRows sent[kMaxPayloads];        // between hosts
  std::shared_ptr<experts::AsyncCalls> async;  // shared with requests
};

}  // namespace unisono::detail
