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

// Outputs larger than a typical second-level cache are written past it.
constexpr std::size_t kStreamingBytes = std::size_t{4} << 20;

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

// Returns the number of a row in `in`.
std::size_t source_row(const Travel& travel, std::int64_t token, int slot, int k) {
  return travel.form.one_a_slot ? at(token * k + slot) : at(token);
}

void fill_padding(const detail::RoutingState& routing, const Travel& travel) {
  if (routing.layout != ExpertLayout::expert_major) {
    return;
  }
  const Places& places = routing.places;
  for (std::size_t local = 0; local < places.first_row.size(); ++local) {
    const std::int64_t begin = places.first_row[local] + places.rows_of[local];
    const std::int64_t end =
        local + 1 < places.first_row.size() ? places.first_row[local + 1] : places.rows;
    if (begin != end) {
      std::memset(travel.out.data() + at(begin) * travel.out_row_bytes, 0,
                  at(end - begin) * travel.out_row_bytes);
    }
  }
}

// Writes the rows from one rank. `row_at(arrival)` returns the address of each.
template <typename RowAt>
void place_rows(const detail::RoutingState& routing, std::size_t source, const Travel& travel,
                const RowAt& row_at) {
  const kernels::Store store =
      travel.out.size() >= kStreamingBytes ? kernels::Store::streaming : kernels::Store::cached;
  const Places& places = routing.places;
  std::vector<std::byte> decoded(travel.is_coded() ? travel.out_row_bytes : 0);  // that at `latest`
  const std::byte* latest = nullptr;
  std::vector<void*> targets;
  const std::size_t end = places.first_arrival[source + 1];
  for (std::size_t i = places.first_arrival[source]; i < end; ++i) {
    const Arrival& arrival = places.arrivals[i];
    const std::byte* from = row_at(arrival);
    if (travel.is_rounded) {  // once, however many experts of this rank get it
      targets.push_back(travel.out.data() + at(arrival.row) * travel.out_row_bytes);
      if (i + 1 == end || row_at(places.arrivals[i + 1]) != from) {
        travel.functions.round(targets.data(), static_cast<int>(targets.size()), from, travel.count,
                               store);
        targets.clear();
      }
      continue;
    }
    if (!travel.is_coded()) {
      travel.write(at(arrival.row), from, store);
      continue;
    }
    if (from != latest) {  // decoded once, too
      travel.functions.decode(decoded.data(), from, travel.count, kernels::Store::cached);
      latest = from;
    }
    kernels::copy(travel.out.data() + at(arrival.row) * travel.out_row_bytes, decoded.data(),
                  travel.out_row_bytes, store);
  }
}

// Tokens that stay in a cache, or go to about one place each, are best written in the order of the
// rows: one stream of stores. Other tokens are read from memory once and written to all their
// places.
constexpr std::size_t kCachedTokens = std::size_t{4} << 20;

void read_from_memory(const detail::ExchangeState& state, const detail::RoutingState& routing,
                      const Travel& travel, const std::vector<const std::byte*>& found,
                      std::size_t bytes_of_all) {
  const std::size_t bytes_here = routing.places.arrivals.size() * travel.row_bytes;
  const bool seldom_twice = bytes_here < bytes_of_all + bytes_of_all / 2;
  const bool is_coded = travel.form.coding != RowCoding::none;
  if (seldom_twice || (bytes_of_all <= kCachedTokens && !is_coded)) {
    const kernels::Store store =
        travel.out.size() >= kStreamingBytes ? kernels::Store::streaming : kernels::Store::cached;
    for (std::size_t row = 0; row < routing.places.sources.size(); ++row) {
      const RowSource& source = routing.places.sources[row];
      if (source.rank >= 0) {
        const std::size_t number = source_row(travel, source.token, source.slot, routing.k);
        travel.write(row, found[at(source.rank)] + number * travel.row_bytes, store);
      }
    }
    return;
  }
  // Each rank begins with its own rows, so that not all read from the same rank at once.
  const std::size_t ranks = found.size();
  for (std::size_t i = 0; i < ranks; ++i) {
    const std::size_t source = (at(state.comm->rank()) + i) % ranks;
    place_rows(routing, source, travel, [&](const Arrival& arrival) {
      return found[source] +
             source_row(travel, arrival.token, arrival.slot, routing.k) * travel.row_bytes;
    });
  }
}

// Reads from the ranks on this host directly, and from other hosts' ranks through the relays.
void read_from_hosts(const detail::ExchangeState& state, const detail::RoutingState& routing,
                     const Travel& travel, const std::vector<const std::byte*>& found,
                     const std::vector<const std::byte*>& relayed) {
  for (std::size_t source = 0; source < found.size(); ++source) {
    const bool is_here = state.hosts.is_here(static_cast<int>(source));
    place_rows(routing, source, travel, [&](const Arrival& arrival) {
      if (is_here) {
        return found[source] +
               source_row(travel, arrival.token, arrival.slot, routing.k) * travel.row_bytes;
      }
      const Crossing& crossing = arrival.crossing;
      return relayed[source] +
             std::size_t{travel.form.one_a_slot ? crossing.choice : crossing.token} *
                 travel.row_bytes;
    });
  }
}

