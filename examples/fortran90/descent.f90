! The descent, where the simulator meets libzero: libzero holds the conductivity and Adam's moments and updates them;
! this module gives it a gradient per rank and looks at the values only between zero_gather and zero_release. The same
! lines serve every stage. In stage 3 a rank has the whole field only between the two.
module descent
    use, intrinsic :: iso_fortran_env, only: real64, int64, output_unit
    use mpi
    use zero_optimizer
    use experiments, only: find_misfit, find_misfit_and_gradient
    use options, only: options_t
    use plate, only: cells, lowest_conductivity, highest_conductivity
    implicit none
    private
    public :: start_descent, descend, fetch_field, print_memory, end_descent

    real(real64), parameter :: start_conductivity = 1.0_real64

    type(zero_t) :: z
    integer :: field  ! libzero's number of the conductivity
    integer :: communicator, rank, ranks
    real(real64) :: start_time
    real(real64), target, save :: first_misfit = 0

contains

    subroutine start_descent(comm, chosen)
        integer, intent(in) :: comm
        type(options_t), intent(in) :: chosen
        integer :: group, ierr
        communicator = comm
        call MPI_Comm_rank(comm, rank, ierr)
        call MPI_Comm_size(comm, ranks, ierr)
        start_time = MPI_Wtime()
        call zero_init(z, comm, configuration(chosen))
        call zero_group(z, limits(), group)
        call zero_register(z, 'conductivity', ZERO_F64, [cells, cells], field, group)
        call zero_commit(z)
        call zero_fill(z, field, 'constant', start_conductivity)
        ! Travels in the checkpoint: a run that goes on needs the misfit of the start to say how far it has fallen.
        call zero_attach(z, 'first misfit', first_misfit, ZERO_REPLICATED)
        if (chosen%resume) call load_newest(chosen)
    end subroutine

    subroutine descend(chosen)
        type(options_t), intent(in) :: chosen
        integer :: step, ierr
        real(real64) :: misfit
        call zero_get(z, 'step', step)
        do while (step < chosen%steps)
            call update(misfit)
            step = step + 1
            if (first_misfit <= 0) first_misfit = misfit
            call report(step, chosen%steps, misfit)
            if (chosen%save_every > 0) then
                if (mod(step, chosen%save_every) == 0) call zero_save(z, trim(chosen%directory))
            end if
            if (step == chosen%stop_after) call MPI_Abort(communicator, 1, ierr)
        end do
        call report_final()
    end subroutine

    ! One update: forward and adjoint of this rank's experiments, the sum of gradients over ranks, Adam. The misfit is
    ! that of the values before the update.
    subroutine update(misfit)
        real(real64), intent(out) :: misfit
        real(real64), pointer :: conductivity(:, :), gradient(:, :)
        call zero_gather(z, field, conductivity)
        call zero_gradient(z, field, gradient)
        call find_misfit_and_gradient(conductivity, misfit, gradient)
        call zero_release(z, field)
        call zero_reduce(z, field)
        call zero_step(z)
        misfit = sum_over_ranks(misfit)
    end subroutine

    subroutine report_final()
        real(real64), pointer :: conductivity(:, :)
        real(real64) :: misfit
        call zero_gather(z, field, conductivity)
        call find_misfit(conductivity, misfit)
        call zero_release(z, field)
        misfit = sum_over_ranks(misfit)
        if (rank /= 0) return
        write (output_unit, '(a, es13.6, a, z16.16)') 'final misfit ', misfit, '  bits ', transfer(misfit, 0_int64)
        write (output_unit, '(a, f0.1, a)') 'the misfit fell by a factor of ', first_misfit / misfit, ' from the start'
        flush (output_unit)
    end subroutine

    ! Whole values on rank 0 alone, for the picture.
    subroutine fetch_field(recovered)
        real(real64), intent(inout), target, contiguous :: recovered(:, :)
        if (rank == 0) then
            call zero_gather_to(z, field, 0, recovered)
        else
            call zero_gather_to(z, field, 0)
        end if
    end subroutine

    subroutine print_memory(stage)
        integer, intent(in) :: stage
        integer(int64) :: bytes, peak
        call zero_memory(z, ZERO_PLACE_HOST, bytes, peak)
        if (rank == 0) write (output_unit, '(a, i0, 2(a, f8.2), a)') 'stage ', stage, &
            ': libzero holds', mebibytes(bytes), ' MiB on rank 0, at most', mebibytes(peak), ' MiB'
    end subroutine

    subroutine end_descent()
        call zero_finalize(z)
    end subroutine

    ! Threshold 0: the one tensor is really sharded in stage 3, however small the plate. Gradients are summed, as the
    ! misfit is a sum over experiments, so that ranks may have different numbers of them. Adam's steps shrink with a
    ! cosine: with constant steps the cells would go on swinging about their values. This schedule's first rate is 0, so
    ! the first update only starts the moments.
    function configuration(chosen) result(text)
        type(options_t), intent(in) :: chosen
        character(len=:), allocatable :: text
        text = '{"optimizer": {"type": "Adam", "params": {"lr": 0.1, "betas": [0.9, 0.99], "eps": 1e-8}}, ' // &
            '"scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": ' // decimal(chosen%steps) // &
            ', "warmup_num_steps": 2, "warmup_min_ratio": 0.5}}, ' // &
            '"zero_optimization": {"stage": ' // decimal(chosen%stage) // &
            ', "stage3_param_persistence_threshold": 0}, ' // &
            '"libzero": {"gradient_reduction": "sum"}}'
    end function

    function limits() result(text)
        character(len=:), allocatable :: text
        character(len=64) :: numbers
        write (numbers, '(a, es10.3, a, es10.3, a)') '{"lower": ', lowest_conductivity, &
            ', "upper": ', highest_conductivity, '}'
        text = trim(numbers)
    end function

    subroutine load_newest(chosen)
        type(options_t), intent(in) :: chosen
        integer :: step
        call zero_load(z, trim(chosen%directory))
        call zero_get(z, 'step', step)
        if (rank == 0) write (output_unit, '(a, i0)') 'goes on from the checkpoint of update ', step
    end subroutine

    ! In the order of ranks, so that the printed bits do not depend on how MPI would sum.
    real(real64) function sum_over_ranks(own)
        real(real64), intent(in) :: own
        real(real64) :: all_of_them(ranks)
        integer :: ierr, k
        call MPI_Allgather(own, 1, MPI_DOUBLE_PRECISION, all_of_them, 1, MPI_DOUBLE_PRECISION, communicator, ierr)
        sum_over_ranks = 0
        do k = 1, ranks
            sum_over_ranks = sum_over_ranks + all_of_them(k)
        end do
    end function

    subroutine report(step, steps, misfit)
        integer, intent(in) :: step, steps
        real(real64), intent(in) :: misfit
        if (rank /= 0) return
        write (output_unit, '(a, i4, a, i0, a, es13.6, a, f9.6, a, f8.1, a)') 'update ', step, ' of ', steps, &
            '  misfit ', misfit, '  of the start ', misfit / first_misfit, '  ', MPI_Wtime() - start_time, ' s'
        flush (output_unit)
    end subroutine

    function decimal(number) result(text)
        integer, intent(in) :: number
        character(len=:), allocatable :: text
        character(len=16) :: digits
        write (digits, '(i0)') number
        text = trim(digits)
    end function

    pure real(real64) function mebibytes(bytes)
        integer(int64), intent(in) :: bytes
        mebibytes = real(bytes, real64) / 2**20
    end function
end module descent
