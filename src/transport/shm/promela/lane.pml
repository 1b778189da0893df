/* A lane: one writer, one or more readers, a ring of cells (shm/lane.h, shm/layout.h).

   Claims: a reader sees every message whole, once and in order; what a reference points to does not
   change while a reader looks at it; nobody waits for ever, although a reader tells only some of
   its releases. Two things are counted modulo SEQ so that they wrap: positions, and the sequence
   in the headers.

     here              in the code
     sequence, count   Cell::header: header_sequence, header_cells (written in one store)
     payload           Cell::payload; it holds the position that it was written for
     region            memory behind a Reference that the writer shares; changed once it is drained
     head[r]           Head::cells of reader r
     next, released    LaneWriter::next_, released_
     unreported            LaneReader::unreported_
     CELLS, UNTOLD     kCells, kUnreportedCells; LONGEST is the longest message in cells (kInlineCells)

   A wait is a guard here: it looks again when something changes. Sleep and wake-up are in
   event_counts.pml. A rank that dies is one that takes no further step: what is safe stays safe; that the
   others stop waiting is in abort.pml.

   Steps are the accesses to shared memory in the order that release and acquire keep. Each of the
   mutants about order is what could happen without one of them. */
#ifndef READERS
#define READERS 1
#endif
#if READERS == 1
#define CELLS 4
#define LONGEST 2
#define SEQ 16
#else /* multicast: how many cells a message has changes nothing */
#define CELLS 2
#define LONGEST 1
#define SEQ 8
#endif
#ifndef UNTOLD
#define UNTOLD (CELLS - LONGEST) /* the most that goes well */
#endif
#ifdef SEQUENCE_OF_ONE_LAP
#define FLAG(p) CELL(p)
#else
#define FLAG(p) (p)
#endif

#define AFTER(p, n) ((p + n) % SEQ)
#define DISTANCE(p, q) ((p + SEQ - q) % SEQ) /* from q on to p */
#define CELL(p) ((p) % CELLS)
#ifdef ONE_CELL_TOO_MANY
#define FITS(seen, n) (DISTANCE(next, AFTER(seen, 1)) + n <= CELLS + 1)
#else
#define FITS(seen, n) (DISTANCE(next, AFTER(seen, 1)) + n <= CELLS)
#endif
#define BEHIND(seen, mark) (DISTANCE(seen, AFTER(mark, SEQ - 1)) < SEQ / 2)
#if READERS == 1
#define ALL_FIT(n) FITS(head[0], n)
#define ALL_BEHIND(mark) BEHIND(head[0], mark)
#else
#define ALL_FIT(n) (FITS(head[0], n) && FITS(head[1], n))
#define ALL_BEHIND(mark) (BEHIND(head[0], mark) && BEHIND(head[1], mark))
#endif

byte sequence[CELLS];
byte count[CELLS]; /* of cells of the message that begins here, else 0 */
bool refers[CELLS];
byte payload[CELLS];
byte region;
byte head[READERS];

/* LaneWriter::refresh() */
inline refresh() {
  d_step { slowest = AFTER(next, SEQ - 1); reader = 0; }
  do
  :: reader < READERS ->
     d_step {
#ifdef UNSIGNED_COMPARE
       if :: head[reader] < slowest -> slowest = head[reader] :: else fi;
#else
       if
       :: DISTANCE(slowest, head[reader]) > 0 && DISTANCE(slowest, head[reader]) < SEQ / 2 ->
          slowest = head[reader]
       :: else
       fi;
#endif
#ifdef ONLY_ONE_READER
       reader = READERS
#else
       reader++
#endif
     }
  :: else -> break
  od;
  atomic { released = slowest; slowest = 0; reader = 0 }
}

#define WRITE_PAYLOAD payload[CELL(next)] = next
#define WRITE_HEADER(n, by_reference) \
  d_step { sequence[CELL(next)] = FLAG(next); count[CELL(next)] = n; refers[CELL(next)] = by_reference }

/* One cell of LaneWriter::put_bytes() or put_reference() */
inline put_cell(n, by_reference) {
#ifdef HEADER_BEFORE_PAYLOAD
  WRITE_HEADER(n, by_reference);
  WRITE_PAYLOAD;
#else
  WRITE_PAYLOAD;
  WRITE_HEADER(n, by_reference);
#endif
  next = AFTER(next, 1)
}

active proctype Writer() {
  byte next = 1, released = 0, cells, slowest, reader;
  bool by_reference;
  do
  :: if
     :: cells = 1
     :: cells = LONGEST
     :: d_step { cells = 1; by_reference = true }
     fi;
     if /* has_room() */
     :: FITS(released, cells)
     :: else -> refresh();
        if
        :: FITS(released, cells)
        :: else ->
#ifdef ONLY_ONE_READER
           FITS(head[0], cells);
#else
           ALL_FIT(cells);
#endif
           refresh()
        fi
     fi;
     if
     :: by_reference -> region = next
     :: else
     fi;
     put_cell(cells, by_reference);
     if
     :: cells > 1 -> put_cell(0, false)
     :: else
     fi;
     if
     :: by_reference -> /* drained(mark) */
        do
        :: BEHIND(released, next) -> break
        :: else -> refresh();
           if
           :: BEHIND(released, next)
           :: else ->
#ifdef ONLY_ONE_READER
              BEHIND(head[0], next);
#else
              ALL_BEHIND(next);
#endif
           fi
        od;
        atomic { region = 255; by_reference = false }
     :: else
     fi
  od
}

#define TELL(position) head[me] = AFTER(position, SEQ - 1)

proctype Reader(byte me) {
  byte next = 1, unreported = 0, cells;
  bool at_once;
  do
  :: sequence[CELL(next)] == FLAG(next) -> /* arrived() */
     d_step { cells = count[CELL(next)]; at_once = refers[CELL(next)]; }
     assert(cells != 0);
#ifdef RELEASE_BEFORE_READING
     TELL(AFTER(next, cells));
#endif
     assert(payload[CELL(next)] == next);
     if
     :: at_once -> assert(region == next)
     :: else
     fi;
     if
     :: cells > 1 -> /* gather() */
#ifndef UNCHECKED_NEXT_CELLS
        sequence[CELL(AFTER(next, 1))] == FLAG(AFTER(next, 1));
#endif
        assert(payload[CELL(AFTER(next, 1))] == AFTER(next, 1))
     :: else
     fi;
#ifdef REFERENCES_TOLD_LATE
     at_once = false;
#endif
     d_step { /* release() */
       next = AFTER(next, cells);
       unreported = unreported + cells;
       if
       :: at_once || unreported > UNTOLD ->
          unreported = 0;
#ifdef TOLD_ONE_TOO_MANY
          TELL(AFTER(next, 1))
#else
          TELL(next)
#endif
       :: else
       fi;
       cells = 0;
       at_once = false
     }
  od
}

init {
  atomic {
    run Reader(0);
#if READERS > 1
    run Reader(1)
#endif
  }
}
