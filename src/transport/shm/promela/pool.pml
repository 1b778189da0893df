/* The pool: free slots in two stacks without a lock (Pool::take, take_fresh and give in shm/pool.h).

   Claims: no slot is held by two threads; none is lost.

     here              in the code
     top, changes      Pool::free_, whose upper half counts its changes; one word, compared as one
     given             Pool::given_
     fresh             Pool::fresh_
     next[s]           Pool::next_[s], the slot below s in its stack
     held[s]           that a thread has taken s and not given it back; only here
     ROUND             kSlotsPerRound

   Each thread does ROUNDS rounds of taking up to two slots and giving them back, so `changes` does
   not come round; 32 bits do not either while one thread is between a look and its exchange. */
#define SLOTS 3
#define NONE SLOTS
#define ROUND 2
#define THREADS 2
#define ROUNDS 2

byte top = 0, changes = 0;
byte given = NONE;
byte fresh = ROUND;
byte next[SLOTS];
bool held[SLOTS];
byte ended;

#ifdef CHANGES_NOT_COUNTED
#define SAME (top == seen)
#else
#define SAME (top == seen && changes == seen_changes)
#endif

inline look() {
  atomic { seen = top; seen_changes = changes }
}

inline hold(slot) {
  assert(!held[slot]);
  held[slot] = true
}

inline take_free(slot) {
  look();
  do
  :: seen != NONE ->
     below = next[seen];
     if
     :: atomic { SAME -> top = below; changes++; slot = seen; hold(slot) };
        break
     :: atomic { else -> seen = top; seen_changes = changes }
     fi
  :: else -> slot = NONE; break
  od;
  atomic { seen = 0; seen_changes = 0; below = 0 }
}

/* Pool::begin_round: all that were given are this thread's until it frees all but the first. */
inline begin_round(slot) {
#ifdef GIVEN_TAKEN_IN_TWO_STEPS
  last = given;
  given = NONE;
#else
  atomic { last = given; given = NONE };
#endif
  slot = NONE;
  below = last;
  do
  :: below != NONE ->
     above = slot;
     slot = below;
     below = next[slot];
     next[slot] = above
  :: else -> break
  od;
  if
  :: slot != NONE -> hold(slot)
  :: else
  fi;
  if
  :: slot != last ->
     above = next[slot];
     look();
     do
     :: 
#ifndef LINKED_AFTER_THE_EXCHANGE
        next[last] = seen;
#endif
        if
        :: atomic { SAME -> top = above; changes++ };
           break
        :: atomic { else -> seen = top; seen_changes = changes }
        fi
     od;
#ifdef LINKED_AFTER_THE_EXCHANGE
     next[last] = seen
#endif
  :: else
  fi;
  atomic { seen = 0; seen_changes = 0; below = 0; above = 0; last = 0 }
}

inline take(slot) {
  take_free(slot);
  if
  :: slot == NONE -> begin_round(slot)
  :: else
  fi;
  if
  :: atomic { slot == NONE && fresh < SLOTS -> slot = fresh; fresh++; hold(slot) }
  :: else
  fi
}

inline give(slot) {
  held[slot] = false;
  seen = given;
  do
  :: next[slot] = seen;
     if
     :: atomic { given == seen -> given = slot };
        break
     :: atomic { else -> seen = given }
     fi
  od;
  seen = 0
}

proctype Thread() {
  byte one, two, seen, seen_changes, below, above, last, round;
  do
  :: round < ROUNDS ->
     take(one);
     if
     :: take(two)
     :: two = NONE
     fi;
     if
     :: one != NONE -> give(one)
     :: else
     fi;
     if
     :: two != NONE -> give(two)
     :: else
     fi;
     round++
  :: else -> break
  od;
  ended++
}

init {
  byte slot, left;
  atomic {
    next[0] = 1;
    next[1] = NONE;
    next[2] = NONE;
    run Thread();
    run Thread()
  }
  ended == THREADS;
  atomic { /* every slot is there again */
    left = SLOTS - fresh;
    slot = top;
    do
    :: slot != NONE -> slot = next[slot]; left++; assert(left <= SLOTS)
    :: else -> break
    od;
    slot = given;
    do
    :: slot != NONE -> slot = next[slot]; left++; assert(left <= SLOTS)
    :: else -> break
    od;
    assert(left == SLOTS)
  }
}
