/* The slots of a lane: lent with a message, taken back when all have read it, by the lane's own
   thread or by another thread of the rank (LaneWriter::lend, reclaim, reclaim_from_outside,
   give_back; ShmTransport::reserve).

   Claims: no slot is written while a reader may still read it; none is given back twice; the writer
   gets slots again whenever its readers have read, however many short messages went by meanwhile.
   Positions are counted modulo SEQ, so an old position comes to lie "ahead" when SEQ / 2 more
   cells have passed.

     here                 in the code
     flag, slot_of        Cell::header, and Reference::offset in its payload (SHORT: bytes instead)
     content[s]           the memory of slot s; it holds the position that it was written for
     in_pool[s]           the pool, as a set: pool.pml is about how it is made
     lent_slot, lent_position, lent_begin, lent_end    LaneWriter::lent_, lent_begin_, lent_end_
     head[r], next, released                           as in lane.pml
     missed[t]            stands for the comparison in compare_exchange: lent_begin has changed since
                          thread t read it. The counter in the code does not come round in that time.
     PER_LANE             kSlotsPerLane

   Outsider is a thread that works for another group of the rank: it takes back what this lane no
   longer needs (TransportRegistry::reclaim), and writes into slots of its own. */
#ifndef READERS
#define READERS 1
#endif
#ifndef PER_LANE
#define PER_LANE 1
#endif
#define CELLS 2
#define SEQ 8
#define LAPS (2 * PER_LANE) /* lent_begin and lent_end are counted modulo LAPS */
#if PER_LANE == 2
#define SLOTS 3
#else
#define SLOTS 2
#endif
#define SHORT 255
#define OTHER 254

#define OWNER 0
#define OUTSIDER 1

#define AFTER(p, n) ((p + n) % SEQ)
#define DISTANCE(p, q) ((p + SEQ - q) % SEQ)
#define CELL(p) ((p) % CELLS)
#define FITS(seen) (DISTANCE(next, AFTER(seen, 1)) + 1 <= CELLS)
#define BEHIND(seen, mark) (DISTANCE(seen, AFTER(mark, SEQ - 1)) < SEQ / 2)
#define LENT ((lent_end + LAPS - lent_begin) % LAPS)
#ifdef ONE_TOO_EARLY
#define READ_BY(r, mark) BEHIND(head[r], AFTER(mark, SEQ - 1))
#else
#define READ_BY(r, mark) BEHIND(head[r], mark)
#endif
#if READERS == 1
#define ALL_FIT FITS(head[0])
#define READ_BY_ALL(mark) READ_BY(0, mark)
#else
#define ALL_FIT (FITS(head[0]) && FITS(head[1]))
#define READ_BY_ALL(mark) (READ_BY(0, mark) && READ_BY(1, mark))
#endif
/* What no other thread can see half done is one step. */
#ifdef WITH_OUTSIDER
#define ALONE
#else
#define ALONE atomic
#endif

byte flag[CELLS];
byte slot_of[CELLS];
byte content[SLOTS];
bool in_pool[SLOTS] = true;
byte lent_slot[PER_LANE];
byte lent_position[PER_LANE];
byte lent_begin, lent_end;
byte head[READERS];
bool missed[2];

inline take(slot) { /* SHORT: the pool is empty. Which of its slots it is does not matter. */
  d_step {
    if
    :: in_pool[0] -> slot = 0
    :: !in_pool[0] && in_pool[1] -> slot = 1
#if SLOTS > 2
    :: !in_pool[0] && !in_pool[1] && in_pool[2] -> slot = 2
#endif
    :: else -> slot = SHORT
    fi;
    if
    :: slot != SHORT -> in_pool[slot] = false
    :: else
    fi
  }
}

inline give(slot) {
  atomic { assert(!in_pool[slot]); in_pool[slot] = true; content[slot] = 0; slot = SHORT }
}

/* LaneWriter::refresh(), and what it does for slots that have been read: their position follows,
   so that it does not come to lie ahead. */
