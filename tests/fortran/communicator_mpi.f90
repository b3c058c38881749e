! B44 with `use mpi`: the world, half of it, and MPI_COMM_NULL.
program communicator_mpi
    use mpi
    use checks
    use zero_optimizer
    implicit none
    type(zero_t) :: z
    integer :: rank, ranks, half, ierr, code, size, expected
    character(len=200) :: text
    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)

    call zero_init(z, MPI_COMM_WORLD, '')
    call zero_get(z, 'size', size)
    call check(size == ranks, 'size of the world')
    call zero_finalize(z)

    call MPI_Comm_split(MPI_COMM_WORLD, modulo(rank, 2), rank, half, ierr)
    call zero_init(z, half, '')
    call MPI_Comm_size(half, expected, ierr)
    call MPI_Comm_free(half, ierr)              ! the library has its own duplicate
    call zero_get(z, 'size', size)
    call check(size == expected, 'size of half the world')
    call zero_commit(z)
    call zero_finalize(z)

    call zero_init(z, MPI_COMM_NULL, '', code)
    call check(code == ZERO_ERR_ARGUMENT, 'MPI_COMM_NULL is refused')
    call zero_error_text(text)
    call check(index(text, 'MPI_COMM_NULL') > 0, 'and the sentence says so')
    call zero_step(z, code)
    call check(code == ZERO_ERR_ARGUMENT, 'the handle of a failed init is none')
    call finish()
end program
