#include "model/simulator/fair_share.h"

#include <algorithm>

namespace unisono::model {
namespace {

// Levels this near are the same: sums of rates are rounded.
constexpr double kEqual = 1 + 1e-12;

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

// Its links are looked at again.
void FairShare::touch(int flow) {
  for (const int link : ways_[at(flow)].links) {
    LinkState& state = links_[at(link)];
    if (!state.touched) {
      state.touched = true;
      touched_.push_back(link);
    }
  }
}

void FairShare::change(int flow, State state) {
  if (flows_[at(flow)].state == State::kept) {
    ways_[at(flow)].old_rate = flows_[at(flow)].rate;
    changed_.push_back(flow);
  }
  flows_[at(flow)].state = state;
  touch(flow);
}

void FairShare::add(int flow, std::span<const int> links, std::span<const double> shares) {
  if (flows_.size() <= at(flow)) {
    flows_.resize(at(flow) + 1);
    ways_.resize(at(flow) + 1);
  }
  flows_[at(flow)] = {.rate = -1};
  ways_[at(flow)] = {.links = links};
  for (std::size_t i = 0; i < links.size(); ++i) {
    links_[at(links[i])].users.push_back({.flow = flow, .share = shares.empty() ? 1 : shares[i]});
  }
  change(flow, State::open);
}

void FairShare::remove(int flow) {
  for (const int link : ways_[at(flow)].links) {
    std::vector<User>& users = links_[at(link)].users;
    *std::find_if(users.begin(), users.end(),
                  [flow](const User& user) { return user.flow == flow; }) = users.back();
    users.pop_back();
  }
  touch(flow);
  if (flows_[at(flow)].state != State::kept) {  // it came and went without a rate
    changed_.erase(std::find(changed_.begin(), changed_.end(), flow));
    flows_[at(flow)].state = State::kept;
  }
}

const std::vector<int>& FairShare::settle() {
  settled_.clear();
  level_ = 0;
  while (queue_touched()) {
    raise();
  }
  for (const int flow : changed_) {
    Flow& found = flows_[at(flow)];
    const double before = ways_[at(flow)].old_rate;
    found.state = State::kept;
    if (found.rate > before * kEqual || found.rate * kEqual < before) {
      settled_.push_back(flow);
    } else {
      found.rate = before;
    }
  }
  changed_.clear();
  ++pass_;
  return settled_;
}

// The level at which the flows of a link fill it: those that other links hold back have their rates
// there at most, all others have the level. Newton's method from below, which never goes too far,
// since what flows at a level is concave in it, and ends, since it consists of straight pieces.
double FairShare::level_when_full(int link) const {
  const LinkState& state = links_[at(link)];
  double level = kNever;  // no more than this can be right of what was found with it
  while (true) {
    double left = state.capacity;
    double open = 0;
    double most_held = 0;
    double least_free = kNever;
    for (const User& user : state.users) {
      const Flow& flow = flows_[at(user.flow)];
      const bool is_held =
          flow.state == State::fixed || (flow.state == State::kept && flow.bottleneck != link);
      if (!is_held) {
        open += user.share;
      } else if (flow.state == State::fixed || flow.rate <= level) {
        left -= user.share * flow.rate;
        most_held = flow.state == State::fixed ? most_held : std::max(most_held, flow.rate);
      } else {
        open += user.share;
        least_free = std::min(least_free, flow.rate);
      }
    }
    if (level == kNever) {
      // All that others hold back were taken to have their rates: a level that is too low, or none.
      const bool has_room = left >= state.capacity * (1 - kEqual);
      const double found = open > 0 ? std::max(level_, left / open) : level_;
      if (open > 0 ? most_held <= found : has_room) {
        return open > 0 ? found : kNever;
      }
      level = found;
      continue;
    }
    const double found = open > 0 ? std::max(level, left / open) : kNever;
    if (found <= least_free) {
      return found;
    }
    level = found;
  }
}

// Gives the links that were touched their turns; false: no link has one.
bool FairShare::queue_touched() {
  for (const int link : touched_) {
    LinkState& state = links_[at(link)];
    state.touched = false;
    state.full_at = level_when_full(link);
    ++state.version;
    const double was_full_at = state.filled == pass_ ? kNever : state.level;
    const double turn = std::max(level_, std::min(state.full_at, was_full_at));
    if (turn < kNever) {
      queue_.push_back({.level = turn, .link = link, .version = state.version});
      std::push_heap(queue_.begin(), queue_.end());
    }
  }
  touched_.clear();
  while (!queue_.empty() && queue_.front().version != links_[at(queue_.front().link)].version) {
    std::pop_heap(queue_.begin(), queue_.end());
    queue_.pop_back();
  }
  return !queue_.empty();
}

// Goes on to the next level, and to all links there.
void FairShare::raise() {
  level_ = queue_.front().level;
  while (!queue_.empty() && queue_.front().level <= level_ * kEqual) {
    const Turn turn = queue_.front();
    std::pop_heap(queue_.begin(), queue_.end());
    queue_.pop_back();
    LinkState& state = links_[at(turn.link)];
    if (turn.version != state.version) {
      continue;
    }
    if (state.full_at <= level_ * kEqual) {
      fill(turn.link);
    } else {
      release(turn.link);
    }
  }
}

// The link is full at this level: none of its flows has more.
void FairShare::fill(int link) {
  links_[at(link)].level = level_;
  links_[at(link)].filled = pass_;
  for (const User& user : links_[at(link)].users) {
    Flow& flow = flows_[at(user.flow)];
    if (flow.state == State::fixed) {
      continue;
    }
    const bool has_too_much = flow.rate > level_ * kEqual;
    const bool has_too_little = flow.bottleneck == link && flow.rate * kEqual < level_;
    if (flow.state == State::open || has_too_much || has_too_little) {
      change(user.flow, State::fixed);
      flow.rate = level_;
      flow.bottleneck = link;
    }
  }
}

// The link was full at this level, and no longer is: its flows may have more, and it has its next
// turn when it is full again.
void FairShare::release(int link) {
  LinkState& state = links_[at(link)];
  state.level = kNever;
  if (!state.touched) {
    state.touched = true;
    touched_.push_back(link);
  }
  for (const User& user : state.users) {
    const Flow& flow = flows_[at(user.flow)];
    if (flow.state == State::kept && flow.bottleneck == link) {
      change(user.flow, State::open);
    }
  }
}

}  // namespace unisono::model
