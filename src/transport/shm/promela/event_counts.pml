/* Sleeping and waking (EventCounts in shm/event_counts.h; Waiter::pause in comm/waiter.cc; who rings:
   ShmTransport::wake_readers and release).

   Rank 0 writes to rank 1 over LANES lanes. Rank 1 has one thread for each lane; all sleep on the
   event count of their rank. The writer waits for room, the readers for messages, with the same code.

   Claims: nobody sleeps on when it has something to do, although a sender has no fence, and although
   no sleep here has a limit. Where the kernel has no membarrier (LIMIT) sleeps have a limit, and
   then everybody goes on in the end.

     here                      in the code
     sent[l], taken[l]         the headers of a lane's cells, and its Head, in memory
     own_sent[l], own_taken[l] the same as their writer sees them: what is not in memory yet lies in
                               the store buffer of its core, and comes out when it likes (Buffers)
     sleeping                  EventCount::sleeping of a rank
     rung[t]                   EventCount::count of its rank has changed since thread t read it: what
                               FUTEX_WAIT asks. 32 bits do not come round in that time.
     sleepers                  the word of the world that every sender reads
     asleep[t]                 thread t is in FUTEX_WAIT
     CAP                       cells of a lane

   Only the data goes through the store buffers: all else is written by atomic additions, which
   empty the buffer of their own core first. The relaxed ones in cancel() need not, and do not here.
   Loads and stores of a thread are in order otherwise, as on x86. WEAK is an Arm core: the two loads
   of a sender, and the two relaxed additions of cancel(), happen in either order; an announcement
   does not empty the buffer of its core. Release additions and the membarrier still do. */
#ifndef LANES
#define LANES 1
#endif
#define THREADS (LANES + 1) /* 0: the writer; l + 1: the reader of lane l */
#ifndef CAP
#define CAP 1
#endif
#define COUNT (2 * CAP) /* messages are counted modulo COUNT */

#define RANK(thread) (thread > 0 -> 1 : 0)

byte sent[LANES], own_sent[LANES];
byte taken[LANES], own_taken[LANES];
byte sleeping[2];
byte sleepers;
bool rung[THREADS];
bool asleep[THREADS];

#ifdef WEAK
#define UNREAD 255
#define SLEEPING(rank) early
#else
#define SLEEPING(rank) sleeping[rank]
#endif
#define HAS_MESSAGE(l) (sent[l] != own_taken[l])
#define HAS_ROOM(l) ((own_sent[l] + COUNT - taken[l]) % COUNT < CAP)

/* The stores of a thread become visible. */
inline drain(thread) {
  if
  :: thread == 0 ->
     sent[0] = own_sent[0];
     sent[LANES - 1] = own_sent[LANES - 1]
  :: else -> taken[(thread + LANES - 1) % LANES] = own_taken[(thread + LANES - 1) % LANES]
  fi
}

/* An interrupt on each core, one after the other. */
inline membarrier() {
  atomic { drain(0) }
  atomic { drain(1) }
#if LANES > 1
  atomic { drain(2) }
#endif
}

inline wakes_up(me) {
#ifdef SLEEPING_IS_A_FLAG
  sleeping[RANK(me)] = 0
#else
  sleeping[RANK(me)]--
#endif
}

inline cancel(me) {
#ifdef WEAK
  if
  :: wakes_up(me); sleepers--
  :: sleepers--; wakes_up(me)
  fi
#else
  sleepers--;
  wakes_up(me)
#endif
}

/* Waiter::pause(): prepare(), look again, sleep() or cancel(). */
inline await(me, something) {
  do
  :: something -> break
  :: else ->
#ifdef BARRIER_BEFORE_ANNOUNCEMENT
     membarrier();
#endif
#ifndef BELL_READ_LATE
     rung[me] = false;
#endif
     atomic {
#ifndef WEAK
       drain(me);
#endif
#ifdef SLEEPING_IS_A_FLAG
       sleeping[RANK(me)] = 1
#else
       sleeping[RANK(me)]++
#endif
     }
     sleepers++;
#if !defined(BARRIER_BEFORE_ANNOUNCEMENT) && !defined(NO_MEMBARRIER)
     membarrier();
#endif
     if
#ifndef NO_SECOND_LOOK
     :: something
#endif
     :: else ->
#ifdef BELL_READ_LATE
        rung[me] = false;
#endif
        if
        :: atomic { !rung[me] -> asleep[me] = true }
           if
           :: !asleep[me]
#ifdef LIMIT
           :: asleep[me] = false /* the limit of the sleep */
#endif
           fi
        :: else
        fi
     fi;
     cancel(me)
  od
}

inline futex_wake(rank) {
  atomic {
    if
    :: rank == 0 -> asleep[0] = false
    :: else ->
#ifdef WAKE_ONE
       if
       :: asleep[1] -> asleep[1] = false
       :: else -> asleep[LANES] = false
       fi
#else
       asleep[1] = false;
       asleep[LANES] = false
#endif
    fi
  }
}

/* anybody_sleeps() and ring() */
inline ring(me, rank) {
#ifdef WEAK
  early = UNREAD;
  if
  :: early = sleeping[rank]
  :: skip
  fi;
#endif
  if
  :: sleepers != 0 ->
#ifdef WEAK
     if
     :: early == UNREAD -> early = sleeping[rank]
     :: else
     fi;
#endif
     if
     :: SLEEPING(rank) != 0 ->
#ifndef WOKEN_WITHOUT_A_RING
        atomic {
          drain(me);
          if
          :: rank == 0 -> rung[0] = true
          :: else -> rung[1] = true; rung[LANES] = true
          fi
        }
#endif
        futex_wake(rank)
     :: else
     fi
  :: else
  fi
}

active proctype Writer() {
  byte lane;
#ifdef WEAK
  byte early;
#endif
  do
  :: if
     :: lane = 0
#if LANES > 1
     :: lane = 1
#endif
     fi;
     await(0, HAS_ROOM(lane));
#ifdef RING_BEFORE_SEND
     ring(0, 1);
     own_sent[lane] = (own_sent[lane] + 1) % COUNT
#else
     own_sent[lane] = (own_sent[lane] + 1) % COUNT;
     ring(0, 1)
#endif
  od
}

proctype Reader(byte lane) {
#ifdef WEAK
  byte early;
#endif
  do
  :: await(lane + 1, HAS_MESSAGE(lane));
progress:
     own_taken[lane] = (own_taken[lane] + 1) % COUNT;
#ifndef RELEASE_DOES_NOT_RING
     ring(lane + 1, 0)
#endif
  od
}

/* Takes stores out of the buffers. A buffer is empty in the end. */
proctype Buffers(byte lane) {
end:
  do
  :: atomic { sent[lane] != own_sent[lane] -> sent[lane] = (sent[lane] + 1) % COUNT }
  :: atomic { taken[lane] != own_taken[lane] -> taken[lane] = (taken[lane] + 1) % COUNT }
  od
}

init {
  atomic {
    run Reader(0);
    run Buffers(0);
#if LANES > 1
    run Reader(1);
    run Buffers(1)
#endif
  }
}