// Outputs are written while peers and this rank still read inputs.
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
                  "a row of rank_major stands for several places, and cannot have one "
                  "element a slot\nsend all k of them with the token"};
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

Mistake find_started(const detail::ExchangeState& state) {
  if (state.started == nullptr) {
    return {};
  }
  return {.text = std::string(to_text(state.started->kind)) +
                  " has been started, and not finished\nfinish it on all ranks first"};
}

Mistake find_mistake(const detail::ExchangeState& state, const detail::RoutingState* routing) {
  if (Mistake mistake = find_started(state); !mistake.text.empty()) {
    return mistake;
  }
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

std::size_t bytes_of(std::size_t rows, std::size_t row_bytes) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  return row_bytes != 0 && rows > kMost / row_bytes ? kMost : rows * row_bytes;
}

void expect_apart(Mistake& mistake, const char* what, std::span<const std::byte> written,
                  const char* other, std::span<const std::byte> used) {
  const std::less<const std::byte*> before;  // compares pointers into different arrays
  const bool overlap = !written.empty() && !used.empty() &&
                       before(written.data(), used.data() + used.size()) &&
                       before(used.data(), written.data() + written.size());
  if (mistake.text.empty() && overlap) {
    mistake.text = std::string("`") + what + "` overlaps `" + other +
                   "`, which is read while it is written\ngive memory of its own";
  }
}

