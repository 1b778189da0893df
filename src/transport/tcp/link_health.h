// The state of a link: whether the link failed, its peer left, or its peer reported that the world
// ends. Publishes each change to other threads.
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
  // Returns true if no more data will come and none needs to be sent.
  bool gone() const noexcept { return left_ || failure_.reason != Reason::none; }
  // Returns true if this process still holds data that was sent.
  bool waits() const noexcept { return waits_; }

  // Records a failure, unless an earlier one is recorded.
  void fail(Reason reason, int error = 0, const char* detail = "") noexcept {
    if (!gone()) {
      failure_ = {.peer = peer_, .reason = reason, .error = error, .detail = detail};
      int nobody = -1;
      events_->first_failed.compare_exchange_strong(nobody, peer_);
      end();
    }
  }
  // REQUIRES: note_leave() has not been called yet.
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

  // Notifies sleeping threads: data for a thread other than the reading one has arrived, or data
  // that a thread waits to send has been sent.
  void note_arrival() const noexcept { events_->arrived(); }
  void set_waits(bool waits) noexcept { set(waits_, waits, events_->backlogs); }
  // Notes whether bytes have been read from the socket that no reader has taken; no descriptor
  // shows them any more.
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
