/* Who goes on after a failure (HostAgreement in membership/agreement.cc, World::shrink_here in
   comm/shrink.cc). One rank may die at any step.

   Claims: all who get the answer of a round get the same, whole one; all who go on do so with the
   answer of the same round; and every rank that lives goes on. With LATE, it may be evicted.

     here        in the code
     calls[r]    the same
     dead[r]     is_gone(r), as is left[r]: who was evicted destroys its world
     round, by, whole   the three parts of RollRecord::state, which change together
     verdict     the same: for every second round
     went_on[r]  calls[r] is kWentOn
     has_met, gave_up   what HostAgreement::meeting_of says of the meeting behind an answer

   That meeting is a guard here: it comes about when all have come to it, and may fail for each of
   them once one of them is dead. What follows is World::await_others. With LATE, rank 2 may come when the others' time is over;
   in the code that may also happen in a later round, to who has met the others and does not come to
   say so in all that time: that is left out.

   A wait is a guard: it looks again when there is something new. */
#define N 3
#define ROUNDS 3

byte calls[N], round, by;
bool whole = true, dead[N], left[N];
byte went_on[N];
bool verdict[2 * N];
bool came[ROUNDS * N];      /* [round][rank], to the meeting */
bool has_met[ROUNDS * N];      /* and has met all */
bool gave_up[ROUNDS * N];   /* or has not */
bool answers[ROUNDS * N];   /* what was answered, for the claims */
bool over;                  /* the time to come */

#define PLACE(r, i) (((r) & 1) * N + (i))
#define AT(r, i) (((r) - 1) * N + (i))

#define ANSWERED(r) (round > r || (round == r && whole))
#define GONE(i) (dead[i] || left[i])
#define SOMEBODY_WENT_ON (went_on[0] != 0 || went_on[1] != 0 || went_on[2] != 0)
#ifdef NO_TAKE_OVER
#define FREE whole
#else
#define FREE (whole || GONE(by))
#endif
#define SETTLED(r, i) (calls[i] >= r || GONE(i) || (over && r == 1 && i == 2))
#define ALL_SETTLED(r) (SETTLED(r, 0) && SETTLED(r, 1) && SETTLED(r, 2))
#define MET(r) \
  ((!answers[AT(r, 0)] || came[AT(r, 0)]) && (!answers[AT(r, 1)] || came[AT(r, 1)]) && \
   (!answers[AT(r, 2)] || came[AT(r, 2)]))
#define ONE_IS_DEAD(r) \
  ((answers[AT(r, 0)] && dead[0]) || (answers[AT(r, 1)] && dead[1]) || (answers[AT(r, 2)] && dead[2]))

inline look() {
  i = 0;
  do
  :: i < N ->
     mine[i] = calls[i] >= r;
     if
     :: GONE(i) -> mine[i] = false
     :: else
     fi;
     i++
  :: else -> break
  od
}

inline write() {
  i = 0;
  do
  :: i < N -> verdict[PLACE(r, i)] = mine[i]; i++
  :: else -> break
  od
}

inline say_whole() {
  d_step {
    answers[AT(r, 0)] = mine[0];
    answers[AT(r, 1)] = mine[1];
    answers[AT(r, 2)] = mine[2];
    whole = true
  }
}

proctype Rank(byte me) {
  byte r, i, seen_round, seen_by;
  bool seen_whole, is_gone, mine[N];
  {
    skip; /* rank 2 may begin when the time is over: any interleaving is one */
  again:
    r++;
    if
    :: r > ROUNDS -> goto ended /* one can die: this is not reached */
    :: else
    fi;
    calls[me] = r;
    do
    :: atomic {
         ANSWERED(r) || SOMEBODY_WENT_ON || (FREE && ALL_SETTLED(r)) ->
         seen_round = round;
         seen_by = by;
         seen_whole = whole
       };
       if
       :: seen_round > r || (seen_round == r && seen_whole) -> break
       :: else
       fi;
       if
       :: SOMEBODY_WENT_ON -> goto evicted
       :: else
       fi;
       look();
#ifdef NOT_EXCHANGED
       atomic {
         round = r;
         by = me;
         whole = false
       };
#else
       if
       :: atomic {
            round == seen_round && by == seen_by && whole == seen_whole ->
            round = r;
            by = me;
            whole = false
          }
       :: else -> goto lost
       fi;
#endif
#ifdef WHOLE_BEFORE_WRITTEN
       say_whole();
       write();
#else
       write();
       say_whole();
#endif
       break;
     lost:
       skip
    od;
    /* read */
    i = 0;
    do
    :: i < N -> mine[i] = verdict[PLACE(r, i)]; i++
    :: else -> break
    od;
    if
    :: round > r + 1 || !mine[me] -> goto evicted
    :: else
    fi;
    assert(mine[0] == answers[AT(r, 0)] && mine[1] == answers[AT(r, 1)] &&
           mine[2] == answers[AT(r, 2)]);
    /* meet the others of the answer */
    came[AT(r, me)] = true;
    if
    :: MET(r) -> skip
    :: ONE_IS_DEAD(r) -> gave_up[AT(r, me)] = true; goto again
    fi;
    has_met[AT(r, me)] = true;
#ifndef NOT_AWAITED
    i = 0;
    do
    :: i < N && (!mine[i] || i == me) -> i++
    :: i < N && mine[i] && i != me ->
       atomic {
         has_met[AT(r, i)] || gave_up[AT(r, i)] || GONE(i) -> is_gone = GONE(i)
       };
       if
       :: gave_up[AT(r, i)] -> gave_up[AT(r, me)] = true; goto again
       :: !gave_up[AT(r, i)] && (has_met[AT(r, i)] || is_gone) -> i++
       fi
    :: i >= N -> break
    od;
#endif
    went_on[me] = r;
    assert((went_on[0] == 0 || went_on[0] == r) && (went_on[1] == 0 || went_on[1] == r) &&
           (went_on[2] == 0 || went_on[2] == r));
    goto ended;
  evicted:
#ifndef LATE
    assert(false);
#endif
    left[me] = true
  } unless {
    dead[me]
  };
ended:
  skip
}

proctype Death() {
  if
  :: dead[0] = true
  :: dead[1] = true
  :: dead[2] = true
  :: true
  fi
}

init {
  atomic {
    run Rank(0);
    run Rank(1);
    run Rank(2);
    run Death()
  }
#ifdef LATE
  over = true
#endif
}
