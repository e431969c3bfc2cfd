/* A client of eight calls of PMIx, for bench/start.py: what a launcher with PMIx takes beyond /bin/true for any program that
   exchanges a value over it. Usage: pmix_client LIBRARY. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Of the PMIx standard, version 4.1, chapter 3. */
typedef struct { char namespace[256]; unsigned rank; } process;
typedef struct { char *bytes; unsigned long size; } bytes;
typedef struct {
    unsigned short type;
    union { unsigned number; bytes object; long long room[3]; } data;
} value;

enum { BYTES = 27, GLOBAL = 3, WILDCARD = -2 };

#define CALL(name, ...) ((int (*)(__VA_ARGS__))dlsym(library, #name))
#define CHECK(call) do { int status = (call); if (status) { fprintf(stderr, "%s: %d\n", #call, status); return 1; } } while (0)

int main(int count, char **words) {
    void *library = dlopen(count > 1 ? words[1] : "libpmix.so.2", RTLD_NOW);
    if (!library)
        return fprintf(stderr, "%s\n", dlerror()), 1;
    int (*init)(process *, void *, unsigned long) = CALL(PMIx_Init, process *, void *, unsigned long);
    int (*get)(process *, const char *, void *, unsigned long, value **) =
        CALL(PMIx_Get, process *, const char *, void *, unsigned long, value **);
    int (*put)(unsigned char, const char *, value *) = CALL(PMIx_Put, unsigned char, const char *, value *);
    int (*commit)(void) = CALL(PMIx_Commit, void);
    int (*fence)(void *, unsigned long, void *, unsigned long) = CALL(PMIx_Fence, void *, unsigned long, void *, unsigned long);
    int (*finalize)(void *, unsigned long) = CALL(PMIx_Finalize, void *, unsigned long);

    process own, other;
    char card[700];
    value *found, mine = { BYTES, { .object = { card, sizeof card } } };
    CHECK(init(&own, NULL, 0));
    other = own;
    other.rank = WILDCARD;
    CHECK(get(&other, "pmix.job.size", NULL, 0, &found));
    unsigned size = found->data.number;
    memset(card, own.rank, sizeof card);
    CHECK(put(GLOBAL, "client.card", &mine));
    CHECK(commit());
    CHECK(fence(NULL, 0, NULL, 0));
    other.rank = (own.rank + 1) % size;
    CHECK(get(&other, "client.card", NULL, 0, &found));
    CHECK(fence(NULL, 0, NULL, 0));
    CHECK(finalize(NULL, 0));
    return 0;
}
