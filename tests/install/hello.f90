program hello
    use mpi
    use zero_optimizer
    double precision, target :: w(4) = [4, 3, 2, 1]  ! minimise |w|^2 / 2: the gradient is w itself
    type(zero_t) :: z
    integer :: id, step, ierr
    call MPI_Init(ierr)
    call zero_init(z, MPI_COMM_WORLD, '{"zero_optimization": {"stage": 2}, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}}')
    call zero_register(z, 'w', w, id)
    call zero_commit(z)
    do step = 1, 100
        call zero_reduce(z, id, w)
        call zero_step(z)
    end do
    print '(a, 4es10.3)', 'w = ', w
    call zero_finalize(z)
    call MPI_Finalize(ierr)
end program
