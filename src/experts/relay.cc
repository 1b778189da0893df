#include "experts/relay.h"

#include <numeric>

#include "experts/rows.h"

namespace unisono::experts {
namespace {

std::size_t rows_from(const detail::RoutingState& routing, const RowTransfer& transfer,
                      int source) {
  const InterHostIndex& come = routing.inter_host.come[static_cast<std::size_t>(source)];
  return transfer.form.one_a_slot ? come.choice : come.token;
}

// Returns the number of rows that this rank receives as relay, by source rank.
std::vector<std::size_t> rows_to_take(const detail::ExpertExchangeState& state,
                                      const detail::RoutingState& routing,
                                      const RowTransfer& transfer) {
  const HostMap& hosts = state.hosts;
  std::vector<std::size_t> rows(static_cast<std::size_t>(state.comm->size()), 0);
  for (int source = 0; source < state.comm->size(); ++source) {
    if (!hosts.is_here(source) && hosts.relay(source, hosts.mine()) == state.comm->rank()) {
      rows[static_cast<std::size_t>(source)] = rows_from(routing, transfer, source);
    }
  }
  return rows;
}

std::size_t bytes_to_take(const detail::ExpertExchangeState& state,
                          const detail::RoutingState& routing, const RowTransfer& transfer) {
  const auto rows = rows_to_take(state, routing, transfer);
  return std::accumulate(rows.begin(), rows.end(), std::size_t{0}) * transfer.row_bytes;
}

std::size_t bytes_to_send(const detail::RoutingState& routing, const RowTransfer& transfer) {
  std::size_t rows = 0;
  for (const InterHostRows& leave : routing.inter_host.leave) {  // has no rows for this host
    rows += transfer.form.one_a_slot ? leave.choices.size() : leave.tokens.size();
  }
  return rows * transfer.row_bytes;
}

}  // namespace

void prepare_inter_host(detail::ExpertExchangeState& state, const detail::RoutingState& routing,
                        std::size_t part, const RowTransfer& transfer, Mistake& mistake) {
  if (state.hosts.single()) {
    return;
  }
  SentRows& rows = state.sent[part];
  const std::size_t bytes = bytes_to_take(state, routing, transfer);
  const bool is_own = !state.is_read() || bytes == 0;
  prepare_rows(rows, bytes_to_send(routing, transfer), is_own ? bytes : 0, mistake);
  if (is_own || !mistake.text.empty()) {
    rows.incoming = rows.own;
    return;
  }
  rows.incoming = shared_memory(state, state.relayed[part], bytes, mistake);
}

void start_inter_host(detail::ExpertExchangeState& state, const detail::RoutingState& routing,
                      std::size_t part, const RowTransfer& transfer) {
  if (state.hosts.single()) {
    return;
  }
  std::vector<std::vector<const std::byte*>> to(static_cast<std::size_t>(state.comm->size()));
  for (std::size_t host = 0; host < state.hosts.count(); ++host) {
    if (host == state.hosts.mine()) {
      continue;
    }
    const InterHostRows& leave = routing.inter_host.leave[host];
    auto& rows = to[static_cast<std::size_t>(state.hosts.relay(state.comm->rank(), host))];
    for (const std::uint32_t row : transfer.form.one_a_slot ? leave.choices : leave.tokens) {
      rows.push_back(transfer.in.data() + row * transfer.row_bytes);
    }
  }
  start_rows(state, to, rows_to_take(state, routing, transfer), transfer.row_bytes,
             state.sent[part]);
}

std::vector<std::vector<const std::byte*>> finish_inter_host(
    detail::ExpertExchangeState& state, const detail::RoutingState& routing,
    std::span<const RowTransfer> transfers) {
  const HostMap& hosts = state.hosts;
  if (hosts.single()) {
    return {};
  }
  std::vector<SharedPlace> mine(transfers.size());
  for (std::size_t part = 0; part < transfers.size(); ++part) {
    finish_rows(state.sent[part]);
    const std::span<const std::byte> came = state.sent[part].incoming;
    if (state.is_read() && !came.empty()) {
      mine[part] = state.comm->place_of(came.data(), came.size());
    }
  }
  std::vector<SharedPlace> all(transfers.size() * hosts.here().size());
  if (state.is_read()) {
    state.here().all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  }
  const auto ranks = static_cast<std::size_t>(state.comm->size());
  std::vector<std::vector<const std::byte*>> first(transfers.size());
  for (std::size_t part = 0; part < transfers.size(); ++part) {
    first[part].assign(ranks, nullptr);
    for (std::size_t local = 0; local < hosts.here().size(); ++local) {
      const int relay = hosts.here()[local];
      std::vector<std::size_t> offset(ranks);  // offsets in the relay's memory
      std::size_t bytes = 0;
      for (int source = 0; source < state.comm->size(); ++source) {
        if (!hosts.is_here(source) && hosts.relay(source, hosts.mine()) == relay) {
          offset[static_cast<std::size_t>(source)] = bytes;
          bytes += rows_from(routing, transfers[part], source) * transfers[part].row_bytes;
        }
      }
      if (bytes == 0) {
        continue;
      }
      const std::byte* const memory =
          relay == state.comm->rank()
              ? state.sent[part].incoming.data()
              : memory_of(state, relay, all[local * transfers.size() + part], bytes);
      for (int source = 0; source < state.comm->size(); ++source) {
        if (!hosts.is_here(source) && hosts.relay(source, hosts.mine()) == relay) {
          first[part][static_cast<std::size_t>(source)] =
              memory + offset[static_cast<std::size_t>(source)];
        }
      }
    }
  }
  return first;
}

}  // namespace unisono::experts
