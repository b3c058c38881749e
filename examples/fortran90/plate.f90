! Heat conduction on a square plate of n x n cells: one explicit time step, its adjoint, and the way from the
! conductivity of cells to that of the faces between them and back. Nothing here knows of ranks, observations or
! libzero.
module plate
    use, intrinsic :: iso_fortran_env, only: real64
    implicit none
    private
    public :: set_up_plate, set_conductivity, advance, clear_face_gradient, retreat, add_cell_gradient

    real(real64), parameter, public :: lowest_conductivity = 0.2_real64, highest_conductivity = 3.0_real64
    integer, public, protected :: cells = 0  ! along each side

    ! Time step / cell width ** 2. The explicit step is stable while this times the conductivity is at most 1/4.
    real(real64), parameter :: pace = 0.25_real64 / highest_conductivity

    ! Faces carry pace x conductivity. Face i of `across` lies between cells i and i + 1 of a column, face j of `along`
    ! between columns j and j + 1. Faces 0 and n are the insulated rim and stay 0, so no loop below needs a special
    ! case.
    real(real64), allocatable :: across(:, :), along(:, :), across_gradient(:, :), along_gradient(:, :)

contains

    subroutine set_up_plate(n)
        integer, intent(in) :: n
        cells = n
        allocate (across(0:n, n), along(n, 0:n), across_gradient(0:n, n), along_gradient(n, 0:n), source=0.0_real64)
    end subroutine

    subroutine set_conductivity(conductivity)
        real(real64), intent(in) :: conductivity(:, :)
        integer :: i, j
        do j = 1, cells
            do i = 1, cells - 1
                across(i, j) = pace * harmonic_mean(conductivity(i, j), conductivity(i + 1, j))
            end do
            if (j == cells) exit
            do i = 1, cells
                along(i, j) = pace * harmonic_mean(conductivity(i, j), conductivity(i, j + 1))
            end do
        end do
    end subroutine

    ! after = (I + D) before, D the discrete div(k grad). Temperatures have a halo of one cell that the rim multiplies
    ! by 0.
    subroutine advance(before, after)
        real(real64), intent(in) :: before(0:cells + 1, 0:cells + 1)
        real(real64), intent(inout) :: after(0:cells + 1, 0:cells + 1)
        integer :: i, j
        do j = 1, cells
            do i = 1, cells
                after(i, j) = before(i, j) &
                    + across(i, j) * (before(i + 1, j) - before(i, j)) &
                    - across(i - 1, j) * (before(i, j) - before(i - 1, j)) &
                    + along(i, j) * (before(i, j + 1) - before(i, j)) &
                    - along(i, j - 1) * (before(i, j) - before(i, j - 1))
            end do
        end do
    end subroutine

    subroutine clear_face_gradient()
        across_gradient = 0
        along_gradient = 0
    end subroutine

    ! The adjoint of advance: I + D is symmetric, so the adjoint goes back by the same step. A face of conductivity c
    ! moves c x (difference of temperature) from one cell to the next; hence its derivative, with the temperature before
    ! that step.
    subroutine retreat(temperature, later, earlier)
        real(real64), intent(in) :: temperature(0:cells + 1, 0:cells + 1), later(0:cells + 1, 0:cells + 1)
        real(real64), intent(inout) :: earlier(0:cells + 1, 0:cells + 1)
        integer :: i, j
        call advance(later, earlier)
        do j = 1, cells
            do i = 1, cells
                across_gradient(i, j) = across_gradient(i, j) &
                    - (temperature(i + 1, j) - temperature(i, j)) * (later(i + 1, j) - later(i, j))
                along_gradient(i, j) = along_gradient(i, j) &
                    - (temperature(i, j + 1) - temperature(i, j)) * (later(i, j + 1) - later(i, j))
            end do
        end do
    end subroutine

    ! What the rim's faces have gathered is left out: they do not depend on any cell.
    subroutine add_cell_gradient(conductivity, gradient)
        real(real64), intent(in) :: conductivity(:, :)
        real(real64), intent(inout) :: gradient(:, :)
        integer :: i, j
        do j = 1, cells
            do i = 1, cells - 1
                call add_face(conductivity(i, j), conductivity(i + 1, j), across_gradient(i, j), &
                              gradient(i, j), gradient(i + 1, j))
            end do
            if (j == cells) exit
            do i = 1, cells
                call add_face(conductivity(i, j), conductivity(i, j + 1), along_gradient(i, j), &
                              gradient(i, j), gradient(i, j + 1))
            end do
        end do
    end subroutine

    pure real(real64) function harmonic_mean(a, b)
        real(real64), intent(in) :: a, b
        harmonic_mean = 2 * a * b / (a + b)
    end function

    pure subroutine add_face(a, b, face, gradient_a, gradient_b)
        real(real64), intent(in) :: a, b, face
        real(real64), intent(inout) :: gradient_a, gradient_b
        real(real64) :: common
        common = 2 * pace * face / (a + b)**2
        gradient_a = gradient_a + common * b**2
        gradient_b = gradient_b + common * a**2
    end subroutine
end module plate
