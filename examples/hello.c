/* The C interface: every rank sends its number to all ranks, and checks the numbers that it gets.
 *
 *   unisono run -n 2 -- ./hello_c
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unisono/unisono.h>

static int fail(void) {
  fprintf(stderr, "%s\n", unisono_last_error());
  return 1;
}

int main(void) {
  unisono_comm_t comm = NULL;
  int32_t mine;
  int32_t* all;
  int rank;
  int wrong = 0;

  if (unisono_connect(NULL, &comm) != UNISONO_SUCCESS) {
    return fail();
  }
  mine = 100 + unisono_rank(comm);
  all = malloc((size_t)unisono_size(comm) * sizeof(*all));
  if (all == NULL || unisono_all_gather(&mine, all, 1, UNISONO_I32, comm) != UNISONO_SUCCESS) {
    return fail();
  }
  for (rank = 0; rank < unisono_size(comm); ++rank) {
    wrong += all[rank] != 100 + rank;
  }
  printf("rank %d of %d, unisono %s: %d numbers, %d wrong\n", unisono_rank(comm),
         unisono_size(comm), unisono_version(), unisono_size(comm), wrong);
  free(all);
  unisono_comm_free(&comm);
  return wrong == 0 ? 0 : 1;
}
