// Dispatch: writes each row to the places that the routing gives it.
#include "experts/dispatch.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "base/hash.h"
#include "experts/async.h"
#include "experts/load.h"
#include "experts/relay.h"
#include "experts/rows.h"
#include "kernels/kernels.h"

namespace unisono {
namespace experts {
namespace {

// Outputs larger than a typical second-level cache are written with streaming stores.
constexpr std::size_t kStreamingBytes = std::size_t{4} << 20;

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

// Returns the index of a row in `in`.
std::size_t source_row(const RowTransfer& transfer, std::int64_t token, int slot, int k) {
  return transfer.form.one_a_slot ? at(token * k + slot) : at(token);
}

void fill_padding(const detail::RoutingState& routing, const RowTransfer& transfer) {
  if (routing.layout != ExpertLayout::expert_major) {
    return;
  }
  const Places& places = routing.places;
  for (std::size_t local = 0; local < places.first_row.size(); ++local) {
    const std::int64_t begin = places.first_row[local] + places.rows_of[local];
    const std::int64_t end =
        local + 1 < places.first_row.size() ? places.first_row[local + 1] : places.rows;
    if (begin != end) {
      std::memset(transfer.out.data() + at(begin) * transfer.out_row_bytes, 0,
                  at(end - begin) * transfer.out_row_bytes);
    }
  }
}

// Writes the rows from one rank. `row_at(arrival)` returns a row's address.
template <typename RowAt>
void place_rows(const detail::RoutingState& routing, std::size_t source,
                const RowTransfer& transfer, const RowAt& row_at) {
  const kernels::Store store =
      transfer.out.size() >= kStreamingBytes ? kernels::Store::streaming : kernels::Store::cached;
  const Places& places = routing.places;
  std::vector<std::byte> decoded(transfer.is_coded() ? transfer.out_row_bytes
                                                     : 0);  // the row at `latest`
  const std::byte* latest = nullptr;
  std::vector<void*> targets;
  const std::size_t end = places.first_arrival[source + 1];
  for (std::size_t i = places.first_arrival[source]; i < end; ++i) {
    const Arrival& arrival = places.arrivals[i];
    const std::byte* from = row_at(arrival);
    if (transfer.is_rounded) {  // rounded once, however many experts of this rank receive it
      targets.push_back(transfer.out.data() + at(arrival.row) * transfer.out_row_bytes);
      if (i + 1 == end || row_at(places.arrivals[i + 1]) != from) {
        transfer.functions.round(targets.data(), static_cast<int>(targets.size()), from,
                                 transfer.count, store);
        targets.clear();
      }
      continue;
    }
    if (!transfer.is_coded()) {
      transfer.write(at(arrival.row), from, store);
      continue;
    }
    if (from != latest) {  // also decoded only once
      transfer.functions.decode(decoded.data(), from, transfer.count, kernels::Store::cached);
      latest = from;
    }
    kernels::copy(transfer.out.data() + at(arrival.row) * transfer.out_row_bytes, decoded.data(),
                  transfer.out_row_bytes, store);
  }
}

// If the tokens fit into a cache, or go to about one place each, it is fastest to write rows in
// order, as one stream of stores. Otherwise each token is read from memory once and written to all
// its places.
constexpr std::size_t kCachedTokens = std::size_t{4} << 20;

void read_from_memory(const detail::ExpertExchangeState& state, const detail::RoutingState& routing,
                      const RowTransfer& transfer, const std::vector<const std::byte*>& found,
                      std::size_t bytes_of_all) {
  const std::size_t bytes_here = routing.places.arrivals.size() * transfer.row_bytes;
  const bool seldom_twice = bytes_here < bytes_of_all + bytes_of_all / 2;
  const bool is_coded = transfer.form.coding != RowCoding::none;
  if (seldom_twice || (bytes_of_all <= kCachedTokens && !is_coded)) {
    const kernels::Store store =
        transfer.out.size() >= kStreamingBytes ? kernels::Store::streaming : kernels::Store::cached;
    for (std::size_t row = 0; row < routing.places.sources.size(); ++row) {
      const RowSource& source = routing.places.sources[row];
      if (source.rank >= 0) {
        const std::size_t number = source_row(transfer, source.token, source.slot, routing.k);
        transfer.write(row, found[at(source.rank)] + number * transfer.row_bytes, store);
      }
    }
    return;
  }
  // Each rank starts with its own rows, so that ranks do not all read from the same rank at once.
  const std::size_t ranks = found.size();
  for (std::size_t i = 0; i < ranks; ++i) {
    const std::size_t source = (at(state.comm->rank()) + i) % ranks;
    place_rows(routing, source, transfer, [&](const Arrival& arrival) {
      return found[source] +
             source_row(transfer, arrival.token, arrival.slot, routing.k) * transfer.row_bytes;
    });
  }
}

// Reads from the ranks on this host directly, and from other hosts' ranks through the relays.
void read_from_hosts(const detail::ExpertExchangeState& state, const detail::RoutingState& routing,
                     const RowTransfer& transfer, const std::vector<const std::byte*>& found,
                     const std::vector<const std::byte*>& relayed) {
  for (std::size_t source = 0; source < found.size(); ++source) {
    const bool is_here = state.hosts.is_here(static_cast<int>(source));
    place_rows(routing, source, transfer, [&](const Arrival& arrival) {
      if (is_here) {
        return found[source] +
               source_row(transfer, arrival.token, arrival.slot, routing.k) * transfer.row_bytes;
      }
      const InterHostIndex& inter_host_index = arrival.inter_host_index;
      return relayed[source] + std::size_t{transfer.form.one_a_slot ? inter_host_index.choice
                                                                    : inter_host_index.token} *
                                   transfer.row_bytes;
    });
  }
}

// Checks that outputs do not overlap inputs or each other, because outputs are written while peers
// and this rank still read inputs.
void expect_apart(Mistake& mistake, std::span<const Payload> payloads, const PartNames& names) {
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    for (std::size_t j = 0; j < payloads.size(); ++j) {
      experts::expect_apart(mistake, names.out, payloads[i].out, names.in, payloads[j].in);
      if (i < j) {
        experts::expect_apart(mistake, names.out, payloads[i].out, names.out, payloads[j].out);
      }
    }
  }
}

Mistake check(const detail::RoutingState& routing, std::span<const Payload> payloads,
              const PartNames& names) {
  Mistake mistake;
  if (payloads.empty() || payloads.size() > kMaxPayloads) {
    return {.text = "it has " + std::to_string(payloads.size()) + " payloads\ngive 1 to " +
                    std::to_string(kMaxPayloads)};
  }
  for (const Payload& payload : payloads) {
    if (payload.one_a_slot && routing.layout == ExpertLayout::rank_major) {
      return {.text =
                  "a rank_major row stands for several places, and cannot have one element per "
                  "slot\nsend all k elements with the token"};
    }
    const std::size_t each = payload.one_a_slot ? at(routing.k) : 1;
    expect(mistake, names.in, payload.in.size(), routing.tokens * each, payload.row_bytes);
    expect_rows(mistake, names.out, payload.out.size(), routing, payload.row_bytes);
    expect_coding(mistake, payload.coding, payload.dtype, payload.row_bytes);
  }
  expect_apart(mistake, payloads, names);
  return mistake;
}

}  // namespace

Mistake find_mistake(const detail::ExpertExchangeState& state,
                     const detail::RoutingState* routing) {
  if (routing == nullptr) {
    return {.text = "the routing is empty\nit was moved from"};
  }
  if (routing->exchange != state.identity) {
    return {.text =
                "the routing was made by another exchange\nuse it with the exchange whose route() "
                "returned it"};
  }
  return {};
}

std::size_t bytes_of(std::size_t rows, std::size_t row_bytes) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  return row_bytes != 0 && rows > kMost / row_bytes ? kMost : rows * row_bytes;
}

