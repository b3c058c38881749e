! inversion: finds the conductivity in every cell of a plate from photographs of its temperature, over the ranks of MPI,
! with the unknown field and its optimizer held by libzero. Writes the true field and the recovered one as a picture.
program inversion
    use, intrinsic :: iso_fortran_env, only: real64, output_unit, error_unit
    use mpi
    use descent, only: start_descent, descend, fetch_field, print_memory, end_descent
    use experiments, only: set_up_experiments, observe
    use gradient_check, only: largest_gradient_error
    use options, only: options_t, read_options, print_help
    use pictures, only: write_pictures
    use plate, only: set_up_plate
    use true_field, only: make_true_field
    implicit none
    type(options_t) :: chosen
    integer :: rank, ranks, ierr, status
    real(real64), allocatable, target :: true_values(:, :), recovered(:, :)

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    call run(status)
    call MPI_Finalize(ierr)
    ! `stop` takes no variable in Fortran 2008.
    if (status == 1) stop 1
    if (status == 2) stop 2

contains

    subroutine run(status)
        integer, intent(out) :: status
        character(len=:), allocatable :: problem
        status = 0
        call read_options(chosen, problem)
        if (problem /= '') then
            if (rank == 0) write (error_unit, '(2a)') 'inversion: ', problem
            status = 2
        else if (chosen%help) then
            if (rank == 0) call print_help()
        else
            call set_up_plate(chosen%size)
            call set_up_experiments(rank, ranks, chosen%experiments)
            call make_observations()
            if (chosen%check_gradient) call check_gradient(status)
            if (.not. chosen%check_gradient) call invert()
        end if
    end subroutine

    subroutine invert()
        call start_descent(MPI_COMM_WORLD, chosen)
        call descend(chosen)
        call print_memory(chosen%stage)
        call draw()
        call end_descent()
    end subroutine

    subroutine make_observations()
        allocate (true_values(chosen%size, chosen%size))
        call make_true_field(true_values)
        call observe(true_values)
        deallocate (true_values)
    end subroutine

    subroutine check_gradient(status)
        integer, intent(out) :: status
        real(real64), parameter :: allowed = 1.0e-6_real64
        real(real64) :: own, largest
        own = largest_gradient_error(chosen%size)
        call MPI_Allreduce(own, largest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierr)
        if (rank == 0) write (output_unit, '(a, es9.2, a, es8.1)') &
            'adjoint against central differences: largest relative difference ', largest, ', allowed ', allowed
        status = merge(0, 1, largest <= allowed)
    end subroutine

    subroutine draw()
        allocate (recovered(merge(chosen%size, 0, rank == 0), merge(chosen%size, 0, rank == 0)))
        call fetch_field(recovered)
        if (rank /= 0) return
        allocate (true_values(chosen%size, chosen%size))
        call make_true_field(true_values)
        write (output_unit, '(a, f7.4)') 'root mean square error of the conductivity', &
            sqrt(sum((recovered - true_values)**2) / size(recovered))
        call write_pictures(trim(chosen%picture), true_values, recovered)
        write (output_unit, '(2a)') 'the true field and, to its right, the recovered one: ', trim(chosen%picture)
    end subroutine
end program inversion
