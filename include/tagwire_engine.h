/* An engine of message matching in a shared library, for Tagwire: docs/engines.md.
 *
 * A library has one symbol, tagwire_engine_v1, and is named by its path: --engine ./libmine.so:bins=64. An engine holds two queues:
 * receives that are posted and have no message yet, and unexpected messages that have no receive yet. The rules are those of
 * MPI-5.0, sections 3.2.4 and 3.5:
 *
 *   - a message goes to the earliest posted receive that accepts it;
 *   - a receive takes the earliest arrived message that it accepts;
 *   - contexts never mix; any source and any tag obey the same order as exact receives;
 *   - any tag never takes a message with a negative tag: such tags are the library's own.
 *
 * Calls of one engine never overlap, and may come from different threads. None may block, end the process or throw. Pointers that
 * a call is given are valid until it returns. The process is trusted to the engine's code, but its answers are checked, unless
 * the parameters have guard=off: an answer that cannot be ends the program with what was answered.
 */
#ifndef TAGWIRE_ENGINE_H
#define TAGWIRE_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a message says of itself, or what a receive accepts. */
typedef struct {
  uint32_t source; /* TW_ANY_SOURCE_VALUE where any is accepted */
  int32_t tag;     /* TW_ANY_TAG_VALUE where any is accepted; negative: the library's own */
  uint32_t context;
  uint32_t flags; /* of a receive: TW_ANY_SOURCE, TW_ANY_TAG */
} tw_key;

enum { TW_ANY_SOURCE = 1, TW_ANY_TAG = 2 };
#define TW_ANY_SOURCE_VALUE UINT32_MAX
#define TW_ANY_TAG_VALUE INT32_MIN

/* What became of a call. */
typedef struct {
  uint32_t status;
  uint32_t cookie; /* TW_MATCHED: of the entry that was found */
  uint64_t handle; /* TW_QUEUED: names the new entry; TW_MATCHED: that of the entry that was found */
} tw_answer;

enum {
  TW_NONE = 0,    /* nothing was found, and nothing changed */
  TW_QUEUED = 1,  /* the receive or message is queued */
  TW_MATCHED = 2, /* an entry was found */
  TW_FULL = 3     /* the queue has as many entries as create allowed, and nothing changed */
};

/* What a queue has seen. */
typedef struct {
  uint64_t length;     /* entries now */
  uint64_t queued;     /* entries that were ever put into it */
  uint64_t high_water; /* the most entries at once */
  uint64_t hits;       /* searches that took an entry */
  uint64_t misses;     /* searches that went through a queue with entries and took none */
  uint64_t probes;     /* searches of a queue with entries that leave what they find */
  uint64_t attempts;   /* entries that searches looked at */
} tw_queue_stats;

typedef struct {
  tw_queue_stats posted;
  tw_queue_stats unexpected;
} tw_stats;

/* How a message arrives. */
enum {
  TW_QUEUE = 0,         /* it takes a receive, or is queued */
  TW_EXPECTED_ONLY = 1, /* it takes a receive, or nothing happens */
  TW_LOOK = 2           /* the receive that it would take is found, and stays */
};

/* What a context promised: no receive or probe uses it. It may be broken, and changes no outcome. */
enum { TW_NO_ANY_SOURCE = 1, TW_NO_ANY_TAG = 2, TW_OVERTAKING = 4 };

typedef struct {
  uint32_t size; /* sizeof(tw_engine_v1): new members come behind */
  uint32_t abi;  /* TW_ENGINE_ABI */
  const char *name;
  const char *grade; /* "exact": the rules above; "mpi": order among the messages of one source and context alone; "free": none */

  /* Makes an engine, empty, whose queues hold at most so many entries. parameters: what stands behind the colon of its name, "" where
   * nothing does. NULL where it cannot be, with the reason as text in error, which has room for so many bytes. */
  void *(*create)(uint32_t posted, uint32_t unexpected, const char *parameters, char *error, size_t room);
  void (*destroy)(void *engine);

  /* A receive is posted: takes a message (TW_MATCHED), or is queued (TW_QUEUED, TW_FULL). */
  tw_answer (*post)(void *engine, tw_key receive, uint32_t cookie);

  /* A message arrives: takes a receive (TW_MATCHED), or is queued (TW_QUEUED, TW_FULL), or not (TW_NONE), as how says. */
  tw_answer (*arrive)(void *engine, tw_key message, uint32_t cookie, uint32_t how);

  /* Finds the message that such a receive would take (TW_MATCHED, with what it is in found) or TW_NONE; takes it out where take is
   * not 0. */
  tw_answer (*look)(void *engine, tw_key receive, tw_key *found, uint32_t take);

  /* Takes out the entry of a handle: of an unexpected message, or of a posted receive where unexpected is 0. TW_MATCHED, or
   * TW_NONE where the handle names nothing (any more). */
  tw_answer (*withdraw)(void *engine, uint64_t handle, uint32_t unexpected);

  void (*stats)(const void *engine, tw_stats *stats);

  /* Calls each for each entry of a queue, earliest first. */
  void (*visit)(const void *engine, uint32_t unexpected, void (*each)(void *with, tw_key key, uint32_t cookie), void *with);

  /* May be NULL. promises: TW_NO_ANY_SOURCE and the others. */
  void (*promise)(void *engine, uint32_t context, uint32_t promises);
} tw_engine_v1;

#define TW_ENGINE_ABI 1

/* The library's one symbol. What it returns stays as long as the library. */
const tw_engine_v1 *tagwire_engine_v1(void);

#ifdef __cplusplus
}
#endif

#endif
