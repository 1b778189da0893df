#include "tcp/raw.h"

#include <sys/socket.h>

#include <algorithm>

namespace unisono::bench {

void exchange(std::vector<Flow> flows, std::size_t piece) {
  std::vector<std::size_t> sent(flows.size());
  std::vector<std::size_t> got(flows.size());
  for (bool all = false; !all;) {
    all = true;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      const Flow& flow = flows[i];
      if (sent[i] < flow.bytes) {
        const ssize_t done = ::send(flow.socket, flow.out + sent[i],
                                    std::min(piece, flow.bytes - sent[i]), MSG_NOSIGNAL);
        sent[i] += done > 0 ? static_cast<std::size_t>(done) : 0;
      }
      if (got[i] < flow.bytes) {
        const ssize_t done =
            ::recv(flow.socket, flow.in + got[i], std::min(piece, flow.bytes - got[i]), 0);
        got[i] += done > 0 ? static_cast<std::size_t>(done) : 0;
      }
      all = all && sent[i] == flow.bytes && got[i] == flow.bytes;
    }
  }
}

}  // namespace unisono::bench
