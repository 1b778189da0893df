// Computes the cost of a schedule on the reference network from the schedule itself.
//
// The reference network is one-port: every rank has one sending and one receiving port, which work
// at the same time. All moves from one rank to one peer in one step are one message of b bytes. A
// message starts when
//
//   its data is ready       every move of an earlier step that wrote what it reads has finished,
//   its sender is free      the sending port has finished the messages before it,
//   its receiver is free    the receiving port has finished the messages before it,
//
// where messages come in the order of the schedule: by step, then by their first move. It occupies
// the sending port for alpha + beta*b, and the receiving port for alpha + beta*b + gamma*(the bytes
// that it reduces there); then its data is ready at the receiver. A local reduction occupies the
// receiving port of its rank for gamma*b. A local copy costs nothing.
//
// The call ends when all ports have. The chain of messages that led to that end is the critical
// path: its messages, bytes and reduced bytes say where the time comes from. Which chain it is may
// depend on the parameters.
#pragma once

#include "schedule/schedule.h"

namespace unisono::cost {

// A network, and the machines on it.
struct Parameters {
  double floor_s = 0;           // to start a call at all, however small
  double alpha_s = 0;           // per message
  double beta_s_per_byte = 0;   // per byte sent, in one direction
  double gamma_s_per_byte = 0;  // per byte reduced
};

struct Cost {
  double messages = 0;
  double bytes = 0;
  double reduced_bytes = 0;

  double time_s(const Parameters& parameters) const {
    return parameters.floor_s + messages * parameters.alpha_s + bytes * parameters.beta_s_per_byte +
           reduced_bytes * parameters.gamma_s_per_byte;
  }
};

// Bytes of one chunk. `vector_bytes` is the larger of what a rank sends and receives in all, as the
// benchmarks count: the whole vector of broadcast, reduce and all_reduce; all parts together of
// scatter, gather, all_gather and reduce_scatter; what one rank has for all of all_to_all. Chunks
// are of equal size here, not rounded to elements. Where the schedule has counts, they say all
// sizes: then it is the bytes of one element, whatever `vector_bytes`, and length_of() says how
// many.
double chunk_bytes(const Schedule& schedule, double vector_bytes);

// The critical path. Among chains that take equally long it is one with the most messages.
// REQUIRES: the structure of the schedule is right (ranks, chunks and buffers in range).
// Cost: one pass over the cells that the schedule writes.
Cost critical_path(const Schedule& schedule, double vector_bytes, const Parameters& parameters);

// The bytes that move, on any network: the most that one rank sends, receives or reduces, and the
// sum of sent bytes over all ranks. Local copies are not counted.
struct Traffic {
  int steps = 0;
  double sent_bytes = 0;
  double received_bytes = 0;
  double reduced_bytes = 0;
  double total_bytes = 0;
};
Traffic traffic(const Schedule& schedule, double vector_bytes);

}  // namespace unisono::cost
