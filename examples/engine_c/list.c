/* An engine in C to begin with: one list for each queue. Its entries lie in one array for each queue, which grows, and are named by
 * their index. make check builds it and has it checked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tagwire_engine.h"

#define NIL UINT32_MAX

typedef struct {
  tw_key key;
  uint32_t cookie, next, prev;
  uint32_t generation; /* which of the entries that used the place; odd while it is queued */
} entry;

typedef struct {
  entry *entries;
  uint32_t room, used, most; /* places, those that were ever used, the most that there may be */
  uint32_t first, last, free;
  tw_queue_stats stats;
} queue;

typedef struct {
  queue posted, unexpected;
} engine;

static int accepts(tw_key receive, tw_key message) {
  if (receive.context != message.context) return 0;
  if (!(receive.flags & TW_ANY_SOURCE) && receive.source != message.source) return 0;
  return receive.flags & TW_ANY_TAG ? message.tag >= 0 : receive.tag == message.tag;
}

static void clear(queue *q, uint32_t most) {
  memset(q, 0, sizeof *q);
  q->most = most;
  q->first = q->last = q->free = NIL;
}

static uint64_t handle(const queue *q, uint32_t place) { return (uint64_t)q->entries[place].generation << 32 | place; }

/* Returns a place that nothing uses, or NIL. */
static uint32_t place(queue *q) {
  uint32_t found = q->free;
  if (found != NIL) {
    q->free = q->entries[found].next;
    return found;
  }
  if (q->used == q->most) return NIL;
  if (q->used == q->room) {
    uint64_t room = q->room ? 2 * (uint64_t)q->room : 16;
    if (room > q->most) room = q->most;
    entry *entries = realloc(q->entries, room * sizeof *entries);
    if (!entries) return NIL;
    q->entries = entries;
    q->room = (uint32_t)room;
  }
  q->entries[q->used].generation = 0;
  return q->used++;
}

static tw_answer put(queue *q, tw_key key, uint32_t cookie) {
  uint32_t at = place(q);
  if (at == NIL) return (tw_answer){TW_FULL, 0, 0};
  entry *e = &q->entries[at];
  *e = (entry){key, cookie, NIL, q->last, e->generation + 1};
  *(q->last == NIL ? &q->first : &q->entries[q->last].next) = at;
  q->last = at;
  q->stats.queued++;
  if (++q->stats.length > q->stats.high_water) q->stats.high_water = q->stats.length;
  return (tw_answer){TW_QUEUED, 0, handle(q, at)};
}

static tw_answer take(queue *q, uint32_t at) {
  entry *e = &q->entries[at];
  tw_answer answer = {TW_MATCHED, e->cookie, handle(q, at)};
  *(e->prev == NIL ? &q->first : &q->entries[e->prev].next) = e->next;
  *(e->next == NIL ? &q->last : &q->entries[e->next].prev) = e->prev;
  e->generation++;
  e->next = q->free;
  q->free = at;
  q->stats.length--;
  return answer;
}

/* Returns the place of the first entry that fits, or NIL. received: the queue has messages, and key is a receive. */
static uint32_t find(queue *q, tw_key key, int received) {
  for (uint32_t at = q->first; at != NIL; at = q->entries[at].next) {
    tw_key other = q->entries[at].key;
    q->stats.attempts++;
    if (received ? accepts(key, other) : accepts(other, key)) return at;
  }
  return NIL;
}

static uint32_t search(queue *q, tw_key key, int received) {
  int empty = q->first == NIL;
  uint32_t at = find(q, key, received);
  if (at != NIL) q->stats.hits++;
  else if (!empty) q->stats.misses++;
  return at;
}

static uint32_t probe(queue *q, tw_key key, int received) {
  if (q->first != NIL) q->stats.probes++;
  return find(q, key, received);
}

static void *create(uint32_t posted, uint32_t unexpected, const char *parameters, char *error, size_t room) {
  if (*parameters) {
    snprintf(error, room, "it takes no parameters, and is given '%s'", parameters);
    return NULL;
  }
  engine *it = malloc(sizeof *it);
  if (!it) {
    snprintf(error, room, "there is no memory");
    return NULL;
  }
  clear(&it->posted, posted);
  clear(&it->unexpected, unexpected);
  return it;
}

static void destroy(void *engine_) {
  engine *it = engine_;
  free(it->posted.entries);
  free(it->unexpected.entries);
  free(it);
}

static tw_answer post(void *engine_, tw_key receive, uint32_t cookie) {
  engine *it = engine_;
  uint32_t at = search(&it->unexpected, receive, 1);
  return at == NIL ? put(&it->posted, receive, cookie) : take(&it->unexpected, at);
}

static tw_answer arrive(void *engine_, tw_key message, uint32_t cookie, uint32_t how) {
  engine *it = engine_;
  queue *q = &it->posted;
  uint32_t at = how == TW_LOOK ? probe(q, message, 0) : search(q, message, 0);
  if (at == NIL) return how == TW_QUEUE ? put(&it->unexpected, message, cookie) : (tw_answer){TW_NONE, 0, 0};
  return how == TW_LOOK ? (tw_answer){TW_MATCHED, q->entries[at].cookie, handle(q, at)} : take(q, at);
}

static tw_answer look(void *engine_, tw_key receive, tw_key *found, uint32_t taken) {
  queue *q = &((engine *)engine_)->unexpected;
  uint32_t at = taken ? search(q, receive, 1) : probe(q, receive, 1);
  if (at == NIL) return (tw_answer){TW_NONE, 0, 0};
  *found = q->entries[at].key;
  return taken ? take(q, at) : (tw_answer){TW_MATCHED, q->entries[at].cookie, handle(q, at)};
}

static tw_answer withdraw(void *engine_, uint64_t named, uint32_t unexpected) {
  engine *it = engine_;
  queue *q = unexpected ? &it->unexpected : &it->posted;
  uint32_t at = (uint32_t)named;
  int queued = at < q->used && (q->entries[at].generation & 1) && handle(q, at) == named;
  return queued ? take(q, at) : (tw_answer){TW_NONE, 0, 0};
}

static void stats(const void *engine_, tw_stats *into) {
  const engine *it = engine_;
  *into = (tw_stats){it->posted.stats, it->unexpected.stats};
}

static void visit(const void *engine_, uint32_t unexpected, void (*each)(void *, tw_key, uint32_t), void *with) {
  const engine *it = engine_;
  const queue *q = unexpected ? &it->unexpected : &it->posted;
  for (uint32_t at = q->first; at != NIL; at = q->entries[at].next) each(with, q->entries[at].key, q->entries[at].cookie);
}

const tw_engine_v1 *tagwire_engine_v1(void) {
  static const tw_engine_v1 table = {sizeof table, TW_ENGINE_ABI, "list in C", "exact", create, destroy, post,
                                     arrive, look, withdraw, stats, visit, NULL};
  return &table;
}
