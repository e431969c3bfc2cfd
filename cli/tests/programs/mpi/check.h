/* What the test programs have in common: a check that says where it failed. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                             \
    do {                                                                             \
        if (!(condition)) {                                                          \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);  \
            MPI_Abort(MPI_COMM_WORLD, 9);                                            \
        }                                                                            \
    } while (0)

#define OK(call) CHECK((call) == MPI_SUCCESS)

#endif
