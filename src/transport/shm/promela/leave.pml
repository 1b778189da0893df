/* A rank that closes its world in good order while others wait for it (Core::look_around and
   look_for_leaver in diagnose/diagnosis.cc, World::~World and has_left in comm/world.cc).

   Claims: who waits for a rank that left without sending says so; nobody says so of a rank that sent
   all it owed before it left.

     here        in the code
     entered[p]  the newest entry of the board of peer p is this operation's (collectives only)
     sent[p]     the message of peer p is in the lane
     left[p]     EventCount::left of peer p, which is written last
     got[p]      this rank has taken the message

   Collectives ask the board: who has entered an operation sends all that it owes before it leaves.
   TRANSFERS (send and recv) have no board, so they look at the lane again after they have seen that
   the peer has left. Each of the THREADS takes whatever comes, for all of them.

   A wait is a guard here: it looks again when there is something new, and EARLY times before that. */
#ifndef THREADS
#define THREADS 1
#endif
#define PEERS 2
#define EARLY 2

bool entered[PEERS], sent[PEERS], left[PEERS], got[PEERS];

#ifdef SEEN_BY_ANYBODY
byte times_seen; /* one count for all waits and all peers */
#endif

proctype Peer(byte me) {
  if
  :: entered[me] = true;
     sent[me] = true
  :: skip
  fi;
  left[me] = true
}

inline poll() {
  d_step {
    got[0] = sent[0];
    got[1] = sent[1]
  }
}

#define SAY_THAT_IT_LEFT assert(!sent[peer]); goto raised

proctype Waiter(byte first; byte last) {
  byte peer = first, seen = PEERS, early;
  do
  :: peer > last -> break
  :: else ->
     do
     :: poll();
        if
        :: got[peer] -> break
        :: else
        fi;
        if
        :: sent[peer] || left[peer]
        :: early < EARLY -> early++
        fi;
#if defined(TRANSFERS) && defined(SEEN_BY_ANYBODY)
        if
        :: atomic { left[peer] && times_seen == 0 -> times_seen = 1 }
        :: left[peer] && times_seen == 1 -> SAY_THAT_IT_LEFT
        :: atomic { !left[peer] -> times_seen = 0 }
        fi
#elif defined(TRANSFERS)
        if
        :: left[peer] ->
#ifndef NO_LOOK_AFTER_LEAVING
           if
           :: seen != peer -> seen = peer
           :: else -> SAY_THAT_IT_LEFT
           fi
#else
           SAY_THAT_IT_LEFT
#endif
        :: else
        fi
#elif defined(BOARD_BEFORE_LEFT)
        if
        :: !entered[peer] ->
           if
           :: left[peer] -> SAY_THAT_IT_LEFT
           :: else
           fi
        :: else
        fi
#else
        if
        :: left[peer] ->
           if
           :: !entered[peer] -> SAY_THAT_IT_LEFT
           :: else
           fi
        :: else
        fi
#endif
     od;
     peer++
  od;
raised:
}

init {
  atomic {
    run Peer(0);
    run Peer(1);
#if THREADS == 1
    run Waiter(0, 1)
#else
    run Waiter(0, 0);
    run Waiter(1, 1)
#endif
  }
}
