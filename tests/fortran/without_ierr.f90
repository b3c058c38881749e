! A failing call without ierr ends the program through MPI_Abort; run by without_ierr.sh, which wants that.
program without_ierr
    use mpi
    use zero_optimizer
    implicit none
    type(zero_t) :: z
    integer :: ierr
    call MPI_Init(ierr)
    call zero_init(z, MPI_COMM_WORLD, '')
    call zero_step(z)
    print '(a)', 'still alive'
end program
