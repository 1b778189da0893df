/* Checks that no correct program is reported as a deadlock (diagnose/world_waits.h). Each rank is
   on its own host, so that reports may overtake data.

   Each of RANKS ranks may send a short message to the previous rank. Then it waits for a message of
   the next rank, or sends it a long message and waits until that has been fetched. Then it sends a
   short message to the previous rank. It repeats this ROUNDS times. A waiting rank alternates
   between polls and checks. A poll fetches long messages ahead, even if the call does not need
   them, so it reacts to frames without advancing. Each check may answer a neighbour, whose question
   is not modelled, and searches for a cycle. ONE_SENDS: only one rank begins with a message (with
   LONG_ONE a long one), and the others wait for it in a chain.

   Claim: if a cycle is found, every rank in it waits forever.

     here                   in the code
     lane[LANE(a, b)]       the frames in transit from a to b
     sent, came             transport::Frames of a rank for a peer
     fresh, fetched, notice arrived messages, long ones to fetch, and notices of fetched ones
     peer[r], name[r]       WorldWait: the rank that r waits for, and the name of the wait
     behind[r]              Behind::name_ns
     heard, looked          WorldWaits::Asked: Frames::received at the first check, and its wait
     answers[LANE(p, r)]    the report in transit; dropped if another one is in transit
     told_*[LANE(r, p)]     RemoteRecords::Told
     seen[r]                Standstill::seen_ns */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif

#define LANE(a, b) ((a) * RANKS + (b))
#define LANES (RANKS * RANKS)
#define NOBODY 255
#define NEXT ((me + 1) % RANKS)
#define BEFORE ((me + RANKS - 1) % RANKS)

mtype = { SHORT, LONG, FETCHED };

chan lane[LANES] = [4 * ROUNDS] of { mtype };
byte sent[LANES], came[LANES];
byte fresh[LANES], fetched[LANES], notice[LANES];
chan answers[LANES] = [1] of { byte, byte, byte, byte, byte }; /* name, peer, behind, sent, received */
byte told_name[LANES], told_peer[LANES], told_behind[LANES], told_sent[LANES], told_received[LANES];

byte peer[RANKS], name[RANKS], behind[RANKS], seen[RANKS];
bool for_notice[RANKS];
byte heard[LANES], looked[RANKS];

#define WAITS(r) (peer[r] != NOBODY)
#define GETS(r) ((for_notice[r] && notice[LANE(r, peer[r])] > 0) || \
                 (!for_notice[r] && fresh[LANE(r, peer[r])] > 0))
/* Data that r waits for is in transit, or its peer will send it without advancing. */
#define COMES(r) (len(lane[LANE(peer[r], r)]) > 0 || \
                  (for_notice[r] && \
                   (len(lane[LANE(r, peer[r])]) > 0 || fetched[LANE(peer[r], r)] > 0)))

inline put(to, what) {
  lane[LANE(me, to)] ! what;
  sent[LANE(me, to)]++
}

inline await(whom, notices) {
  peer[me] = whom;
  for_notice[me] = notices;
  name[me]++
}

inline end_wait() {
  if
  :: for_notice[me] -> notice[LANE(me, peer[me])]--
  :: else -> fresh[LANE(me, peer[me])]--
  fi;
  peer[me] = NOBODY;
  for_notice[me] = false;
  behind[me] = 0;
  looked[me] = 0
}

inline poll() {
  atomic {
    i = 0;
    do
    :: i < RANKS ->
       if
       :: i != me && fetched[LANE(me, i)] > 0 -> fetched[LANE(me, i)]--; put(i, FETCHED)
       :: else -> i++
       fi
    :: else -> break
    od;
    i = 0;
    if
    :: GETS(me) -> end_wait()
    :: else
    fi
  }
}

inline answer() {
  if
  :: looked[me] == name[me] ->
     if
     :: i = NEXT
     :: i = BEFORE
     fi;
     if
     :: nfull(answers[LANE(me, i)]) ->
#ifdef RECEIVED_LATE
        answers[LANE(me, i)] ! name[me], peer[me], behind[me], sent[LANE(me, i)], came[LANE(me, i)]
#else
        answers[LANE(me, i)] ! name[me], peer[me], behind[me], sent[LANE(me, i)], heard[LANE(me, i)]
#endif
     :: full(answers[LANE(me, i)])
     fi
  :: true
  fi;
  looked[me] = name[me];
  i = 0;
  do
  :: i < RANKS -> heard[LANE(me, i)] = came[LANE(me, i)]; i++
  :: else -> break
  od
}

