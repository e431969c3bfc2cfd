! Calls of `mpi_f08` by a process alone, for ci/instructions: what each costs over the same of mpi_self.c.
!
!     mpi_self_f08 CASE COUNT
!
!     wait      MPI_Irecv and MPI_Isend of 8 bytes to itself, MPI_Wait for both
!     sendrecv  MPI_Sendrecv of 8 bytes with itself
!     test      MPI_Test of a receive that nothing has come for
program mpi_self
    use mpi_f08
    implicit none
    integer, parameter :: bytes = 8, tag = 7
    character(len=16) :: which, number
    integer :: count

    call get_command_argument(1, which)
    call get_command_argument(2, number)
    read (number, *) count
    call MPI_Init()
    select case (which)
    case ('wait')
        call wait_case(count)
    case ('sendrecv')
        call sendrecv_case(count)
    case ('test')
        call test_case(count)
    case default
        error stop 'no such case'
    end select
    call MPI_Finalize()

contains

    subroutine wait_case(count)
        integer, intent(in) :: count
        character, asynchronous :: out(bytes), in(bytes)
        type(MPI_Request) :: receive, send
        integer :: turn

        do turn = 1, count
            call MPI_Irecv(in, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, receive)
            call MPI_Isend(out, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, send)
            call MPI_Wait(receive, MPI_STATUS_IGNORE)
            call MPI_Wait(send, MPI_STATUS_IGNORE)
        end do
    end subroutine

    subroutine sendrecv_case(count)
        integer, intent(in) :: count
        character :: out(bytes), in(bytes)
        integer :: turn

        do turn = 1, count
            call MPI_Sendrecv(out, bytes, MPI_BYTE, 0, tag, in, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
        end do
    end subroutine

    subroutine test_case(count)
        integer, intent(in) :: count
        character, asynchronous :: in(bytes)
        type(MPI_Request) :: request
        logical :: is_done
        integer :: turn

        call MPI_Irecv(in, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, request)
        do turn = 1, count
            call MPI_Test(request, is_done, MPI_STATUS_IGNORE)
        end do
        call MPI_Cancel(request)
        call MPI_Wait(request, MPI_STATUS_IGNORE)
    end subroutine
end program
