/* The rules of collective calls and of messages, for C (unisono.h) and for C++ (communicator.hpp).
 * This file uses the C++ names of errors; the C name of usage is UNISONO_USAGE.
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
 * exclusive_scan on rank r is the reduction of the inputs of ranks 0 to r-1. On rank 0, the result
 * of exclusive_scan is the operation's identity, such as 0 for sum; a user-defined operation leaves
 * `out` of rank 0 unchanged. In both scans, avg is a usage error.
 *
 * A buffer may be null if this rank does not use the buffer, or if the buffer has no elements. The
 * v-forms have lists of n entries instead of `count`. `counts` has the number of elements of each
 * rank's part, and is the same on all ranks, except in all_to_all_v. In all_to_all_v, counts[j] is
 * the number of elements that this rank sends to rank j, and recv_counts[j] is the number of
 * elements that this rank receives from rank j. Therefore counts[j] on rank i must equal
 * recv_counts[i] on rank j. Without `displs`, parts are packed in rank order; otherwise `displs`
 * has the offset of each part, in elements. For received parts in all_to_all_v, this list is
 * `recv_displs`. All forms, also the asynchronous forms, read the lists before they return.
 *
 * In place: `in` and `out` may overlap only as follows. Any other overlap is a usage error.
 * - broadcast, reduce, all_reduce, all_to_all, scans: `in` and `out` start at the same address.
 * - all_gather: `in` is this rank's part of `out`.
 * - reduce_scatter: `out` is this rank's part of `in`.
 * - scatter: on the root, `out` is the root's part of `in`.
 * - gather: on the root, `in` is the root's part of `out`.
 *
 * The v-forms follow the rules of the forms without v. The caller owns all buffers.
 *
 * Agreement: all ranks of a communicator must make the same collective calls in the same order,
 * with the same count or counts, dtype, op, factor, root and algorithm. Otherwise all ranks get
 * mismatch: in the call that differs, or in the next call that waits for another rank, at the
 * latest in the next barrier. docs/reliability.md lists the arguments that are compared. If the
 * call that differs is a rank's last call and the rank still detects the mismatch, the rank
 * reports the mismatch on stderr when it leaves.
 *
 * Errors: after usage, the communicator is unchanged. After peer_lost, timeout, mismatch, aborted
 * or corrupt, the world has ended: every call on any communicator of the world fails with the same
 * error, on every rank. resource and internal also end the world if an operation reports them.
 * After the end, only abort, shrink, functions that report a state, and functions that free a
 * handle still work. The remaining ranks can continue with shrink.
 *
 * Messages: messages with the same tag from one rank to another arrive in the order in which they
 * were sent. A blocking send may return before the receive begins if the message fits into the
 * lane's buffers: 256 KiB within a host, about 2 MiB between hosts. A send of a longer message
 * waits until the receiver reads messages from this rank. send_recv() may also wait for a message
 * of at least 64 KiB. A send to this rank itself never waits. A message may be shorter than the
 * receive's buffer; the receive returns the message's length. A message that is longer than the
 * buffer is a mismatch.
 *
 * Threads: one thread at a time may use a communicator, its plans and its requests. It is a usage
 * error to start an operation while another thread is in a blocking operation; other violations may
 * not be detected. Sends and receives are separate from collectives: one thread may send and
 * receive while another thread makes collective calls. Different communicators are independent.
 * Functions with "Threads: any" may be called from any thread at any time, also during an
 * operation. */
#pragma once
