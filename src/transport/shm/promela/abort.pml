/* How every wait ends when something goes wrong (World::raise, throw_abort, look_for_deaths in
   comm/world.cc; Waiter::pause in comm/waiter.cc; Mesh::find_death).

   RANKS ranks run OPERATIONS operations; in each, a rank sends a message to the next rank and waits
   for that of the one before. Any rank may find a reason of its own to give up. With DEATHS, up to so
   many ranks die, each before any of its steps, also while it writes the reason down or rings.

   Claims:
   - Every rank that lives comes to its end: it has finished, or it reports (LTL `ends`).
   - All that report a complete record report the same reason, and never a half-written one.
   - Where nobody dies, an abort needs no limit on sleeps to be seen (DEATHS=0: no sleep has one).

     here                 in the code
     state                AbortRecord::state: NONE, CLAIMED, COMPLETE
     rank, text           AbortRecord::rank and the rest of the reason
     sent[r]              what rank r has sent to the next one: the lane between them
     rung, asleep         as in event_counts.pml, which is about the ways that are left out here
     dead[r], known[r]    the process has ended; its peers' find_death() can see that

   A sleep ends at its limit only if there is something to see then; otherwise the sleeper looks and
   sleeps again, and nothing has changed. So every run here is finite, unless somebody is stuck in a
   loop, and `ends` needs no fairness.
   find_death() sees a death in finite time, because the kernel closes what the process had open.
   throw_abort() waits two seconds for the record to be complete; that these are over before a living
   rank completes it is not modelled: it gives up only on a rank that died. */
#ifndef RANKS
#define RANKS 3
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#ifndef OPERATIONS
#define OPERATIONS 2
#endif

#define NONE 0
#define CLAIMED 1
#define COMPLETE 2
#define NOBODY 255

byte state;
byte rank = NOBODY, text = NOBODY;
byte claimer = NOBODY; /* for throw_abort()'s two seconds */
byte sent[RANKS];
bool rung[RANKS], asleep[RANKS];
bool dead[RANKS], known[RANKS], out[RANKS];
byte reported = NOBODY; /* the first report of a complete record */

#define ABORTED (state != NONE)
#define BEFORE(r) ((r + RANKS - 1) % RANKS)
#define MESSAGE (sent[BEFORE(me)] > operation)

/* EventCounts::notify(), which is one step here: whoever dies in the middle of it wakes nobody, as if it had
   died before. */
inline ring(r) {
  atomic {
#ifndef WOKEN_WITHOUT_A_RING
    rung[r] = true;
#endif
    asleep[r] = false
  }
}

/* World::raise() */
inline raise(culprit) {
#ifdef RING_BEFORE_RAISE
  notify_all();
#endif
  if
#ifdef LAST_REASON_WINS
  :: state = CLAIMED
#else
  :: atomic { state == NONE -> state = CLAIMED; claimer = me }
#endif
#ifdef COMPLETE_BEFORE_WRITTEN
     state = COMPLETE;
     rank = culprit;
     text = culprit;
#else
     rank = culprit;
     text = culprit;
     state = COMPLETE;
#endif
#ifndef RING_BEFORE_RAISE
     notify_all()
#endif
#ifndef LAST_REASON_WINS
  :: else
#endif
  fi
}

inline notify_all() {
  i = 0;
  do
  :: i < RANKS -> ring(i); i++
  :: else -> break
  od;
  i = 0
}

/* World::look_for_deaths() */
inline look_for_deaths() {
#if DEATHS > 0 && !defined(DEATHS_NOT_LOOKED_FOR)
  if
  :: known[(me + 1) % RANKS] -> raise((me + 1) % RANKS)
  :: !known[(me + 1) % RANKS] && known[BEFORE(me)] -> raise(BEFORE(me))
  :: else
  fi
#else
  skip
#endif
}

/* One operation: Core::run() and Waiter::pause(). */
inline take_part() {
  sent[me]++;
  ring((me + 1) % RANKS);
  do
  :: MESSAGE -> break
  :: else ->
#ifndef ABORT_NOT_LOOKED_AT
     if
     :: ABORTED -> goto aborted
     :: else
     fi;
#endif
     look_for_deaths();
#ifndef ABORT_NOT_LOOKED_AT
     if
     :: ABORTED -> goto aborted
     :: else
     fi;
#endif
     rung[me] = false; /* prepare() */
     if
     :: MESSAGE
#ifndef NO_SECOND_LOOK_AT_ABORT
     :: !MESSAGE && ABORTED
     :: !MESSAGE && !ABORTED ->
#else
     :: !MESSAGE ->
#endif
        if /* sleep() */
        :: atomic { !rung[me] -> asleep[me] = true }
           if
           :: !asleep[me]
#if DEATHS > 0 && !defined(SLEEP_WITHOUT_LIMIT)
           :: known[(me + 1) % RANKS] || known[BEFORE(me)] || ABORTED -> asleep[me] = false
#endif
           fi
        :: else
        fi
     fi
  od
}

/* World::throw_abort() */
inline throw_abort() {
  if
#ifdef HALF_WRITTEN_RECORD_READ
  :: state != NONE ->
#else
  :: state == COMPLETE ->
#endif
     assert(rank == text);
     assert(rank != NOBODY);
     assert(reported == NOBODY || reported == rank);
     reported = rank
#ifndef REPORT_WAITS_FOR_THE_RECORD
  :: claimer != NOBODY && known[claimer] && state == CLAIMED
#endif
  fi
}

proctype Rank(byte me) {
  byte operation, i;
  {
    do
    :: operation < OPERATIONS ->
       take_part();
       operation++
#if DEATHS < 2 /* with two, finding the first is the reason */
    :: operation < OPERATIONS -> raise(me); goto aborted
#endif
    :: else -> goto ended
    od;
aborted:
    throw_abort();
ended:
    out[me] = true
  } unless { dead[me] }
}

proctype Death() {
  byte deaths;
  do
  :: deaths < DEATHS ->
     if
     :: dead[0] = true
     :: dead[1] = true
#if RANKS > 2
     :: dead[2] = true
#endif
     fi;
     deaths++
  :: break
  od
}

proctype Kernel() {
end:
  do
  :: d_step { dead[0] && !known[0] -> known[0] = true }
  :: d_step { dead[1] && !known[1] -> known[1] = true }
#if RANKS > 2
  :: d_step { dead[2] && !known[2] -> known[2] = true }
#endif
  od
}

init {
  atomic {
    run Rank(0);
    run Rank(1);
#if RANKS > 2
    run Rank(2);
#endif
#if DEATHS > 0
    run Death();
    run Kernel()
#endif
  }
}

#define OVER(r) (dead[r] || out[r])
#if RANKS > 2
ltl ends { <> (OVER(0) && OVER(1) && OVER(2)) }
#else
ltl ends { <> (OVER(0) && OVER(1)) }
#endif
