! The conductivity that the inversion has to find: two slanted layers and a few round inclusions in a plate of
! conductivity 1.
module true_field
    use, intrinsic :: iso_fortran_env, only: real64
    implicit none
    private
    public :: make_true_field

    ! Inclusions: centre and radius as parts of the side, and what the centre adds to the conductivity.
    integer, parameter :: inclusions = 6
    real(real64), parameter :: inclusion(4, inclusions) = reshape([ &
        0.25_real64, 0.30_real64, 0.10_real64, 1.1_real64, &
        0.70_real64, 0.22_real64, 0.07_real64, -0.6_real64, &
        0.55_real64, 0.55_real64, 0.05_real64, 1.3_real64, &
        0.20_real64, 0.75_real64, 0.08_real64, -0.5_real64, &
        0.80_real64, 0.72_real64, 0.12_real64, 0.8_real64, &
        0.45_real64, 0.86_real64, 0.04_real64, 0.9_real64], [4, inclusions])

contains

    subroutine make_true_field(conductivity)
        real(real64), intent(out) :: conductivity(:, :)
        integer :: i, j
        do j = 1, size(conductivity, 2)
            do i = 1, size(conductivity, 1)
                conductivity(i, j) = true_conductivity((i - 0.5_real64) / size(conductivity, 1), &
                                                       (j - 0.5_real64) / size(conductivity, 2))
            end do
        end do
    end subroutine

    pure real(real64) function true_conductivity(x, y)
        real(real64), intent(in) :: x, y
        integer :: k
        true_conductivity = 1 + layer(y + 0.3_real64 * x - 0.55_real64, 0.4_real64) &
                              + layer(y + 0.3_real64 * x - 0.95_real64, -0.3_real64)
        do k = 1, inclusions
            true_conductivity = true_conductivity + inclusion(4, k) &
                * exp(-((x - inclusion(1, k))**2 + (y - inclusion(2, k))**2) / (0.5_real64 * inclusion(3, k)**2))
        end do
    end function

    pure real(real64) function layer(distance, height)
        real(real64), intent(in) :: distance, height
        layer = height * exp(-(distance / 0.04_real64)**4)
    end function
end module true_field
