! The experiments of one rank: each heats the plate in a pattern of its own and photographs the temperature at a few
! times. Gives the misfit between model and photographs, and its gradient by the exact adjoint. No MPI, no libzero.
module experiments
    use, intrinsic :: iso_fortran_env, only: real64
    use plate, only: cells, set_conductivity, advance, clear_face_gradient, retreat, add_cell_gradient
    implicit none
    private
    public :: set_up_experiments, observe, find_misfit, find_misfit_and_gradient

    integer, parameter :: time_steps = 64, between_photographs = 32, photographs = time_steps / between_photographs
    real(real64), parameter :: deviation = 0.01_real64  ! of a measured temperature; the heated pattern has amplitude 1

    ! The adjoint needs every temperature of the forward run, in reverse. Keeping all 64 would take 64 fields per rank
    ! (8.6 GB at 4096 x 4096). Kept are every 8th, and the 8 of one segment computed again while the adjoint passes it:
    ! 16 fields for one more forward run, which is a third of the work. 8 is the square root of 64, where the memory is
    ! least.
    integer, parameter :: segment = 8, segments = time_steps / segment

    integer :: first, stride, total  ! this rank's experiments: first, first + stride, ... <= total
    real(real64), allocatable :: observed(:, :, :, :)  ! (cell, cell, photograph, own experiment)
    real(real64), allocatable :: kept(:, :, :), passed(:, :, :)  ! temperatures at segment starts; inside one
    real(real64), allocatable :: present(:, :), next(:, :)

