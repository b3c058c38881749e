! A Fortran program with HDF5's own module: reads every dataset of a checkpoint's index whole and compares it with what was
! saved. Uses nothing of libzero. usage: read_index INDEX EXPECTED   (lines path<tab>dtype<tab>dims<tab>file of raw bytes)
program read_index
    use hdf5
    use iso_c_binding
    use iso_fortran_env, only: int8, int16, int32, int64, real32, real64
    implicit none
    character(4096) :: index_name, list_name, line
    integer(hid_t) :: file
    integer :: error, unit, status, seen = 0, wrong = 0

    call get_command_argument(1, index_name)
    call get_command_argument(2, list_name)
    call h5open_f(error)
    call h5fopen_f(trim(index_name), H5F_ACC_RDONLY_F, file, error)
    if (error /= 0) error stop 'the index cannot be opened'
    open (newunit=unit, file=trim(list_name), status='old', action='read')
    do
        read (unit, '(a)', iostat=status) line
        if (status /= 0) exit
        call compare(fields(line, 1), fields(line, 2), fields(line, 3), fields(line, 4))
    end do
    call array_as_a_program_has_it()
    call h5fclose_f(file, error)
    call h5close_f(error)
    print '(i0, a, i0, a)', seen, ' datasets read, ', wrong, ' wrong'
    if (wrong > 0 .or. seen < 40) error stop 1

contains

    function fields(text, number) result(field)
        character(*), intent(in) :: text
        integer, intent(in) :: number
        character(:), allocatable :: field
        integer :: first, k
        first = 1
        do k = 2, number
            first = first + index(text(first:), char(9))
        end do
        field = text(first:)
        if (index(field, char(9)) > 0) field = field(:index(field, char(9)) - 1)
        field = trim(field)
    end function

    subroutine problem(path, what)
        character(*), intent(in) :: path, what
        print '(4a)', 'wrong: ', path, ': ', what
        wrong = wrong + 1
    end subroutine

    ! The extents in a text such as "5,7,3,", as a Fortran program sees them: reversed.
    function reversed(text) result(dims)
        character(*), intent(in) :: text
        integer(hsize_t), allocatable :: dims(:)
        integer :: count, k
        count = 0
        do k = 1, len(text)
            if (text(k:k) == ',') count = count + 1
        end do
        allocate (dims(count))
        if (count > 0) read (text, *) dims
        dims = dims(count:1:-1)
    end function

    subroutine compare(path, dtype, extents, raw)
        character(*), intent(in) :: path, dtype, extents, raw
        integer(hid_t) :: dataset, space, int64_type
        integer(hsize_t), allocatable :: dims(:), there(:), most(:)
        real(real64), allocatable, target :: reals(:)
        integer(int64), allocatable, target :: integers(:)
        type(c_ptr) :: place
        integer :: rank, count
        seen = seen + 1
        dims = reversed(extents)
        if (size(dims) == 0 .and. index(path, '/attached') == 1) dims = [1_hsize_t]
        call h5dopen_f(file, path, dataset, error)
        if (error /= 0) then
            call problem(path, 'cannot be opened')
            return
        end if
        call h5dget_space_f(dataset, space, error)
        call h5sget_simple_extent_ndims_f(space, rank, error)
        allocate (there(rank), most(rank))
        if (rank > 0) call h5sget_simple_extent_dims_f(space, there, most, error)
        if (rank /= size(dims)) then
            call problem(path, 'another rank')
        else if (any(there /= dims)) then
            call problem(path, 'other extents')
        else
            count = int(product(dims))
            allocate (reals(count + 1), integers(count + 1))
            select case (dtype)
            case ('fp32', 'fp64', 'bf16', 'fp16')
                place = c_loc(reals)
                call h5dread_f(dataset, H5T_NATIVE_DOUBLE, place, error)
                if (error /= 0) call problem(path, 'cannot be read')
                if (any(bits(reals(:count)) /= bits(saved_reals(raw, dtype, count)))) call problem(path, 'other values')
            case default
                int64_type = h5kind_to_type(int64, H5_INTEGER_KIND)
                place = c_loc(integers)
                call h5dread_f(dataset, int64_type, place, error)
                if (error /= 0) call problem(path, 'cannot be read')
                if (any(integers(:count) /= saved_integers(raw, dtype, count))) call problem(path, 'other values')
            end select
        end if
        call h5sclose_f(space, error)
        call h5dclose_f(dataset, error)
    end subroutine

    elemental function bits(value)
        real(real64), intent(in) :: value
        integer(int64) :: bits
        bits = transfer(value, bits)
    end function

    function saved_reals(raw, dtype, count) result(values)
        character(*), intent(in) :: raw, dtype
        integer, intent(in) :: count
        real(real64) :: values(count)
        real(real32), allocatable :: singles(:)
        integer(int16), allocatable :: halves(:)
        integer :: from, k
        allocate (singles(count), halves(count))
        open (newunit=from, file=raw, access='stream', form='unformatted', status='old', action='read')
        select case (dtype)
        case ('fp64')
            read (from) values
        case ('fp32')
            read (from) singles
            values = real(singles, real64)
        case default
            read (from) halves
            do k = 1, count
                values(k) = real_of_half(iand(int(halves(k)), 65535), dtype)
            end do
        end select
        close (from)
    end function

    ! A number of 16 bits: bf16 is the upper half of a single; fp16 has 5 bits of exponent and 10 of mantissa.
    function real_of_half(half, dtype) result(value)
        integer, intent(in) :: half
        character(*), intent(in) :: dtype
        real(real64) :: value
        integer :: exponent, mantissa
        if (dtype == 'bf16') then
            value = real(transfer(ishft(half, 16), 1.0_real32), real64)
            return
        end if
        exponent = ibits(half, 10, 5)
        mantissa = ibits(half, 0, 10)
        if (exponent == 0) value = scale(real(mantissa, real64), -24)
        if (exponent > 0) value = scale(real(mantissa + 1024, real64), exponent - 25)
        if (btest(half, 15)) value = -value
    end function

    function saved_integers(raw, dtype, count) result(values)
        character(*), intent(in) :: raw, dtype
        integer, intent(in) :: count
        integer(int64) :: values(count)
        integer(int32), allocatable :: words(:)
        integer(int8), allocatable :: bytes(:)
        integer :: from
        allocate (words(count), bytes(count))
        open (newunit=from, file=raw, access='stream', form='unformatted', status='old', action='read')
        select case (dtype)
        case ('int64')
            read (from) values
        case ('int32')
            read (from) words
            values = words
        case ('uint8')
            read (from) bytes
            values = iand(int(bytes, int64), 255_int64)
        end select
        close (from)
    end function

    ! w[5, 7, 3] of the checkpoint is w(3, 7, 5) here.
    subroutine array_as_a_program_has_it()
        real(real32) :: w(3, 7, 5)
        real(real64) :: flat(105)
        integer(hid_t) :: dataset
        integer(hsize_t) :: dims(3)
        character(:), allocatable :: raw
        dims = shape(w)
        raw = trim(list_name)
        raw = raw(:index(raw, '/', back=.true.))//'raw-0-master'
        call h5dopen_f(file, '/parameters/w.value', dataset, error)
        call h5dread_f(dataset, H5T_NATIVE_REAL, w, dims, error)
        call h5dclose_f(dataset, error)
        flat = saved_reals(raw, 'fp32', 105)
        if (any(w /= reshape(real(flat, real32), [3, 7, 5]))) call problem('/parameters/w.value', 'an array of 3 dimensions')
    end subroutine
end program