inline listen() {
  i = 0;
  do
  :: i < RANKS ->
     if
     :: nempty(answers[LANE(i, me)]) ->
        answers[LANE(i, me)] ? told_name[LANE(me, i)], told_peer[LANE(me, i)],
                               told_behind[LANE(me, i)], told_sent[LANE(me, i)],
                               told_received[LANE(me, i)]
     :: empty(answers[LANE(i, me)])
     fi;
     i++
  :: else -> break
  od
}

inline note_behind() {
  i = LANE(me, peer[me]);
  quiet = told_name[i] != 0;
#ifndef SENT_NOT_COMPARED
  quiet = quiet && told_sent[i] == came[i];
#endif
#ifndef RECEIVED_NOT_COMPARED
  quiet = quiet && told_received[i] == sent[i];
#endif
  if
#ifdef ONE_LOOK
  :: quiet -> behind[me] = told_name[i]
#else
  :: quiet && seen[me] == told_name[i] -> behind[me] = told_name[i]
#endif
  :: else
  fi;
  seen[me] = (quiet -> told_name[i] : 0)
}

/* Follows the notes from this rank's wait. */
inline find_circle() {
  i = peer[me];
  wanted = behind[me];
  steps = 0;
  do
  :: wanted != 0 && i != me && steps < RANKS ->
     if
     :: told_name[LANE(me, i)] == wanted ->
        wanted = told_behind[LANE(me, i)];
        i = told_peer[LANE(me, i)];
        steps++
     :: else -> wanted = 0
     fi
  :: else -> break
  od;
  if
  :: wanted == name[me] && i == me -> check_circle()
  :: else
  fi
}

inline check_circle() {
  i = me;
  do
  :: assert(WAITS(i) && !GETS(i) && !COMES(i));
     i = peer[i];
     if
     :: i == me -> break
     :: else
     fi
  od
}

inline look() {
  atomic {
    listen();
    answer();
    note_behind();
    find_circle();
    i = 0;
    wanted = 0;
    steps = 0;
    quiet = false
  }
}

inline begin() {
  atomic {
#ifdef ONE_SENDS
    if
#ifdef LONG_ONE
    :: me == 0 -> put(NEXT, LONG); await(NEXT, true)
#else
    :: me == 0 -> put(BEFORE, SHORT); await(NEXT, false)
#endif
    :: else -> await(NEXT, false)
    fi
#else
    if
    :: put(BEFORE, SHORT)
    :: true
    fi;
    if
    :: await(NEXT, false)
    :: put(NEXT, LONG); await(NEXT, true)
    fi
#endif
  }
}

proctype Rank(byte me) {
  byte round = 0, i = 0, wanted = 0, steps = 0;
  bool quiet = false;
  do
  :: round < ROUNDS ->
     begin();
     do
     :: poll();
        if
        :: WAITS(me) -> look()
        :: else -> break
        fi
     od;
     atomic { put(BEFORE, SHORT); round++ }
  :: else -> break
  od
}

/* Delivers the frames of a lane in order, at any time. */
proctype Arrivals(byte from; byte to) {
end:
  do
  :: atomic { nempty(lane[LANE(from, to)]) ->
     came[LANE(to, from)]++;
     if
     :: lane[LANE(from, to)] ? SHORT -> fresh[LANE(to, from)]++
     :: lane[LANE(from, to)] ? LONG -> fresh[LANE(to, from)]++; fetched[LANE(to, from)]++
     :: lane[LANE(from, to)] ? FETCHED -> notice[LANE(to, from)]++
     fi }
  od
}

init {
  byte a = 0, b = 0;
  atomic {
    do
    :: a < RANKS -> peer[a] = NOBODY; a++
    :: else -> break
    od;
    a = 0;
    do
    :: a < RANKS ->
       run Rank(a);
       b = 0;
       do
       :: b < RANKS ->
          if
          :: a != b -> run Arrivals(a, b)
          :: else
          fi;
          b++
       :: else -> break
       od;
       a++
    :: else -> break
    od
  }
}
