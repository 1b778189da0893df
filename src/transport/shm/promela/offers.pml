/* Memory that a rank offers and others read where it is (ShmTransport::offer and fetch in
   shm/shm_transport.cc, Executor in engine/segmented_run.cc, Core in comm/core.cc).

   Claims: an operation that ends well has what was offered, all of it, although the offerer uses
   its memory anew as soon as it may, may be told of an abort at any time, or dies while it is read;
   and everybody comes to an end.

     here           in the code
     memory[p]      a piece of what is offered: OFFERED, or CHANGED since it is the caller's again
     offered        the reference is in the lane
     copy[r].part   what reader r has fetched, in the caller's memory
     told[r]        Head::cells of reader r: references are told at once
     aborted        AbortRecord::state is not 0
     dead[p]        the process has ended, which look_for_deaths() sees; nobody can read it any more
     MAY_END        throw_abort(): who has seen an abort may leave at any time

   The offerer's memory is the caller's again when all readers have told that they are done (drained()),
   or when the operation has failed, so after an abort. A reader looks at the abort only when it has
   everything (World::aborted_meanwhile); it must not believe what it read if there is one.

   With RELAY the second reader reads what the first one has fetched, which passes it on before it
   knows whether it is right. With DEATHS up to so many of them die, each before any of its steps.
   GIVES_UP: an offerer that has waited too long raises an abort itself, and takes its memory back.

   The kernel copies a piece after the other; that it copies from a process at all holds the memory of
   that process until it is done, so a piece is read whole or not. Sleeping is in event_counts.pml, who is
   first to raise in abort.pml. */
#ifndef READERS
#define READERS 1
#endif
#define PIECES 2

#define OFFERED 1
#define CHANGED 2
#define OFFERER READERS /* its number among the ranks */

#ifdef DEATHS
#define MAY_DIE :: atomic { deaths < DEATHS -> deaths++; dead[me] = true; goto gone }
#else
#define MAY_DIE
#endif

typedef Copy { byte part[PIECES] }
byte memory[PIECES];
Copy copy[READERS];
bool offered, told[READERS], passed_on, aborted, dead[READERS + 1];
byte deaths;

/* Waiter::pause(): asks now and then who has died */
#ifdef DEATHS_NOT_LOOKED_FOR
#define LOOK_FOR_DEATHS(who) :: false
#else
#define LOOK_FOR_DEATHS(who) :: dead[who] && !aborted -> aborted = true
#endif

#ifdef ABORT_NOT_LOOKED_AT
#define MAY_END :: false
#else
#define MAY_END :: aborted -> goto failed
#endif

#if READERS == 1
#define ALL_TOLD told[0]
#define ANY_DEAD dead[0]
#elif defined(RELAY) || defined(ONLY_ONE_READER)
#define ALL_TOLD told[0]
#define ANY_DEAD (dead[0] || dead[1])
#else
#define ALL_TOLD (told[0] && told[1])
#define ANY_DEAD (dead[0] || dead[1])
#endif

proctype Offerer(byte me) {
  byte p;
#ifdef OFFERED_BEFORE_WRITTEN
  offered = true;
#endif
  do
  :: p < PIECES -> memory[p] = OFFERED; p++
  :: p == PIECES -> break
  MAY_DIE
  od;
  offered = true;
#ifndef NOT_DRAINED
  do
  :: ALL_TOLD -> break
  MAY_END
#ifndef DEATHS_NOT_LOOKED_FOR
  :: ANY_DEAD && !aborted -> aborted = true
#endif
#ifdef GIVES_UP
#ifdef WITHOUT_A_WORD
  :: goto failed
#else
  :: !aborted -> aborted = true
#endif
#endif
  MAY_DIE
  od;
#endif
failed: /* or not: the memory is the caller's */
  p = 0;
  do
  :: p < PIECES -> memory[p] = CHANGED; p++
  :: p == PIECES -> break
  MAY_DIE
  od;
gone:
  skip
}

#ifdef RELAY
#define FROM(me) (me == 0 -> OFFERER : 0)
#define IS_OFFERED(me) (me == 0 -> offered : passed_on)
#define PIECE(me, p) (me == 0 -> memory[p] : copy[0].part[p])
#else
#define FROM(me) OFFERER
#define IS_OFFERED(me) offered
#define PIECE(me, p) memory[p]
#endif

proctype Reader(byte me) {
  byte p;
  bool ended_well = true;
  do
  :: IS_OFFERED(me) -> break
  MAY_END
  LOOK_FOR_DEATHS(FROM(me))
  MAY_DIE
  od;
#ifdef TOLD_BEFORE_FETCHED
  told[me] = true;
#endif
#ifdef PART_TAKEN_FOR_ALL
  p = PIECES - 1;
#endif
  do
  :: p == PIECES -> break
  :: p < PIECES && !dead[FROM(me)] -> /* fetch() of one that is dead gives nothing */
     atomic { copy[me].part[p] = PIECE(me, p); p++ }
  MAY_END
  LOOK_FOR_DEATHS(FROM(me))
  MAY_DIE
#ifdef LOOKED_BEFORE_FETCHED
  :: p == PIECES - 1 -> ended_well = !aborted; atomic { copy[me].part[p] = PIECE(me, p); p++ }
#endif
  od;
  told[me] = true;
#ifdef RELAY
  if
  :: me == 0 ->
     passed_on = true;
     do
     :: told[1] -> break
     MAY_END
     LOOK_FOR_DEATHS(1)
     MAY_DIE
     od
  :: else
  fi;
#endif
#if !defined(NO_LOOK_AFTER_FETCHING) && !defined(LOOKED_BEFORE_FETCHED)
  ended_well = !aborted;
#endif
  if
  :: ended_well -> assert(copy[me].part[0] == OFFERED && copy[me].part[1] == OFFERED)
  :: else
  fi;
failed:
#ifdef RELAY /* what it passed on is the caller's as well */
  copy[me].part[0] = CHANGED;
  copy[me].part[1] = CHANGED;
#endif
gone:
  skip
}

/* Any other rank, for any reason */
active proctype Other() {
  if
  :: aborted = true
  :: skip
  fi
}

init {
  atomic {
    run Offerer(OFFERER);
    run Reader(0);
#if READERS > 1
    run Reader(1)
#endif
  }
}
