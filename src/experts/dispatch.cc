// Dispatch: each row to the places that the routing gives it.
#include "experts/dispatch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "experts/rows.h"
#include "kernels/kernels.h"

namespace unisono {
namespace experts {
namespace {

// Outputs beyond a usual second-level cache are written past it.
constexpr std::size_t kStreamingBytes = std::size_t{4} << 20;

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

// The number of a row in `in`.
std::size_t source_row(const Payload& payload, std::int64_t token, int slot, int k) {
  return payload.one_a_slot ? at(token * k + slot) : at(token);
}

void fill_padding(const detail::RoutingState& routing, const Payload& payload) {
  if (routing.layout != ExpertLayout::expert_major) {
    return;
  }
  const Places& places = routing.places;
  for (std::size_t local = 0; local < places.first_row.size(); ++local) {
    const std::int64_t begin = places.first_row[local] + places.rows_of[local];
    const std::int64_t end =
        local + 1 < places.first_row.size() ? places.first_row[local + 1] : places.rows;
    if (begin != end) {
      std::memset(payload.out.data() + at(begin) * payload.row_bytes, 0,
                  at(end - begin) * payload.row_bytes);
    }
  }
}

// Writes the rows that came from one rank. `row_at(arrival)` says where each is now.
template <typename RowAt>
void place_rows(const detail::RoutingState& routing, std::size_t source, const Payload& payload,
                const RowAt& row_at) {
  const kernels::Store store =
      payload.out.size() >= kStreamingBytes ? kernels::Store::streaming : kernels::Store::cached;
  const Places& places = routing.places;
  for (std::size_t i = places.first_arrival[source]; i < places.first_arrival[source + 1]; ++i) {
    const Arrival& arrival = places.arrivals[i];
    kernels::copy(payload.out.data() + at(arrival.row) * payload.row_bytes, row_at(arrival),
                  payload.row_bytes, store);
  }
}

// Tokens that stay in a cache, or go to about one place each, are best written in the order of the
// rows: one stream of stores. Others are read from memory once, and written to all their places
// then.
constexpr std::size_t kCachedTokens = std::size_t{4} << 20;

void read_from_memory(const detail::ExchangeState& state, const detail::RoutingState& routing,
                      const Payload& payload, const std::vector<const std::byte*>& found,
                      std::size_t bytes_of_all) {
  const std::size_t bytes_here = routing.places.arrivals.size() * payload.row_bytes;
  const bool seldom_twice = bytes_here < bytes_of_all + bytes_of_all / 2;
  if (bytes_of_all <= kCachedTokens || seldom_twice) {
    const kernels::Store store =
        payload.out.size() >= kStreamingBytes ? kernels::Store::streaming : kernels::Store::cached;
    for (std::size_t row = 0; row < routing.places.sources.size(); ++row) {
      const RowSource& source = routing.places.sources[row];
      if (source.rank >= 0) {
        kernels::copy(
            payload.out.data() + row * payload.row_bytes,
            found[at(source.rank)] +
                source_row(payload, source.token, source.slot, routing.k) * payload.row_bytes,
            payload.row_bytes, store);
      }
    }
    return;
  }
  // Ranks begin with their own rows, so that not all read the same rank's at once.
  const std::size_t ranks = found.size();
  for (std::size_t i = 0; i < ranks; ++i) {
    const std::size_t source = (at(state.comm->rank()) + i) % ranks;
    place_rows(routing, source, payload, [&](const Arrival& arrival) {
      return found[source] +
             source_row(payload, arrival.token, arrival.slot, routing.k) * payload.row_bytes;
    });
  }
}

// By rank, the rows to send there: each token once, or each of its places that is there.
std::vector<std::vector<const std::byte*>> rows_to_send(const detail::ExchangeState& state,
                                                        const detail::RoutingState& routing,
                                                        const Payload& payload) {
  std::vector<std::vector<const std::byte*>> rows(at(state.comm->size()));
  std::vector<std::int64_t> latest(rows.size(), -1);
  for (std::size_t i = 0; i < routing.places.places.size(); ++i) {
    const int rank = routing.places.places[i].rank;
    const auto token = static_cast<std::int64_t>(i / at(routing.k));
    if (rank < 0 || rank == state.comm->rank() ||
        (!payload.one_a_slot && latest[at(rank)] == token)) {
      continue;
    }
    latest[at(rank)] = token;
    const std::size_t row = payload.one_a_slot ? i : at(token);
    rows[at(rank)].push_back(payload.in.data() + row * payload.row_bytes);
  }
  return rows;
}

std::vector<std::size_t> rows_that_come(const detail::ExchangeState& state,
                                        const detail::RoutingState& routing,
                                        const Payload& payload) {
  const Places& places = routing.places;
  std::vector<std::size_t> rows(places.first_arrival.size() - 1, 0);
  std::int64_t latest = -1;
  for (std::size_t source = 0; source < rows.size(); ++source, latest = -1) {
    if (static_cast<int>(source) == state.comm->rank()) {
      continue;
    }
    for (std::size_t i = places.first_arrival[source]; i < places.first_arrival[source + 1]; ++i) {
      rows[source] += payload.one_a_slot || places.arrivals[i].token != latest ? 1 : 0;
      latest = places.arrivals[i].token;
    }
  }
  return rows;
}

void send_and_receive(detail::ExchangeState& state, const detail::RoutingState& routing,
                      const Payload& payload) {
  const auto came = exchange_rows(state, rows_to_send(state, routing, payload),
                                  rows_that_come(state, routing, payload), payload.row_bytes);
  for (std::size_t source = 0; source < came.size(); ++source) {
    if (static_cast<int>(source) == state.comm->rank()) {
      place_rows(routing, source, payload, [&](const Arrival& arrival) {
        return payload.in.data() +
               source_row(payload, arrival.token, arrival.slot, routing.k) * payload.row_bytes;
      });
      continue;
    }
    std::int64_t latest = -1;
    const std::byte* next = came[source];
    const std::byte* row = next;
    place_rows(routing, source, payload, [&](const Arrival& arrival) {
      if (payload.one_a_slot || arrival.token != latest) {
        row = next;
        next += payload.row_bytes;
        latest = arrival.token;
      }
      return row;
    });
  }
}

Mistake check(const detail::RoutingState& routing, std::span<const Payload> payloads) {
  Mistake mistake;
  if (payloads.empty() || payloads.size() > kMaxPayloads) {
    return {.text = "it has " + std::to_string(payloads.size()) + " payloads\ngive 1 to " +
                    std::to_string(kMaxPayloads)};
  }
  for (const Payload& payload : payloads) {
    if (payload.one_a_slot && routing.layout == ExpertLayout::rank_major) {
      return {.text =
                  "a row of rank_major stands for several places, and cannot have one "
                  "element a slot\nsend all k of them with the token"};
    }
    const std::size_t each = payload.one_a_slot ? at(routing.k) : 1;
    expect(mistake, "in", payload.in.size(), routing.tokens * each, payload.row_bytes);
    expect(mistake, "out", payload.out.size(), at(routing.places.rows), payload.row_bytes);
  }
  return mistake;
}

}  // namespace

Mistake find_mistake(const detail::ExchangeState& state, const detail::RoutingState* routing) {
  if (routing == nullptr) {
    return {.text = "the routing is empty\nit was moved from"};
  }
  if (routing->exchange != state.identity) {
    return {.text =
                "the routing was made by another exchange\nuse it with the exchange whose "
                "route() gave it"};
  }
  return {};
}

void expect(Mistake& mistake, const char* what, std::size_t have, std::size_t rows,
            std::size_t row_bytes) {
  if (mistake.text.empty() && have != rows * row_bytes) {
    mistake.text = std::string("`") + what + "` has " + std::to_string(have) + " bytes, not the " +
                   std::to_string(rows * row_bytes) + " of " + std::to_string(rows) + " rows of " +
                   std::to_string(row_bytes) + "\ngive what the routing was made for";
  }
}

void dispatch(detail::ExchangeState& state, const detail::RoutingState* routing,
              std::span<const Payload> payloads, std::uint32_t details, Mistake mistake) {
  if (mistake.text.empty()) {
    mistake = find_mistake(state, routing);
  }
  if (mistake.text.empty()) {
    mistake = check(*routing, payloads);
  }
  Opening opening{.kind = CallKind::dispatch, .details = details};
  if (mistake.text.empty()) {
    opening.routing = routing->number;
    opening.parts = static_cast<std::uint32_t>(payloads.size());
    for (std::size_t part = 0; part < payloads.size(); ++part) {
      const Payload& payload = payloads[part];
      opening.part_bytes[part] = payload.row_bytes;
      opening.named[part] = payload.in.size();
      opening.names[part] = publish(state, part, payload.in, mistake);
    }
  }
  const std::vector<Opening> openings = open(*state.comm, opening, mistake);
  const bool in_memory = state.one_host;
  for (std::size_t part = 0; part < payloads.size(); ++part) {
    const Payload& payload = payloads[part];
    if (in_memory) {
      std::size_t bytes_of_all = 0;
      for (const Opening& each : openings) {
        bytes_of_all += each.named[part];
      }
      read_from_memory(state, *routing, payload,
                       find_published(state, openings, part, payload.in.data()), bytes_of_all);
    } else {
      send_and_receive(state, *routing, payload);
    }
    fill_padding(*routing, payload);
  }
  kernels::fence_streaming();
  if (in_memory) {
    state.comm->barrier();  // from now on tokens may change
  }
}

}  // namespace experts

void Exchange::dispatch(const Routing& routing, std::span<const Payload> payloads) {
  experts::dispatch(*state_, routing.state_.get(), payloads, 0, {});
}

std::vector<const std::byte*> Exchange::gather_list(const Routing& routing,
                                                    std::span<const std::byte> in,
                                                    std::size_t row_bytes) {
  const detail::RoutingState* made = routing.state_.get();
  experts::Mistake mistake = experts::find_mistake(*state_, made);
  experts::Opening opening{.kind = experts::CallKind::gather_list};
  if (mistake.text.empty()) {
    experts::expect(mistake, "in", in.size(), made->tokens, row_bytes);
    opening.routing = made->number;
  }
  opening.parts = 1;
  opening.part_bytes[0] = row_bytes;
  opening.named[0] = in.size();
  if (!in.empty()) {
    opening.names[0] = state_->comm->place_of(in.data(), in.size());
  }
  if (mistake.text.empty() && !state_->one_host) {
    mistake.text = "the ranks do not share memory\ndispatch copies the rows";
  }
  if (mistake.text.empty() && !in.empty() && state_->comm->size() > 1 &&
      opening.names[0].region == 0) {
    mistake.text =
        "`in` is not registered memory\nuse Communicator::allocate or register_buffer, "
        "or dispatch, which copies the rows";
  }
  const std::vector<experts::Opening> openings = experts::open(*state_->comm, opening, mistake);
  const auto found = experts::find_published(*state_, openings, 0, in.data());
  std::vector<const std::byte*> rows(routing.rows(), nullptr);
  for (const experts::Arrival& arrival : made->places.arrivals) {
    rows[static_cast<std::size_t>(arrival.row)] =
        found[static_cast<std::size_t>(arrival.source)] +
        static_cast<std::size_t>(arrival.token) * row_bytes;
  }
  return rows;
}

void Exchange::end_gather() {
  experts::open(*state_->comm, {.kind = experts::CallKind::end_gather}, {});
}

}  // namespace unisono
