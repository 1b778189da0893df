#include "tcp/raw.h"

#include <sched.h>
#include <sys/socket.h>

#include <algorithm>

namespace unisono::bench {

void exchange(std::vector<Flow> flows, std::size_t piece, bool yields) {
  std::vector<std::size_t> sent(flows.size());
  std::vector<std::size_t> got(flows.size());
  for (bool all = false; !all;) {
    all = true;
    std::size_t moved = 0;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      const Flow& flow = flows[i];
      if (sent[i] < flow.bytes) {
        const ssize_t done = ::send(flow.socket, flow.out + sent[i],
                                    std::min(piece, flow.bytes - sent[i]), MSG_NOSIGNAL);
        const std::size_t bytes = done > 0 ? static_cast<std::size_t>(done) : 0;
        sent[i] += bytes;
        moved += bytes;
      }
      if (got[i] < flow.bytes) {
        const ssize_t done =
            ::recv(flow.socket, flow.in + got[i], std::min(piece, flow.bytes - got[i]), 0);
        const std::size_t bytes = done > 0 ? static_cast<std::size_t>(done) : 0;
        got[i] += bytes;
        moved += bytes;
      }
      all = all && sent[i] == flow.bytes && got[i] == flow.bytes;
    }
    if (moved == 0 && yields) {
      sched_yield();
    }
  }
}

}  // namespace unisono::bench