void expect(Mistake& mistake, const char* what, std::size_t have, std::size_t rows,
            std::size_t row_bytes) {
  const std::size_t wanted = bytes_of(rows, row_bytes);
  if (mistake.text.empty() && have != wanted) {
    mistake.text = std::string("`") + what + "` has " + std::to_string(have) + " bytes, not the " +
                   std::to_string(wanted) + " of " + std::to_string(rows) + " rows of " +
                   std::to_string(row_bytes) + "\ngive what the routing was made for";
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

namespace {

void open_or_start(detail::ExchangeState& state, detail::StartedCall& call, const Opening& opening,
                   const Mistake& mistake, bool in_halves) {
  if (in_halves && state.hosts.single()) {
    call.opening = std::make_unique<SplitOpening>();
    call.opening->start(*state.comm, opening, mistake);
  } else {
    call.openings = open(*state.comm, opening, mistake);
  }
}

}  // namespace

std::unique_ptr<detail::StartedCall> start_call(detail::ExchangeState& state,
                                                const detail::RoutingState* routing,
                                                std::vector<Travel> travels, Opening opening,
                                                Mistake mistake, CallForm form) {
  auto call = std::make_unique<detail::StartedCall>();
  call->kind = opening.kind;
  call->routing = routing;
  opening.form = form.bits();
  if (mistake.text.empty()) {
    opening.routing = routing->number;
    opening.parts = static_cast<std::uint32_t>(travels.size());
    for (std::size_t part = 0; part < travels.size(); ++part) {
      opening.part_bytes[part] = travels[part].row_bytes;
      opening.part_forms[part] = travels[part].form.bits();
      opening.named[part] = travels[part].in.size();
      opening.names[part] = publish(state, part, travels[part].in, mistake);
    }
  }
  call->travels = std::move(travels);
  call->in_halves = form.in_halves;
  open_or_start(state, *call, opening, mistake, form.in_halves);
  return call;
}

void finish_opening(detail::ExchangeState& state, detail::StartedCall& call) {
  if (call.opening != nullptr) {
    call.openings = call.opening->finish(*state.comm);
  }
}

std::uint64_t fingerprint(const detail::StartedCall& call) {
  Hash hash;
  for (const Travel& travel : call.travels) {
    hash.add(travel.is_coded() ? 0 : fingerprint(travel.in));
  }
  hash.add(fingerprint(std::as_bytes(call.combine.weights)));
  return hash.add(fingerprint(call.combine.residual)).value();
}

void expect_unchanged(detail::ExchangeState& state, const detail::StartedCall& call) {
  if (!call.in_halves) {
    return;
  }
  Mistake mistake;
  if (fingerprint(call) != call.fingerprint) {
    mistake.text = "what it was given changed between the halves\nleave it alone until finish_" +
                   std::string(call.kind == CallKind::dispatch ? "dispatch" : "combine") +
                   "() has returned";
  }
  agree(*state.comm, mistake, to_text(call.kind));
}

void end_call(detail::ExchangeState& state) {
  if (state.is_read()) {
    state.here().barrier();
  }
}

std::unique_ptr<detail::StartedCall> start_dispatch(detail::ExchangeState& state,
                                                    const detail::RoutingState* routing,
                                                    std::span<const Payload> payloads,
                                                    const DispatchForm& form, Mistake mistake) {
  if (mistake.text.empty()) {
    mistake = find_mistake(state, routing);
  }
  if (mistake.text.empty()) {
    mistake = check(*routing, payloads, form.names);
  }
  std::vector<Travel> travels;
  for (std::size_t part = 0; part < payloads.size() && mistake.text.empty(); ++part) {
    const Payload& payload = payloads[part];
    Travel& travel = travels.emplace_back(travel_of(state, part, payload.in, payload.row_bytes,
                                                    payload.coding, payload.dtype, mistake));
    travel.out = payload.out.first(at(routing->places.rows) * payload.row_bytes);
    travel.form.one_a_slot = payload.one_a_slot;
  }
  for (std::size_t part = 0; part < travels.size() && mistake.text.empty(); ++part) {
    prepare_crossing(state, *routing, part, travels[part], mistake);
  }
  auto call = start_call(state, routing, std::move(travels), {.kind = form.kind},
                         std::move(mistake), form.call);
  call->fingerprint = form.call.in_halves ? fingerprint(*call) : 0;
  for (std::size_t part = 0; part < call->travels.size(); ++part) {
    start_crossing(state, *routing, part, call->travels[part]);
  }
  return call;
}

void finish_dispatch(detail::ExchangeState& state, std::unique_ptr<detail::StartedCall> call) {
  finish_opening(state, *call);
  const auto relayed = finish_crossing(state, *call->routing, call->travels);
  expect_unchanged(state, *call);
  for (std::size_t part = 0; part < call->travels.size(); ++part) {
    const Travel& travel = call->travels[part];
    const auto found = find_published(state, call->openings, part, travel.in.data());
    if (state.hosts.single()) {
      std::size_t bytes_of_all = 0;
      for (const Opening& each : call->openings) {
        bytes_of_all += each.named[part];
      }
      read_from_memory(state, *call->routing, travel, found, bytes_of_all);
    } else {
      read_from_hosts(state, *call->routing, travel, found, relayed[part]);
    }
    fill_padding(*call->routing, travel);
  }
  kernels::fence_streaming();
  end_call(state);
}

void expect_none_started(const detail::ExchangeState& state) {
  if (const Mistake mistake = find_started(state); !mistake.text.empty()) {
    throw Error(mistake.code, "experts: " + mistake.text);
  }
}

std::unique_ptr<detail::StartedCall> take_started(detail::ExchangeState& state, CallKind kind) {
  if (state.started == nullptr || state.started->kind != kind) {
    const char* what = kind == CallKind::dispatch ? "dispatch" : "combine";
    throw Error(ErrorCode::usage, std::string("experts: finish_") + what + "() without start_" +
                                      what + "()\nstart it on all ranks first");
  }
  return std::move(state.started);
}

}  // namespace experts

void Exchange::dispatch(const Routing& routing, std::span<const Payload> payloads) {
  const experts::LoadLabel label(*state_->comm, routing.state_.get());
  experts::finish_dispatch(
      *state_, experts::start_dispatch(*state_, routing.state_.get(), payloads, {}, {}));
}

Request Exchange::dispatch_async(const Routing& routing, std::span<const Payload> payloads) {
  return experts::start_async(
      *state_, routing.state_.get(),
      [made = routing.state_.get(),
       all = std::vector<Payload>(payloads.begin(), payloads.end())](detail::ExchangeState& state) {
        experts::finish_dispatch(state, experts::start_dispatch(state, made, all, {}, {}));
      });
}

void Exchange::start_dispatch(const Routing& routing, std::span<const Payload> payloads) {
  const experts::LoadLabel label(*state_->comm, routing.state_.get());
  experts::expect_none_started(*state_);
  state_->started = experts::start_dispatch(*state_, routing.state_.get(), payloads,
                                            {.call = {.in_halves = true}}, {});
}

void Exchange::finish_dispatch() {
  std::unique_ptr<detail::StartedCall> call =
      experts::take_started(*state_, experts::CallKind::dispatch);
  const experts::LoadLabel label(*state_->comm, call->routing);
  experts::finish_dispatch(*state_, std::move(call));
}

std::vector<const std::byte*> Exchange::gather_list(const Routing& routing,
                                                    std::span<const std::byte> in,
                                                    std::size_t row_bytes) {
  const detail::RoutingState* made = routing.state_.get();
  const experts::LoadLabel label(*state_->comm, made);
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
  if (mistake.text.empty() && !state_->hosts.single()) {
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
  experts::open(*state_->comm, {.kind = experts::CallKind::end_gather},
                experts::find_started(*state_));
}

}  // namespace unisono
