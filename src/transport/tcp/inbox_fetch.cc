// Fetches long messages whose payload waits in the socket until their reader names a destination,
// or until another lane needs the stream.
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport/tcp/inbox.h"

namespace unisono::tcp {

// Reads the payload into a slot, because no reader has named a destination.
bool Inbox::unpark(In& from) noexcept {
  Lane::In& message = from.lane->incoming(from.header.number);
  message.data = slots_.take();
  if (message.data == nullptr) {
    health_->fail(Reason::memory);
    return false;
  }
  from.parked = false;
  from.target = message.data + (message.bytes - from.missing);
  if (from.withheld != 0) {
    std::memcpy(from.target - from.withheld, from.place, from.withheld);
    from.withheld = 0;
  }
  return true;
}

Inbox::In* Inbox::parked_with(const Lane& lane, std::uint32_t number) noexcept {
  const auto found = std::find_if(streams_.begin(), streams_.end(), [&](const In& from) {
    return from.parked && from.lane == &lane && from.header.number == number;
  });
  return found == streams_.end() ? nullptr : &*found;
}

bool Inbox::peek_unread(Lane& lane, transport::Incoming& message) noexcept {
  const Lane::In& next = lane.incoming(lane.next);
  if (!next.known) {
    receive(&lane);
  }
  if (parked_with(lane, lane.next) == nullptr) {
    return next.known && peek(lane, message);
  }
  message = {.data = nullptr, .bytes = next.bytes, .signature = next.signature};
  return true;
}

// Reports only whole cache lines, except at the end of the message, so that no element is split.
// The rest of a line is already in its place, and is reported with the next bytes. With checksums,
// fetch() reports nothing before the whole message is checked; if the reader has room for all of
// the message, it is still read directly to its destination.
std::size_t Inbox::fetch(Lane& lane, std::size_t offset, std::byte* to,
                         std::size_t bytes) noexcept {
  const Lane::In& next = lane.incoming(lane.next);
  In* const from = parked_with(lane, lane.next);
  const bool partly = checksum_ && bytes < next.bytes;
  if (from == nullptr || partly) {
    transport::Incoming message;  // another lane needed the stream: it is, or will be, in a slot
    if (!peek(lane, message) || message.data == nullptr || offset > message.bytes) {
      return 0;
    }
    const std::size_t part = std::min(bytes, message.bytes - offset);
    std::memcpy(to, message.data + offset, part);
    return part;
  }
  if (offset != next.bytes - from->missing - from->withheld) {
    return 0;
  }
  if (bytes <= from->withheld) {
    from->withheld -= bytes;
    from->place = to + bytes;
    return bytes;
  }
  // The next header usually follows a complete payload, so it is read in the same call.
  const std::size_t asked = std::min(bytes - from->withheld, from->missing);
  const std::size_t parts = asked == from->missing ? 2 : 1;
  iovec places[2] = {{to + from->withheld, asked}, {from->staged.get(), kHeaderBytes}};
  const ssize_t got = from->stream->channel.receive({places, parts});
  note_unread();
  if (got <= 0) {
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      end_stream(*from, got == 0 ? 0 : errno);
    }
    return 0;
  }
  bytes_read_ += static_cast<std::size_t>(got);
  own_ = &lane;
  const std::size_t more = std::min(static_cast<std::size_t>(got), asked);
  took(*from, to + from->withheld, more);
  const std::size_t here = from->withheld + more;
  if (from->missing == 0) {
    from->parked = false;
    from->withheld = 0;
    end_frame(*from);
    if (health_->failure()) {
      return 0;
    }
    from->begin = 0;
    from->end = static_cast<std::size_t>(got) - more;
    eager_ = nullptr;
    parse(*from);
    return here;
  }
  from->withheld = checksum_ ? here : here % 64;
  from->place = to + (here - from->withheld);
  return here - from->withheld;
}

}  // namespace unisono::tcp
