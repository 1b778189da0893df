/* The rules of collective calls and of messages. They are the same in C (unisono.h) and in C++
 * (communicator.hpp). Errors have their C++ names here: usage is UNISONO_USAGE in C.
 *
 * Shapes: `count` is in elements, `bytes` in bytes, and n is the size of the communicator.
 *
 *   collective       in                              out                     count
 *   broadcast        root: count                     count                   the vector
 *   reduce           count                           root: count             the vector
 *   all_reduce       count                           count                   the vector
 *   scatter          root: n*count                   count                   one rank's part
 *   gather           count                           root: n*count           one rank's part
 *   all_gather       count                           n*count                 one rank's part
 *   reduce_scatter   n*count                         count                   one rank's part
 *   all_to_all       n*count                         n*count                 one pair's part
 *   scan             count                           count                   the vector
 *   exclusive_scan   count                           count                   the vector
 *
 * The result of scan on rank r is the reduction of the inputs of ranks 0 to r. The result of
 * exclusive_scan on rank r is the reduction of the inputs of ranks 0 to r-1. On rank 0 the result
 * of exclusive_scan is the operation's identity, such as 0 for sum; with a user-defined operation,
 * `out` of rank 0 is left unchanged. For both, avg is a usage error.
 *
 * A buffer that a rank does not use, or that has no elements, may be null. The v-forms take lists
 * of n entries instead of `count`: the count of each rank's part, the same list on all ranks. For
 * all_to_all_v, `counts` has the elements that this rank sends to each rank, and `recv_counts` the
 * elements that it receives from each rank. counts[j] on rank i must equal recv_counts[i] on rank
 * j. Parts are packed in rank order unless `displs` (`recv_displs`) give their offsets in elements.
 * Lists are read before the function returns, also by the asynchronous forms.
 *
 * In place: allowed if `in` and `out` start at the same address for broadcast, reduce, all_reduce,
 * all_to_all and the scans; if `in` is this rank's part of `out` for all_gather; if `out` is this
 * rank's part of `in` for reduce_scatter; if the root's `out` (`in`) is its part of `in` (`out`)
 * for scatter (gather). The v-forms follow the rules of the forms without v. Any other overlap is a
 * usage error. The caller owns all buffers.
 *
 * Agreement: all ranks of a communicator must make the same collective calls in the same order,
 * with the same count or counts, dtype, op, factor, root and algorithm. Otherwise all ranks get
 * mismatch: in the call that differs, or in the next call that waits for another rank, at the
 * latest in the next barrier. docs/reliability.md lists what is compared. If the call that differs
 * was a rank's last call, the rank reports the mismatch on stderr when it leaves, provided that it
 * has detected the mismatch by then.
 *
 * Errors: usage leaves the communicator as it was. After peer_lost, timeout, mismatch, aborted or
 * corrupt, and after resource or internal in an operation, the world has ended: every call on any
 * of its communicators gives the same error, on every rank. Only these functions can still be
 * called: those that report a state, those that free handles, abort and shrink. The remaining ranks
 * can continue with a shrink.
 *
 * Messages: messages with the same tag from one rank to another arrive in the order in which they
 * were sent. A blocking send may return before the receive begins if the message fits into the
 * lane's buffers: 256 KiB within a host, about 2 MiB between hosts. A longer message, and one of
 * send_recv() from 64 KiB on, waits until the receiver takes messages from this rank; a message to
 * this rank itself never waits. A message may be shorter than the receive's buffer, and the receive
 * returns the length of the message. A message that is longer than the buffer is a mismatch.
 *
 * Threads: one thread at a time may use a communicator, its plans and its requests. It is a usage
 * error to start an operation while another thread is in a blocking operation; other violations may
 * not be detected. Sends and receives are separate from the collectives: one thread may send and
 * receive while another thread makes collective calls. Different communicators are independent.
 * Functions with "Threads: any" may be called from any thread at any time, also during an
 * operation. */
#pragma once