inline refresh() {
  ALONE {
  d_step { slowest = AFTER(next, SEQ - 1); i = 0 }
  do
  :: i < READERS ->
     d_step {
       if
       :: DISTANCE(slowest, head[i]) > 0 && DISTANCE(slowest, head[i]) < SEQ / 2 ->
          slowest = head[i]
       :: else
       fi;
#ifdef ONLY_ONE_READER
       i = READERS
#else
       i++
#endif
     }
  :: else -> break
  od;
  atomic { released = slowest; slowest = 0; i = lent_begin }
#ifndef OLD_POSITIONS_STAY
  do
  :: i != lent_end ->
     if
     :: BEHIND(released, lent_position[i % PER_LANE]) ->
        lent_position[i % PER_LANE] = AFTER(released, 1)
     :: else
     fi;
     i = (i + 1) % LAPS
  :: else -> break
  od;
#endif
  i = 0
  }
}

/* give_back(); `is_free`: what this thread knows of the readers, behind() or read_by_all(). */
inline give_back(thread, is_free) {
  ALONE {
  d_step { begin = lent_begin; missed[thread] = false }
  do
  :: begin != lent_end ->
#ifdef SLOT_READ_LATE
     position = lent_position[begin % PER_LANE];
#else
     slot = lent_slot[begin % PER_LANE];
     position = lent_position[begin % PER_LANE];
#endif
     if
     :: is_free ->
#ifdef GIVEN_WITHOUT_EXCHANGE
        missed[thread] = false;
#endif
        if
        :: d_step { !missed[thread] ->
             lent_begin = (begin + 1) % LAPS; missed[1 - thread] = true; begin = lent_begin }
#ifdef SLOT_READ_LATE
           slot = lent_slot[(begin + LAPS - 1) % PER_LANE];
#endif
           give(slot)
        :: d_step { missed[thread] -> begin = lent_begin; missed[thread] = false }
        fi
     :: else -> break
     fi
  :: else -> break
  od;
  atomic { slot = SHORT; position = 0; begin = 0 }
  }
}

inline lend() {
#ifdef LENT_BEFORE_WRITTEN
  atomic { lent = lent_end; lent_end = (lent_end + 1) % LAPS }
  lent_slot[lent % PER_LANE] = mine;
  lent_position[lent % PER_LANE] = next;
  lent = 0
#else
  lent_slot[lent_end % PER_LANE] = mine;
  lent_position[lent_end % PER_LANE] = next;
  lent_end = (lent_end + 1) % LAPS
#endif
}

inline put_cell(what) { /* lane.pml is about its steps */
  d_step { slot_of[CELL(next)] = what; flag[CELL(next)] = next }
}

active proctype Owner() {
  byte next = 1, released = 0, mine = SHORT, slot = SHORT, position, begin, slowest, i, lent;
  do
  :: if /* has_room(1), and where not: refresh until there is */
     :: FITS(released)
     :: else -> ALL_FIT; refresh()
     fi;
     if
#ifndef WITH_OUTSIDER
     :: put_cell(SHORT); next = AFTER(next, 1)
#endif
     :: /* reserve() */
        do
        :: give_back(OWNER, BEHIND(released, position));
           if
           :: LENT < PER_LANE -> break
           :: else -> refresh();
              give_back(OWNER, BEHIND(released, position));
              if
              :: LENT < PER_LANE -> break
              :: else -> LENT < PER_LANE || READ_BY_ALL(lent_position[lent_begin % PER_LANE])
              fi
           fi
        od;
        take(mine);
        assert(mine != SHORT);
#ifdef WRITTEN_PAST_THE_FENCE
        put_cell(mine);
        content[mine] = next;
#else
        content[mine] = next; /* streamed; fence_streaming() */
        put_cell(mine);
#endif
        next = AFTER(next, 1);
        lend();
        mine = SHORT
     fi
  od
}

proctype Reader(byte me) {
  byte next = 1, what;
  do
  :: d_step { flag[CELL(next)] == next -> what = slot_of[CELL(next)] }
     if
     :: what != SHORT ->
#ifdef RELEASE_BEFORE_READING
        head[me] = next;
#endif
        assert(content[what] == next)
     :: else
     fi;
     d_step { head[me] = next; next = AFTER(next, 1); what = 0 }
  od
}

proctype Outsider() {
  byte slot = SHORT, position, begin;
  do
  :: give_back(OUTSIDER, READ_BY_ALL(position))
  :: take(slot);
     if
     :: slot != SHORT -> content[slot] = OTHER; give(slot)
     :: else
     fi
  od
}

init {
  atomic {
    run Reader(0);
#if READERS > 1
    run Reader(1);
#endif
#ifdef WITH_OUTSIDER
    run Outsider()
#endif
  }
}
