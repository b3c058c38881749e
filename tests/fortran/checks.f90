! Counting checks: prints what failed, with the rank; finish() tells all ranks and stops with 1 when any failed.
module checks
    use mpi
    implicit none
    private
    public :: check, finish
    integer, save :: failures = 0
contains
    subroutine check(right, what)
        logical, intent(in) :: right
        character(len=*), intent(in) :: what
        integer(kind(MPI_COMM_WORLD)) :: rank, ierr
        if (right) return
        failures = failures + 1
        call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
        print '(a, i0, 2a)', 'rank ', rank, ' failed: ', what
    end subroutine

    subroutine finish()
        integer(kind(MPI_COMM_WORLD)) :: mine, all, ierr
        mine = int(min(failures, 1000), kind(mine))
        call MPI_Allreduce(mine, all, 1_4, MPI_INTEGER4, MPI_SUM, MPI_COMM_WORLD, ierr)
        call MPI_Finalize(ierr)
        if (all > 0) stop 1, quiet=.true.
    end subroutine
end module checks
