/* The pool: free slots in three stacks without a lock (Pool::take, take_spare and give in
   shm/pool.h).

   Claims: no slot is held by two threads; none is lost.

     here              in the code
     top, changes      Pool::free_ and spare_, whose upper half counts their changes; one word each,
                       compared as one
     given             Pool::given_
     fresh             Pool::fresh_
     next[s]           Pool::next_[s], the slot below s in its stack
     held[s]           that a thread has taken s and not given it back; only here
     ROUND             kSlotsPerRound

   Each thread does ROUNDS rounds of taking up to two slots and giving them back, so `changes` does
   not come round; 32 bits do not either while one thread is between a look and its exchange. */
#define SLOTS 4
#define NONE SLOTS
#define ROUND 2
#define THREADS 2
#define ROUNDS 2

#define FREE 0
#define SPARE 1
byte top[2], changes[2];
byte given = NONE;
byte fresh = ROUND;
byte next[SLOTS];
bool held[SLOTS];
byte ended;

#ifdef CHANGES_NOT_COUNTED
#define SAME(stack) (top[stack] == seen)
#else
#define SAME(stack) (top[stack] == seen && changes[stack] == seen_changes)
#endif

inline look(stack) {
  atomic { seen = top[stack]; seen_changes = changes[stack] }
}

inline hold(slot) {
  assert(!held[slot]);
  held[slot] = true
}

inline pop(stack, slot) {
  look(stack);
  do
  :: seen != NONE ->
     below = next[seen];
     if
     :: atomic { SAME(stack) -> top[stack] = below; changes[stack]++; slot = seen; hold(slot) };
        break
     :: atomic { else -> seen = top[stack]; seen_changes = changes[stack] }
     fi
  :: else -> slot = NONE; break
  od;
  atomic { seen = 0; seen_changes = 0; below = 0 }
}

inline push(stack, first, last) {
  look(stack);
  do
  :: 
#ifndef LINKED_AFTER_THE_EXCHANGE
     next[last] = seen;
#endif
     if
     :: atomic { SAME(stack) -> top[stack] = first; changes[stack]++ };
        break
     :: atomic { else -> seen = top[stack]; seen_changes = changes[stack] }
     fi
  od;
#ifdef LINKED_AFTER_THE_EXCHANGE
  next[last] = seen;
#endif
  atomic { seen = 0; seen_changes = 0 }
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
     push(FREE, above, last)
  :: else
  fi;
  atomic { below = 0; above = 0; last = 0 }
}

inline take(slot) {
  pop(FREE, slot);
  if
  :: slot == NONE -> begin_round(slot)
  :: else
  fi;
  if
  :: slot == NONE -> pop(SPARE, slot)
  :: else
  fi;
  if
  :: atomic { slot == NONE && fresh < SLOTS -> slot = fresh; fresh++; hold(slot) }
  :: else
  fi
}

inline give(slot) {
  held[slot] = false;
  if
  :: slot >= ROUND -> push(SPARE, slot, slot)
  :: else ->
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
  fi
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

inline count(first) {
  slot = first;
  do
  :: slot != NONE -> slot = next[slot]; left++; assert(left <= SLOTS)
  :: else -> break
  od
}

init {
  byte slot, left;
  atomic {
    next[0] = 1;
    next[1] = NONE;
    next[2] = NONE;
    next[3] = NONE;
    top[SPARE] = NONE;
    run Thread();
    run Thread()
  }
  ended == THREADS;
  atomic { /* every slot is there again */
    left = SLOTS - fresh;
    count(top[FREE]);
    count(top[SPARE]);
    count(given);
    assert(left == SLOTS)
  }
}
