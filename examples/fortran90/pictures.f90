! Two fields side by side as a grey picture (PGM, binary), white where the conductivity is high.
module pictures
    use, intrinsic :: iso_fortran_env, only: real64
    use plate, only: lowest_conductivity, highest_conductivity
    implicit none
    private
    public :: write_pictures

    integer, parameter :: largest = 512, gap = 8  ! pixels: side of one picture, and the white strip between the two

contains

    ! Row 1 of the picture is the far side of the plate, as on paper. Fields above 512 x 512 are shown by block means.
    subroutine write_pictures(file, left, right)
        character(len=*), intent(in) :: file
        real(real64), intent(in) :: left(:, :), right(:, :)
        integer :: unit, block, side, row
        character(len=32) :: extents
        block = (size(left, 1) + largest - 1) / largest
        side = size(left, 1) / block
        write (extents, '(i0, 1x, i0)') 2 * side + gap, side
        open (newunit=unit, file=file, access='stream', form='unformatted', status='replace', action='write')
        write (unit) 'P5' // new_line('a') // trim(extents) // new_line('a') // '255' // new_line('a')
        do row = side, 1, -1
            write (unit) pixels(left, block, side, row), repeat(char(255), gap), pixels(right, block, side, row)
        end do
        close (unit)
    end subroutine

    function pixels(field, block, side, row) result(line)
        real(real64), intent(in) :: field(:, :)
        integer, intent(in) :: block, side, row
        character(len=side) :: line
        integer :: column, x, y
        y = block * (row - 1)
        do column = 1, side
            x = block * (column - 1)
            line(column:column) = grey(sum(field(x + 1:x + block, y + 1:y + block)) / block**2)
        end do
    end function

    pure character(len=1) function grey(conductivity)
        real(real64), intent(in) :: conductivity
        real(real64) :: part
        part = (conductivity - lowest_conductivity) / (highest_conductivity - lowest_conductivity)
        grey = char(nint(255 * min(1.0_real64, max(0.0_real64, part))))
    end function
end module pictures