void expect_apart(Mistake& mistake, const char* what, std::span<const std::byte> written,
                  const char* other, std::span<const std::byte> used) {
  const std::less<const std::byte*> before;  // may compare pointers into different arrays
  const bool overlap = !written.empty() && !used.empty() &&
                       before(written.data(), used.data() + used.size()) &&
                       before(used.data(), written.data() + written.size());
  if (mistake.text.empty() && overlap) {
    mistake.text = std::string("`") + what + "` overlaps `" + other +
                   "`, which is read while it is written\npass separate memory";
  }
}

void expect(Mistake& mistake, const char* what, std::size_t have, std::size_t rows,
            std::size_t row_bytes) {
  const std::size_t wanted = bytes_of(rows, row_bytes);
  if (mistake.text.empty() && have != wanted) {
    mistake.text = std::string("`") + what + "` has " + std::to_string(have) + " bytes, not the " +
                   std::to_string(wanted) + " of " + std::to_string(rows) + " rows of " +
                   std::to_string(row_bytes) + "\npass as many rows as the routing was made for";
  }
}

void expect_rows(Mistake& mistake, const char* what, std::size_t have,
                 const detail::RoutingState& routing, std::size_t row_bytes) {
  const std::size_t rows = at(routing.places.rows);
  const std::size_t wanted = bytes_of(rows, row_bytes);
  const bool is_whole = row_bytes == 0 ? have == 0 : have % row_bytes == 0;
  if (mistake.text.empty() && (!is_whole || have < wanted)) {
    mistake.text = std::string("`") + what + "` has " + std::to_string(have) + " bytes, not the " +
                   std::to_string(wanted) + " of " + std::to_string(rows) + " rows of " +
                   std::to_string(row_bytes) + ", nor those of more rows\ngive as many rows as " +
                   "the routing has, or more";
  }
}

std::unique_ptr<detail::StartedCall> start_call(detail::ExpertExchangeState& state,
                                                const detail::RoutingState* routing,
                                                std::vector<RowTransfer> transfers,
                                                CallHeader header, Mistake mistake) {
  auto call = std::make_unique<detail::StartedCall>();
  call->kind = header.kind;
  call->routing = routing;
  if (mistake.text.empty()) {
    header.routing = routing->number;
    header.parts = static_cast<std::uint32_t>(transfers.size());
    for (std::size_t part = 0; part < transfers.size(); ++part) {
      header.part_bytes[part] = transfers[part].row_bytes;
      header.part_forms[part] = transfers[part].form.bits();
      header.named[part] = transfers[part].in.size();
      header.names[part] = publish(state, part, transfers[part].in, mistake);
    }
  }
  call->transfers = std::move(transfers);
  call->headers = open(*state.comm, header, mistake);
  return call;
}

