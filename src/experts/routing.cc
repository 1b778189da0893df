// Accessors of a routing.
#include "experts/state.h"

namespace unisono {
namespace {

const experts::Places& places_of(const std::unique_ptr<detail::RoutingState>& state) {
  if (state == nullptr) {
    throw Error(ErrorCode::usage, "this routing is empty\nit was moved from");
  }
  return state->places;
}

const experts::Places& expert_major_places_of(const std::unique_ptr<detail::RoutingState>& state) {
  const experts::Places& places = places_of(state);
  if (state->layout != ExpertLayout::expert_major) {
    throw Error(ErrorCode::usage,
                "routing: only the layout expert_major keeps an expert's rows together\ncall "
                "experts() for the expert of each row");
  }
  return places;
}

std::size_t row_number(const std::vector<std::int64_t>& rows, int local) {
  if (local < 0 || static_cast<std::size_t>(local) >= rows.size()) {
    throw Error(ErrorCode::usage,
                "routing: this rank has no expert " + std::to_string(local) +
                    "\nexperts are numbered from 0 on each rank: see experts_here()");
  }
  return static_cast<std::size_t>(rows[static_cast<std::size_t>(local)]);
}

}  // namespace

Routing::Routing(std::unique_ptr<detail::RoutingState> state) : state_(std::move(state)) {}
Routing::Routing(Routing&&) noexcept = default;
Routing& Routing::operator=(Routing&&) noexcept = default;
Routing::~Routing() = default;

std::size_t Routing::tokens() const {
  places_of(state_);
  return state_->tokens;
}
std::size_t Routing::rows() const {
  return static_cast<std::size_t>(places_of(state_).rows);
}
std::size_t Routing::first_row(int local) const {
  return row_number(expert_major_places_of(state_).first_row, local);
}
std::size_t Routing::rows_of(int local) const {
  return row_number(expert_major_places_of(state_).rows_of, local);
}
std::span<const int> Routing::experts_here() const {
  places_of(state_);
  return state_->experts_here;
}
std::span<const RowSource> Routing::sources() const {
  return places_of(state_).sources;
}
std::span<const int> Routing::experts() const {
  return places_of(state_).experts;
}
std::span<const std::int64_t> Routing::chosen() const {
  return places_of(state_).chosen;
}
std::int64_t Routing::dropped() const {
  return places_of(state_).dropped;
}
std::span<const std::int64_t> Routing::rows_of_ranks() const {
  return places_of(state_).rows_of_ranks;
}

}  // namespace unisono
