/* The list in C, whose answers are wrong in a way that the parameters name: lie=cookie and others. */
#define tagwire_engine_v1 honest
#include "../../../examples/engine_c/list.c"
#undef tagwire_engine_v1

static char lie[32];

static int lies(const char *name) { return strcmp(lie, name) == 0; }

static void *lying_create(uint32_t posted, uint32_t unexpected, const char *parameters, char *error, size_t room) {
  lie[0] = 0;
  if (strncmp(parameters, "lie=", 4) == 0) snprintf(lie, sizeof lie, "%s", parameters + 4);
  else if (*parameters) return create(posted, unexpected, parameters, error, room);
  if (lies("silent")) return NULL;
  if (lies("endless")) { memset(error, 'x', room); return NULL; }
  if (lies("small") && posted > 4) {
    snprintf(error, room, "it holds 4 receives");
    return NULL;
  }
  return create(posted, unexpected, "", error, room);
}

static tw_answer lying_post(void *engine_, tw_key receive, uint32_t cookie) {
  tw_answer answer = post(engine_, receive, cookie);
  if (lies("status")) answer.status = 9;
  if (lies("nothing")) answer.status = TW_NONE;
  if (lies("again") && answer.status == TW_QUEUED) answer.handle = 7;
  return answer;
}

static tw_answer lying_arrive(void *engine_, tw_key message, uint32_t cookie, uint32_t how) {
  engine *it = engine_;
  if (lies("any") && it->posted.first != NIL) return take(&it->posted, it->posted.first);
  tw_answer answer = arrive(engine_, message, cookie, how);
  if (lies("cookie")) answer.cookie += 5;
  if (lies("handle")) answer.handle += 1;
  if (lies("queued") && how == TW_EXPECTED_ONLY) answer.status = TW_QUEUED;
  return answer;
}

static tw_answer lying_look(void *engine_, tw_key receive, tw_key *found, uint32_t taken) {
  tw_answer answer = look(engine_, receive, found, taken);
  if (lies("other")) found->tag = found->tag + 1;
  if (lies("wild")) { found->source = TW_ANY_SOURCE_VALUE; found->tag = TW_ANY_TAG_VALUE; found->context = 1 << 20; }
  return answer;
}

static tw_answer lying_withdraw(void *engine_, uint64_t named, uint32_t unexpected) {
  if (lies("keeps")) return (tw_answer){TW_NONE, 0, 0};
  return withdraw(engine_, named, unexpected);
}

__attribute__((unused)) static void lying_visit(const void *engine_, uint32_t unexpected, void (*each)(void *, tw_key, uint32_t), void *with) {
  tw_key bad = {TW_ANY_SOURCE_VALUE, TW_ANY_TAG_VALUE, UINT32_MAX, 0};
  if (lies("visits")) each(with, bad, 3);
  visit(engine_, unexpected, each, with);
}

#ifndef TABLE
#define TABLE sizeof table, TW_ENGINE_ABI, "lying", "exact"
#endif
#ifndef VISIT
#define VISIT lying_visit
#endif

const tw_engine_v1 *tagwire_engine_v1(void) {
  static const tw_engine_v1 table = {TABLE, lying_create, destroy, lying_post, lying_arrive, lying_look, lying_withdraw,
                                     stats, VISIT, NULL};
  return &table;
}
