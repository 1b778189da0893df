/* Two threads of a rank wait, each for a request of its own, in one communicator (Core::wait in
   comm/call_queue.cc, Waiter::pause in comm/waiter.cc). Whoever drives completes what there is,
   also the other's request, and nobody rings for that.

   Claim: a thread does not sleep when its request is done, although no sleep here has a limit.

     here         in the code
     message[r]   what completes request r has come
     done[r]      RequestState::done
     drive        Core::drive(), under Core::driving_
     sleeping     EventCount::sleeping of the rank
     rung, asleep as in event_counts.pml, which is also about the store buffers that are left out here */
bool message[2];
bool done[2];
byte sleeping;
bool rung[2];
bool asleep[2];

inline drive() {
  atomic {
    advanced = false;
    if
    :: message[0] && !done[0] -> done[0] = true; advanced = true
    :: else
    fi;
    if
    :: message[1] && !done[1] -> done[1] = true; advanced = true
    :: else
    fi
  }
}

proctype Thread(bit me) {
  bool advanced;
  do
  :: done[me] -> break
  :: else -> drive();
     if
     :: advanced
     :: else ->
        if
        :: done[me]
        :: else -> /* pause() */
           rung[me] = false;
           sleeping++;
           drive();
           if
           :: advanced
#ifndef DONE_NOT_LOOKED_AT
           :: !advanced && done[me]
#endif
           :: else ->
              if
              :: atomic { !rung[me] -> asleep[me] = true };
                 !asleep[me]
              :: else
              fi
           fi;
           sleeping--
        fi
     fi
  od
}

active proctype Sender() {
  bit first;
  if
  :: first = 0
  :: first = 1
  fi;
  message[first] = true;
again:
  if
  :: sleeping != 0 ->
     atomic { rung[0] = true; rung[1] = true }
     atomic { asleep[0] = false; asleep[1] = false }
  :: else
  fi;
  if
  :: !message[1 - first] -> message[1 - first] = true; goto again
  :: else
  fi
}

init {
  atomic { run Thread(0); run Thread(1) }
}
