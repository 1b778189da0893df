#include "network_model/simulator/fair_share.h"

#include <algorithm>
#include <utility>

#include "base/as_size.h"

namespace unisono::network_model {
namespace {

// Levels within this factor are equal, because sums of rates are rounded.
constexpr double kEqual = 1 + 1e-12;

}  // namespace

// Marks a link, so that the pass examines it.
void FairShare::touch(int link) {
  PassOfLink& pass = passes_[as_size(link)];
  if (!pass.touched) {
    pass.touched = true;
    pass.last = pass_;
    touched_.push_back(link);
  }
}

// Marks the links that can limit the flow, and the links that may get a turn.
void FairShare::touch_links(int flow) {
  const Way& way = ways_[as_size(flow)];
  for (const int link : way.links) {
    if (link == way.narrowest || links_[as_size(link)].is_oversubscribed() ||
        passes_[as_size(link)].last == pass_) {
      touch(link);
    }
  }
}

void FairShare::change(int flow, State state) {
  Flow& found = flows_[as_size(flow)];
  if (found.state == State::kept) {
    ways_[as_size(flow)].old_rate = found.is_new ? -1 : found.rate;
    found.is_new = false;
    changed_.push_back(flow);
  }
  found.state = state;
  touch_links(flow);
}

void FairShare::find_narrowest(Way& way) const {
  way.alone = kNever;
  for (std::size_t i = 0; i < way.links.size(); ++i) {
    const double alone = links_[as_size(way.links[i])].capacity / way.share(i);
    if (alone < way.alone) {
      way.alone = alone;
      way.narrowest = way.links[i];
    }
  }
}

void FairShare::begin(int flow, std::span<const int> links, std::span<const double> shares,
                      double now_us) {
  if (flows_.size() <= as_size(flow)) {
    flows_.resize(as_size(flow) + 1);
    ways_.resize(as_size(flow) + 1);
  }
  Way& way = ways_[as_size(flow)];
  way = {.links = links, .shares = shares};
  find_narrowest(way);
  bool meets_oversubscribed = false;
  for (std::size_t i = 0; i < links.size(); ++i) {
    SharedLink& state = links_[as_size(links[i])];
    const double share = way.share(i);
    if (state.users++ == 0) {
      state.first_flow = flow;
      state.first_share = share;
      state.since_us = now_us;
    } else {
      others_[as_size(links[i])].push_back({.flow = flow, .share = share});
    }
    state.load += way.alone * share;
    meets_oversubscribed = meets_oversubscribed || state.is_oversubscribed();
  }
  flows_[as_size(flow)] = {.rate = way.alone, .bottleneck = way.narrowest, .is_new = true};
  if (meets_oversubscribed) {
    change(flow, State::open);
  } else {
    links_[as_size(way.narrowest)].level = way.alone;
    new_.push_back(flow);
  }
}

void FairShare::leave(int link, int flow, double now_us) {
  SharedLink& state = links_[as_size(link)];
  if (--state.users == 0) {
    state.load = 0;  // discards rounding errors
    state.level = kNever;
    state.busy_us += now_us - state.since_us;
    return;
  }
  std::vector<User>& others = others_[as_size(link)];
  if (state.first_flow == flow) {
    state.first_flow = others.back().flow;
    state.first_share = others.back().share;
  } else {
    *std::find_if(others.begin(), others.end(),
                  [flow](const User& user) { return user.flow == flow; }) = others.back();
  }
  others.pop_back();
}

void FairShare::end(int flow, double now_us, double bytes) {
  const Way& way = ways_[as_size(flow)];
  Flow& found = flows_[as_size(flow)];
  for (std::size_t i = 0; i < way.links.size(); ++i) {
    SharedLink& state = links_[as_size(way.links[i])];
    if (state.is_oversubscribed()) {
      touch(way.links[i]);
    }
    const double share = way.share(i);
    state.load -= way.alone * share;
    state.bytes += bytes * share;
    leave(way.links[i], flow, now_us);
  }
  if (found.state != State::kept) {  // began and ended without ever having a rate
    changed_.erase(std::find(changed_.begin(), changed_.end(), flow));
    found.state = State::kept;
  } else if (found.is_new) {
    new_.erase(std::find(new_.begin(), new_.end(), flow));
  }
  found.is_new = false;
}

void FairShare::pass_by(int link, double bytes, double busy_us) {
  links_[as_size(link)].bytes += bytes;
  links_[as_size(link)].busy_us += busy_us;
}

LinkUse FairShare::use(int link) const {
  return {.bytes = links_[as_size(link)].bytes, .busy_us = links_[as_size(link)].busy_us};
}

const std::vector<int>& FairShare::settle() {
  settled_.clear();
  level_ = 0;
  while (queue_touched()) {
    raise();
  }
  for (const int flow : changed_) {
    Flow& found = flows_[as_size(flow)];
    const double before = ways_[as_size(flow)].old_rate;
    found.state = State::kept;
    if (found.rate > before * kEqual || found.rate * kEqual < before) {
      settled_.push_back(flow);
    } else {
      found.rate = before;
    }
  }
  changed_.clear();
  for (const int flow : new_) {
    if (std::exchange(flows_[as_size(flow)].is_new, false)) {
      settled_.push_back(flow);
    }
  }
  new_.clear();
  ++pass_;
  return settled_;
}

// Returns the level at which the flows of a link fill it: flows limited by other links have at most
// their rates there, and all other flows have the level. Uses Newton's method from below. It never
// overshoots, because the total rate is concave in the level, and it terminates, because the total
// is piecewise linear.
double FairShare::level_when_full(int link) const {
  const SharedLink& state = links_[as_size(link)];
  double level = kNever;  // upper limit on any correct level; kNever: not searched yet
  while (true) {
    double left = state.capacity;
    double open = 0;
    double most_held = 0;
    double least_free = kNever;
    for_each_user(link, [&](const User& user) {
      const Flow& flow = flows_[as_size(user.flow)];
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
    });
    if (level == kNever) {
      // Assumes that all flows held back elsewhere have their rates: the resulting level is too
      // low, or there is none.
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

// Queues the links that were touched; returns false if no link has a turn.
bool FairShare::queue_touched() {
  for (const int link : touched_) {
    PassOfLink& pass = passes_[as_size(link)];
    pass.touched = false;
    pass.full_at = level_when_full(link);
    ++pass.version;
    const double was_full_at = pass.filled == pass_ ? kNever : links_[as_size(link)].level;
    const double turn = std::max(level_, std::min(pass.full_at, was_full_at));
    if (turn < kNever) {
      queue_.push_back({.level = turn, .link = link, .version = pass.version});
      std::push_heap(queue_.begin(), queue_.end());
    }
  }
  touched_.clear();
  while (!queue_.empty() &&
         queue_.front().version != passes_[as_size(queue_.front().link)].version) {
    std::pop_heap(queue_.begin(), queue_.end());
    queue_.pop_back();
  }
  return !queue_.empty();
}

// Advances to the next level, and to all links at this level.
void FairShare::raise() {
  level_ = queue_.front().level;
  while (!queue_.empty() && queue_.front().level <= level_ * kEqual) {
    const Turn turn = queue_.front();
    std::pop_heap(queue_.begin(), queue_.end());
    queue_.pop_back();
    const PassOfLink& pass = passes_[as_size(turn.link)];
    if (turn.version != pass.version) {
      continue;
    }
    if (pass.full_at <= level_ * kEqual) {
      fill(turn.link);
    } else {
      release(turn.link);
    }
  }
}

// The link is full at this level: its flows get no more than this.
void FairShare::fill(int link) {
  links_[as_size(link)].level = level_;
  passes_[as_size(link)].filled = pass_;
  for_each_user(link, [this, link](const User& user) {
    Flow& flow = flows_[as_size(user.flow)];
    if (flow.state == State::fixed) {
      return;
    }
    const bool has_too_much = flow.rate > level_ * kEqual;
    const bool has_too_little = flow.bottleneck == link && flow.rate * kEqual < level_;
    if (flow.state == State::open || has_too_much || has_too_little) {
      change(user.flow, State::fixed);
      flow.rate = level_;
      flow.bottleneck = link;
    }
  });
}

// The link was full at this level, and no longer is: its flows may get more, and its next turn
// comes when it is full again.
void FairShare::release(int link) {
  links_[as_size(link)].level = kNever;
  touch(link);
  for_each_user(link, [this, link](const User& user) {
    const Flow& flow = flows_[as_size(user.flow)];
    if (flow.state == State::kept && flow.bottleneck == link) {
      change(user.flow, State::open);
    }
  });
}

}  // namespace unisono::network_model
