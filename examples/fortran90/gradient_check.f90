! --check-gradient: the adjoint against central differences, on this rank's experiments.
module gradient_check
    use, intrinsic :: iso_fortran_env, only: real64
    use experiments, only: find_misfit, find_misfit_and_gradient
    implicit none
    private
    public :: largest_gradient_error

contains

    ! Largest relative difference, over derivatives in one random direction and in single cells: a corner, a side,
    ! inside.
    real(real64) function largest_gradient_error(n)
        integer, intent(in) :: n
        real(real64), allocatable :: conductivity(:, :), gradient(:, :), direction(:, :)
        integer :: k, where_to(2, 4)
        real(real64) :: misfit
        allocate (conductivity(n, n), gradient(n, n), direction(n, n))
        call seed()
        call random_number(conductivity)
        conductivity = 0.5_real64 + conductivity
        gradient = 0
        call find_misfit_and_gradient(conductivity, misfit, gradient)
        call random_number(direction)
        direction = direction - 0.5_real64
        largest_gradient_error = difference(conductivity, gradient, direction)
        where_to = reshape([1, 1, n, 1, 1, n / 2, n / 2, n / 3], [2, 4])
        do k = 1, 4
            direction = 0
            direction(where_to(1, k), where_to(2, k)) = 1
            largest_gradient_error = max(largest_gradient_error, difference(conductivity, gradient, direction))
        end do
    end function

    ! The same numbers in every run.
    subroutine seed()
        integer :: length, k
        call random_seed(size=length)
        call random_seed(put=[(7919 * k, k=1, length)])
    end subroutine

    ! Two central differences of steps s and s/2, combined so that the error is of order s ** 4 (Richardson).
    real(real64) function difference(conductivity, gradient, direction)
        real(real64), intent(in) :: conductivity(:, :), gradient(:, :), direction(:, :)
        real(real64), parameter :: s = 1.0e-3_real64
        real(real64) :: exact, measured
        exact = sum(gradient * direction)
        measured = (4 * slope(conductivity, direction, s / 2) - slope(conductivity, direction, s)) / 3
        difference = abs(exact - measured) / max(abs(measured), tiny(measured))
    end function

    real(real64) function slope(conductivity, direction, s)
        real(real64), intent(in) :: conductivity(:, :), direction(:, :), s
        real(real64) :: above, below
        call find_misfit(conductivity + s * direction, above)
        call find_misfit(conductivity - s * direction, below)
        slope = (above - below) / (2 * s)
    end function
end module gradient_check