contains

    subroutine set_up_experiments(rank, ranks, wanted)
        integer, intent(in) :: rank, ranks, wanted
        integer :: own
        first = rank + 1
        stride = ranks
        total = wanted
        own = max(0, (total - first + stride) / stride)
        allocate (observed(cells, cells, photographs, own))
        allocate (kept(0:cells + 1, 0:cells + 1, 0:segments - 1), passed(0:cells + 1, 0:cells + 1, 0:segment - 1))
        allocate (present(0:cells + 1, 0:cells + 1), next(0:cells + 1, 0:cells + 1))
        kept = 0
        passed = 0
        present = 0
        next = 0
    end subroutine

    ! Synthetic observations: what the photographs show for this conductivity.
    subroutine observe(conductivity)
        real(real64), intent(in) :: conductivity(:, :)
        integer :: experiment
        real(real64) :: unused
        observed = 0
        call set_conductivity(conductivity)
        do experiment = first, total, stride
            call run_forward(experiment, unused, take_photographs=.true.)
        end do
    end subroutine

    subroutine find_misfit(conductivity, misfit)
        real(real64), intent(in) :: conductivity(:, :)
        real(real64), intent(out) :: misfit
        real(real64) :: one
        integer :: experiment
        misfit = 0
        call set_conductivity(conductivity)
        do experiment = first, total, stride
            call run_forward(experiment, one, take_photographs=.false.)
            misfit = misfit + one
        end do
    end subroutine

    ! Adds to gradient, which libzero hands out as zeros.
    subroutine find_misfit_and_gradient(conductivity, misfit, gradient)
        real(real64), intent(in) :: conductivity(:, :)
        real(real64), intent(out) :: misfit
        real(real64), intent(inout) :: gradient(:, :)
        real(real64) :: one
        integer :: experiment
        misfit = 0
        call set_conductivity(conductivity)
        call clear_face_gradient()
        do experiment = first, total, stride
            call run_forward(experiment, one, take_photographs=.false.)
            call run_adjoint(experiment)
            misfit = misfit + one
        end do
        call add_cell_gradient(conductivity, gradient)
    end subroutine

    subroutine run_forward(experiment, misfit, take_photographs)
        integer, intent(in) :: experiment
        real(real64), intent(out) :: misfit
        logical, intent(in) :: take_photographs
        integer :: time
        misfit = 0
        call heat(experiment, present)
        do time = 0, time_steps - 1
            if (mod(time, segment) == 0) kept(:, :, time / segment) = present
            call advance(present, next)
            call exchange(present, next)
            if (.not. is_photograph(time + 1)) cycle
            if (take_photographs) then
                observed(:, :, photograph(time + 1), own_number(experiment)) = present(1:cells, 1:cells)
            end if
            misfit = misfit + photograph_misfit(time + 1, experiment, present)
        end do
    end subroutine

    ! `present` is the derivative of the misfit by the temperature at time + 1, then at time; it starts from the state
    ! in which run_forward has left `present`: the last temperature.
    subroutine run_adjoint(experiment)
        integer, intent(in) :: experiment
        integer :: piece, time
        next = present
        present = 0
        call add_residual(time_steps, experiment, next)
        do piece = segments - 1, 0, -1
            call run_segment_again(piece)
            do time = segment * (piece + 1) - 1, segment * piece, -1
                call retreat(passed(:, :, mod(time, segment)), present, next)
                call exchange(present, next)
                if (time == 0 .or. .not. is_photograph(time)) cycle
                call add_residual(time, experiment, passed(:, :, mod(time, segment)))
            end do
        end do
    end subroutine

    subroutine run_segment_again(piece)
        integer, intent(in) :: piece
        integer :: time
        passed(:, :, 0) = kept(:, :, piece)
        do time = 0, segment - 2
            call advance(passed(:, :, time), passed(:, :, time + 1))
        end do
    end subroutine

    ! Two plane waves whose direction and length differ between experiments: no cell lies on a crest, where the
    ! temperature says nothing about the conductivity, in all of them.
    subroutine heat(experiment, temperature)
        integer, intent(in) :: experiment
        real(real64), intent(inout) :: temperature(0:cells + 1, 0:cells + 1)
        real(real64), parameter :: pi = acos(-1.0_real64)
        real(real64) :: angle, x, y, fine, coarse
        integer :: i, j
        angle = pi * (experiment - 0.5_real64) / total
        fine = 2 * pi / 15
        coarse = 2 * pi / 41
        x = cos(angle)
        y = sin(angle)
        do j = 1, cells
            do i = 1, cells
                temperature(i, j) = sin(fine * (x * i + y * j) + experiment) &
                                  + 0.5_real64 * sin(coarse * (x * j - y * i))
            end do
        end do
    end subroutine

    ! Half the sum of squares over one photograph, column by column so that the order of summation is fixed.
    real(real64) function photograph_misfit(time, experiment, temperature)
        integer, intent(in) :: time, experiment
        real(real64), intent(in) :: temperature(0:cells + 1, 0:cells + 1)
        real(real64) :: difference, column
        integer :: i, j
        photograph_misfit = 0
        do j = 1, cells
            column = 0
            do i = 1, cells
                difference = temperature(i, j) - observed(i, j, photograph(time), own_number(experiment))
                column = column + difference**2
            end do
            photograph_misfit = photograph_misfit + column
        end do
        photograph_misfit = photograph_misfit / (2 * deviation**2)
    end function

    ! The derivative of photograph_misfit by the temperature, added to the adjoint in `present`.
    subroutine add_residual(time, experiment, temperature)
        integer, intent(in) :: time, experiment
        real(real64), intent(in) :: temperature(0:cells + 1, 0:cells + 1)
        integer :: i, j
        do j = 1, cells
            do i = 1, cells
                present(i, j) = present(i, j) + &
                    (temperature(i, j) - observed(i, j, photograph(time), own_number(experiment))) / deviation**2
            end do
        end do
    end subroutine

    subroutine exchange(a, b)
        real(real64), allocatable, intent(inout) :: a(:, :), b(:, :)
        real(real64), allocatable :: old(:, :)
        call move_alloc(a, old)
        call move_alloc(b, a)
        call move_alloc(old, b)
    end subroutine

    pure logical function is_photograph(time)
        integer, intent(in) :: time
        is_photograph = mod(time, between_photographs) == 0
    end function

    pure integer function photograph(time)
        integer, intent(in) :: time
        photograph = time / between_photographs
    end function

    pure integer function own_number(experiment)
        integer, intent(in) :: experiment
        own_number = (experiment - first) / stride + 1
    end function
end module experiments
