// The state of a link: whether it failed, its peer left, or its peer reported the end of the world;
// and how other threads learn of it.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "transport/tcp/failure.h"
#include "transport/tcp/link_events.h"

namespace unisono::tcp {

class LinkHealth {
 public:
  LinkHealth(int peer, LinkEvents* events) : peer_(peer), events_(events) {}
  LinkHealth(const LinkHealth&) = delete;
  LinkHealth& operator=(const LinkHealth&) = delete;
  ~LinkHealth() {
    set_waits(false);
    set_unread(false);
  }

  int peer() const noexcept { return peer_; }
  const Failure& failure() const noexcept { return failure_; }
  bool has_left() const noexcept { return left_; }
  const std::string& farewell() const noexcept { return farewell_; }
  const std::string* abort_reason() const noexcept { return aborted_ ? &abort_reason_ : nullptr; }
  // Nothing more comes, and nothing need be sent.
  bool gone() const noexcept { return left_ || failure_.reason != Reason::none; }
  // Some sent data is still in this process.
  bool waits() const noexcept { return waits_; }

  // The first reason is kept.
  void fail(Reason reason, int error = 0, const char* detail = "") noexcept {
    if (!gone()) {
      failure_ = {.peer = peer_, .reason = reason, .error = error, .detail = detail};
      int nobody = -1;
      events_->first_failed.compare_exchange_strong(nobody, peer_);
      end();
    }
  }
  // Before note_leave().
  void note_farewell(std::string_view farewell) noexcept {
    try {
      farewell_ = farewell;
    } catch (...) {
      farewell_.clear();  // no memory for it: the peer leaves without one
    }
  }
  void note_leave() noexcept {
    if (!left_) {
      left_ = true;
      end();
    }
  }
  void note_abort(std::string_view reason) noexcept {
    if (aborted_) {
      return;
    }
    aborted_ = true;
    events_->failed();
    try {
      abort_reason_ = reason;
    } catch (...) {
      abort_reason_.clear();  // no memory for the text: it ends without one
    }
  }

  // Data for threads other than the reading one has arrived, or data that they wait for has been
  // sent.
  void note_arrival() const noexcept { events_->arrived(); }
  void set_waits(bool waits) noexcept { set(waits_, waits, events_->backlogs); }
  // Bytes have been read that no descriptor shows any more.
  void set_unread(bool unread) noexcept { set(unread_, unread, events_->unread); }

 private:
  // `links` counts the links whose flag is set. A link that is gone waits for nothing.
  void set(bool& flag, bool value, std::atomic<int>& links) const noexcept {
    value = value && !gone();
    if (value != flag) {
      flag = value;
      links.fetch_add(value ? 1 : -1, std::memory_order_relaxed);
    }
  }
  void end() noexcept {
    events_->failed();
    set_waits(false);
    set_unread(false);
  }

  int peer_;
  LinkEvents* events_;
  Failure failure_;
  bool left_ = false;
  bool aborted_ = false;
  bool waits_ = false;
  bool unread_ = false;
  std::string abort_reason_;
  std::string farewell_;
};

}  // namespace unisono::tcp
