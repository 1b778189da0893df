// The events of the engine for shared links, in a heap. The end of a flow changes with its rate, so
// the heap records the position of each event.
#include <algorithm>

#include "network_model/simulator/shared_state.h"

namespace unisono::network_model {
namespace {

constexpr std::size_t kBranches = 4;

}  // namespace

void EventQueue::put(std::size_t place, const Event& event) {
  events_[place] = event;
  if (event.kind == Kind::flow_end) {
    ends_[static_cast<std::size_t>(event.subject)] = place;
  }
}

void EventQueue::rise(std::size_t place, const Event& event) {
  while (place > 0) {
    const std::size_t above = (place - 1) / kBranches;
    if (!event.comes_before(events_[above])) {
      break;
    }
    put(place, events_[above]);
    place = above;
  }
  put(place, event);
}

void EventQueue::sink(std::size_t place, const Event& event) {
  while (true) {
    const std::size_t first = place * kBranches + 1;
    const std::size_t end = std::min(first + kBranches, events_.size());
    if (first >= end) {
      break;
    }
    std::size_t least = first;
    for (std::size_t below = first + 1; below < end; ++below) {
      if (events_[below].comes_before(events_[least])) {
        least = below;
      }
    }
    if (!events_[least].comes_before(event)) {
      break;
    }
    put(place, events_[least]);
    place = least;
  }
  put(place, event);
}

void EventQueue::push(double time_us, Kind kind, int subject) {
  events_.emplace_back();
  rise(events_.size() - 1,
       {.time_us = time_us, .number = next_number_++, .kind = kind, .subject = subject});
}

void EventQueue::move_end(int transfer, double time_us) {
  const auto number = static_cast<std::size_t>(transfer);
  ends_.resize(std::max(ends_.size(), number + 1), kNone);
  const std::size_t place = ends_[number];
  if (place == kNone) {
    push(time_us, Kind::flow_end, transfer);
    return;
  }
  const Event moved{
      .time_us = time_us, .number = next_number_++, .kind = Kind::flow_end, .subject = transfer};
  if (moved.comes_before(events_[place])) {
    rise(place, moved);
  } else {
    sink(place, moved);
  }
}

EventQueue::Event EventQueue::pop() {
  const Event first = events_.front();
  if (first.kind == Kind::flow_end) {
    ends_[static_cast<std::size_t>(first.subject)] = kNone;
  }
  const Event last = events_.back();
  events_.pop_back();
  if (!events_.empty()) {
    sink(0, last);
  }
  return first;
}

}  // namespace unisono::network_model