void end_call(detail::ExpertExchangeState& state) {
  if (state.is_read()) {
    state.here().barrier();
  }
}

void dispatch(detail::ExpertExchangeState& state, const detail::RoutingState* routing,
              std::span<const Payload> payloads, const DispatchForm& form, Mistake mistake) {
  if (mistake.text.empty()) {
    mistake = find_mistake(state, routing);
  }
  if (mistake.text.empty()) {
    mistake = check(*routing, payloads, form.names);
  }
  std::vector<RowTransfer> transfers;
  for (std::size_t part = 0; part < payloads.size() && mistake.text.empty(); ++part) {
    const Payload& payload = payloads[part];
    RowTransfer& transfer = transfers.emplace_back(row_transfer_of(
        state, part, payload.in, payload.row_bytes, payload.coding, payload.dtype, mistake));
    transfer.out = payload.out.first(at(routing->places.rows) * payload.row_bytes);
    transfer.form.one_a_slot = payload.one_a_slot;
  }
  for (std::size_t part = 0; part < transfers.size() && mistake.text.empty(); ++part) {
    prepare_inter_host(state, *routing, part, transfers[part], mistake);
  }
  const auto call =
      start_call(state, routing, std::move(transfers), {.kind = form.kind}, std::move(mistake));
  for (std::size_t part = 0; part < call->transfers.size(); ++part) {
    start_inter_host(state, *routing, part, call->transfers[part]);
  }
  const auto relayed = finish_inter_host(state, *call->routing, call->transfers);
  for (std::size_t part = 0; part < call->transfers.size(); ++part) {
    const RowTransfer& transfer = call->transfers[part];
    const auto found = find_published(state, call->headers, part, transfer.in.data());
    if (state.hosts.single()) {
      std::size_t bytes_of_all = 0;
      for (const CallHeader& each : call->headers) {
        bytes_of_all += each.named[part];
      }
      read_from_memory(state, *call->routing, transfer, found, bytes_of_all);
    } else {
      read_from_hosts(state, *call->routing, transfer, found, relayed[part]);
    }
    fill_padding(*call->routing, transfer);
  }
  kernels::fence_streaming();
  end_call(state);
}

}  // namespace experts

void ExpertExchange::dispatch(const Routing& routing, std::span<const Payload> payloads) {
  const experts::LoadLabel label(*state_->comm, routing.state_.get());
  experts::dispatch(*state_, routing.state_.get(), payloads, {}, {});
}

Request ExpertExchange::dispatch_async(const Routing& routing, std::span<const Payload> payloads) {
  return experts::start_async(
      *state_, routing.state_.get(),
      [made = routing.state_.get(), all = std::vector<Payload>(payloads.begin(), payloads.end())](
          detail::ExpertExchangeState& state) { experts::dispatch(state, made, all, {}, {}); });
}

std::vector<const std::byte*> ExpertExchange::gather_list(const Routing& routing,
                                                          std::span<const std::byte> in,
                                                          std::size_t row_bytes) {
  const detail::RoutingState* made = routing.state_.get();
  const experts::LoadLabel label(*state_->comm, made);
  experts::Mistake mistake = experts::find_mistake(*state_, made);
  experts::CallHeader header{.kind = experts::CallKind::gather_list};
  if (mistake.text.empty()) {
    experts::expect(mistake, "in", in.size(), made->tokens, row_bytes);
    header.routing = made->number;
  }
  header.parts = 1;
  header.part_bytes[0] = row_bytes;
  header.named[0] = in.size();
  if (!in.empty()) {
    header.names[0] = state_->comm->place_of(in.data(), in.size());
  }
  if (mistake.text.empty() && !state_->hosts.single()) {
    mistake.text = "the ranks do not share memory\ncall dispatch, which copies the rows";
  }
  if (mistake.text.empty() && !in.empty() && state_->comm->size() > 1 &&
      header.names[0].region == 0) {
    mistake.text =
        "`in` is not registered memory\nuse Communicator::allocate or register_buffer, or call "
        "dispatch, which copies the rows";
  }
  const std::vector<experts::CallHeader> headers = experts::open(*state_->comm, header, mistake);
  const auto found = experts::find_published(*state_, headers, 0, in.data());
  std::vector<const std::byte*> rows(routing.rows(), nullptr);
  for (const experts::Arrival& arrival : made->places.arrivals) {
    rows[static_cast<std::size_t>(arrival.row)] =
        found[static_cast<std::size_t>(arrival.source)] +
        static_cast<std::size_t>(arrival.token) * row_bytes;
  }
  return rows;
}

void ExpertExchange::end_gather() {
  experts::open(*state_->comm, {.kind = experts::CallKind::end_gather}, {});
}

}  // namespace unisono
