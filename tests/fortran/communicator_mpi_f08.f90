! B44 with `use mpi_f08`: type(MPI_Comm) goes in as it is, and so does its integer.
program communicator_mpi_f08
    use mpi_f08
    use zero_optimizer
    use checks
    implicit none
    type(zero_t) :: z
    type(MPI_Comm) :: half
    integer :: rank, ranks, code, size, expected
    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)

    call zero_init(z, MPI_COMM_WORLD, '{}')
    call zero_get(z, 'size', size)
    call check(size == ranks, 'size of the world')
    call zero_finalize(z)

    call MPI_Comm_split(MPI_COMM_WORLD, modulo(rank, 2), rank, half)
    call zero_init(z, half%MPI_VAL, '')
    call MPI_Comm_size(half, expected)
    call zero_get(z, 'size', size)
    call check(size == expected, 'size of half the world, by its integer')
    call zero_finalize(z)
    call zero_init(z, half, '')
    call zero_get(z, 'rank', size)
    call check(size == rank/2, 'rank in half the world')
    call zero_set_model_comm(z, MPI_COMM_SELF)
    call zero_finalize(z)

    call zero_init(z, MPI_COMM_NULL, '', code)
    call check(code == ZERO_ERR_ARGUMENT, 'MPI_COMM_NULL is refused')
    call finish()
end program
