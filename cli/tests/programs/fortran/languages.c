/* The half in C of languages.f90. */
#include <mpi.h>

static MPI_Aint lasting = 42;

MPI_Aint c_sets(int comm, int key)
{
    MPI_Comm_set_attr(MPI_Comm_f2c(comm), key, &lasting);
    return (MPI_Aint)&lasting;
}

MPI_Aint c_gets(int comm, int key)
{
    MPI_Aint *value = 0;
    int flag = 0;
    MPI_Comm_get_attr(MPI_Comm_f2c(comm), key, &value, &flag);
    return flag ? *value : -1;
}

int c_tag(MPI_F08_status *from)
{
    MPI_Status status;
    MPI_Fint plain[MPI_F_STATUS_SIZE];
    if (from == MPI_F08_STATUS_IGNORE && (MPI_Fint *)from == MPI_F_STATUS_IGNORE)
        return MPI_Status_f082c(from, &status) == MPI_ERR_ARG ? -1 : -2;
    if (MPI_Status_f082c(from, &status) || MPI_Status_c2f(&status, plain) || MPI_Status_f2c(plain, &status))
        return -3;
    return status.MPI_TAG == plain[MPI_F_TAG] ? status.MPI_TAG : -4;
}

void c_sends(int comm, int type, int value)
{
    MPI_Request request;
    MPI_Isend(&value, 1, MPI_Type_f2c(type), 0, 17, MPI_Comm_f2c(comm), &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
