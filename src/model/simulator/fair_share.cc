#include "model/simulator/fair_share.h"

#include <algorithm>
#include <limits>

namespace unisono::model {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

void FairShare::ask(int flow) {
  Flow& found = flows_[at(flow)];
  if (found.asked != settling_) {
    found.asked = settling_;
    found.old_rate = found.rate;
    asked_.push_back(flow);
  }
}

void FairShare::add(int flow, std::span<const int> links, std::span<const double> shares) {
  if (flows_.size() <= at(flow)) {
    flows_.resize(at(flow) + 1);
  }
  flows_[at(flow)] = {.links = links, .shares = shares, .rate = -1};
  for (std::size_t i = 0; i < links.size(); ++i) {
    links_[at(links[i])].users.push_back({.flow = flow, .share = flows_[at(flow)].share(i)});
  }
  ask(flow);
}

void FairShare::remove(int flow) {
  Flow& found = flows_[at(flow)];
  for (const int link : found.links) {
    std::vector<User>& users = links_[at(link)].users;
    *std::find_if(users.begin(), users.end(),
                  [flow](const User& user) { return user.flow == flow; }) = users.back();
    users.pop_back();
    changed_links_.push_back(link);
  }
  if (found.asked == settling_) {  // it came and went without a rate
    asked_.erase(std::find(asked_.begin(), asked_.end(), flow));
    found.asked = 0;
  }
}

const std::vector<int>& FairShare::settle() {
  settled_.clear();
  for (const int link : changed_links_) {
    for (const User& user : links_[at(link)].users) {
      if (flows_[at(user.flow)].bottleneck == link) {
        ask(user.flow);
      }
    }
  }
  changed_links_.clear();
  if (asked_.empty()) {
    return settled_;
  }
  do {
    meet_links();
    fill();
  } while (ask_for_more());
  for (const int flow : asked_) {
    if (flows_[at(flow)].rate != flows_[at(flow)].old_rate) {
      settled_.push_back(flow);
    }
  }
  asked_.clear();
  ++settling_;
  return settled_;
}

// What the links of the flows in question have left for them.
void FairShare::meet_links() {
  ++filling_;
  near_links_.clear();
  for (const int flow : asked_) {
    flows_[at(flow)].fixed = false;
    for (const int link : flows_[at(flow)].links) {
      LinkState& state = links_[at(link)];
      if (state.seen == filling_) {
        continue;
      }
      state.seen = filling_;
      state.left = state.capacity;
      state.open = 0;
      state.open_flows = 0;
      state.level = -1;
      for (const User& user : state.users) {
        const Flow& other = flows_[at(user.flow)];
        if (other.asked == settling_) {
          state.open += user.share;
          ++state.open_flows;
        } else {
          state.left -= user.share * other.rate;
        }
      }
      state.left = std::max(0.0, state.left);
      near_links_.push_back(link);
    }
  }
}

void FairShare::fill() {
  constexpr double kEqual = 1 + 1e-12;
  open_links_ = near_links_;
  while (true) {
    double level = std::numeric_limits<double>::infinity();
    std::size_t kept = 0;
    for (const int link : open_links_) {
      const LinkState& state = links_[at(link)];
      if (state.open_flows > 0) {
        open_links_[kept++] = link;
        level = std::min(level, state.left / state.open);
      }
    }
    open_links_.resize(kept);
    if (kept == 0) {
      return;
    }
    for (const int link : open_links_) {
      LinkState& state = links_[at(link)];
      if (state.open_flows == 0 || state.left / state.open > level * kEqual) {
        continue;
      }
      state.level = level;
      for (const User& user : state.users) {
        const Flow& flow = flows_[at(user.flow)];
        if (flow.asked == settling_ && !flow.fixed) {
          fix(user.flow, level, link);
        }
      }
    }
  }
}

void FairShare::fix(int flow, double rate, int bottleneck) {
  Flow& found = flows_[at(flow)];
  found.fixed = true;
  found.rate = rate;
  found.bottleneck = bottleneck;
  for (std::size_t i = 0; i < found.links.size(); ++i) {
    LinkState& state = links_[at(found.links[i])];
    state.left = std::max(0.0, state.left - found.share(i) * rate);
    state.open -= found.share(i);
    --state.open_flows;
  }
}

// Flows that have more than those that one of their links holds back, or less than their own
// bottleneck has for them now, have no fair rate: they are asked for as well.
bool FairShare::ask_for_more() {
  constexpr double kRounding = 1e-9;
  const std::size_t before = asked_.size();
  for (const int link : near_links_) {
    const LinkState& state = links_[at(link)];
    const bool is_full = state.level >= 0 || state.left <= state.capacity * kRounding;
    double most = 0;  // that a flow has here
    for (const User& user : state.users) {
      most = std::max(most, flows_[at(user.flow)].rate);
    }
    for (const User& user : state.users) {
      const Flow& flow = flows_[at(user.flow)];
      const bool has_too_much = state.level >= 0 && flow.rate > state.level * (1 + kRounding);
      const bool has_too_little =
          flow.bottleneck == link && (!is_full || flow.rate < most * (1 - kRounding));
      if (flow.asked != settling_ && (has_too_much || has_too_little)) {
        ask(user.flow);
      }
    }
  }
  return asked_.size() > before;
}

}  // namespace unisono::model
