/* The pool: a stack of free slots without a lock (Pool::take, Pool::give in shm/pool.h).

   Claims: no slot is held by two threads; none is lost.

     here              in the code
     top, changes      Pool::top_, whose upper half counts its changes; one word, compared as one
     next[s]           Pool::next_[s], the slot below s
     held[s]           that a thread has taken s and not given it back; only here

   Each thread does ROUNDS rounds of taking up to two slots and giving them back, so `changes` does
   not come round; 32 bits do not either while one thread is between a look and its exchange. */
#define SLOTS 3
#define NONE SLOTS
#define THREADS 2
#define ROUNDS 2

byte top = 0, changes = 0;
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

inline take(slot) {
  look();
  do
  :: seen != NONE ->
     below = next[seen];
     if
     :: atomic { SAME -> top = below; changes++; slot = seen; assert(!held[slot]); held[slot] = true };
        break
     :: atomic { else -> seen = top; seen_changes = changes }
     fi
  :: else -> slot = NONE; break
  od;
  atomic { seen = 0; seen_changes = 0; below = 0 }
}

inline give(slot) {
  look();
  held[slot] = false;
  do
  :: 
#ifndef LINKED_AFTER_THE_EXCHANGE
     next[slot] = seen;
#endif
     if
     :: atomic { SAME -> top = slot; changes++ };
        break
     :: atomic { else -> seen = top; seen_changes = changes }
     fi
  od;
#ifdef LINKED_AFTER_THE_EXCHANGE
  next[slot] = seen;
#endif
  atomic { seen = 0; seen_changes = 0 }
}

proctype Thread() {
  byte one, two, seen, seen_changes, below, round;
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
    next[1] = 2;
    next[2] = NONE;
    run Thread();
    run Thread()
  }
  ended == THREADS;
  atomic { /* every slot is there again */
    slot = top;
    do
    :: slot != NONE -> slot = next[slot]; left++; assert(left <= SLOTS)
    :: else -> break
    od;
    assert(left == SLOTS)
  }
}
