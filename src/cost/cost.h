// Computes the cost of a schedule on the reference network from the schedule itself.
//
// The reference network is one-port: every rank has one sending and one receiving port, which work
// at the same time. All moves from one rank to one peer in one step form one message of b bytes. A
// message starts when
//
//   its data is ready       the moves of earlier steps that wrote this data have finished,
//   its sender is free      the sending port has finished all earlier messages,
//   its receiver is free    the receiving port has finished all earlier messages.
//
// Messages have the order of the schedule: by step, then by first move. A message occupies the
// sending port for alpha + beta*b, and the receiving port for alpha + beta*b + gamma*(the bytes
// that it reduces there); then its data is ready at the receiver. A local reduction occupies the
// receiving port of its rank for gamma*b. A local copy costs nothing.
//
// The call ends when all ports have finished. The chain of messages that determines this end is the
// critical path. Its messages, bytes and reduced bytes explain the time. Other parameters may lead
// to another critical path.
#pragma once

#include "schedule/schedule.h"

namespace unisono::cost {

// The network, and the ranks' speed of reduction.
struct Parameters {
  double floor_s = 0;           // cost of starting a call of any size
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

// Returns the bytes of one chunk.
// `vector_bytes` is the total that a rank sends or the total that it receives, whichever is larger,
// as in benchmarks:
//   broadcast, reduce, all_reduce                  the whole vector
//   scatter, gather, all_gather, reduce_scatter    all parts together
//   all_to_all                                     the data of one rank for all ranks
// All chunks have equal size here, not rounded to elements. If the schedule has counts, the result
// is the bytes of one element and `vector_bytes` is ignored; length_of() then returns the number of
// elements.
double chunk_bytes(const Schedule& schedule, double vector_bytes);

// Returns the critical path. Among chains that take equally long, it is one with the most messages.
// REQUIRES: the structure of the schedule is right (ranks, chunks and buffers in range).
// Cost: one pass over the cells that the schedule writes.
Cost critical_path(const Schedule& schedule, double vector_bytes, const Parameters& parameters);

// The bytes that move, on any network: the most that one rank sends, receives or reduces, and the
// sum of sent bytes over all ranks. Local copies do not count.
struct Traffic {
  int steps = 0;
  double sent_bytes = 0;
  double received_bytes = 0;
  double reduced_bytes = 0;
  double total_bytes = 0;
};
Traffic traffic(const Schedule& schedule, double vector_bytes);

}  // namespace unisono::cost
