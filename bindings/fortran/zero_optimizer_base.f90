! What every call of the module needs: the handle, the constants, texts in both directions, and what happens with a code.
! Not here: the calls themselves (zero_optimizer_calls.fypp, zero_optimizer.fypp). Programs use zero_optimizer.
module zero_optimizer_base
    use, intrinsic :: iso_c_binding, only: c_ptr, c_null_ptr, c_null_char, c_char, c_int, c_int64_t, c_size_t, c_f_pointer, &
                                           c_associated
    use, intrinsic :: iso_fortran_env, only: error_unit, int64
    use zero_optimizer_c
    implicit none
    private
    public :: zero_t, answer, c_text, copy_text, narrow, row_major, wrong_array, wrong_stride, c_string, f_dims
    public :: local, together, gathering

    ! One optimizer over one communicator. The components are for passing a context on to C, not for changing.
    type :: zero_t
        type(c_ptr) :: handle = c_null_ptr
        integer(c_int) :: communicator = 0      ! the caller's: MPI_Abort goes here
    end type

    integer, parameter, public :: ZERO_F32 = 1, ZERO_F64 = 2, ZERO_BF16 = 3, ZERO_F16 = 4
    integer, parameter, public :: ZERO_I32 = 5, ZERO_I64 = 6, ZERO_U8 = 7, ZERO_C64 = 8, ZERO_C128 = 9
    integer, parameter, public :: ZERO_EVERYONE = -1
    integer, parameter, public :: ZERO_PLACE_DEVICE = 1, ZERO_PLACE_HOST = 2, ZERO_PLACE_NVME = 3
    integer, parameter, public :: ZERO_REPLICATED = 0, ZERO_PER_RANK = 1
    integer, parameter, public :: ZERO_LOG_ERROR = 0, ZERO_LOG_WARNING = 1, ZERO_LOG_INFO = 2, ZERO_LOG_DEBUG = 3
    integer, parameter, public :: ZERO_OK = 0, ZERO_ERR_ARGUMENT = 1, ZERO_ERR_STATE = 2, ZERO_ERR_CONFIG = 3
    integer, parameter, public :: ZERO_ERR_MEMORY = 4, ZERO_ERR_MPI = 5, ZERO_ERR_CUDA = 6, ZERO_ERR_NCCL = 7, ZERO_ERR_IO = 8
    integer, parameter, public :: ZERO_ERR_CHECKPOINT = 9, ZERO_ERR_MISMATCH = 10, ZERO_ERR_UNSUPPORTED = 11
    integer, parameter, public :: ZERO_ERR_NUMERIC = 12, ZERO_ERR_INTERNAL = 99

    ! Whom a refusal of this binding concerns (zerof_refuse).
    integer(c_int), parameter :: local = 0, together = 1, gathering = 2

contains

    ! Ends every call: the code to ierr; without ierr a failure is told on error_unit and ends the program.
    subroutine answer(code, call_name, z, ierr)
        integer(c_int), intent(in) :: code
        character(len=*), intent(in) :: call_name
        type(zero_t), intent(in) :: z
        integer, intent(out), optional :: ierr
        if (present(ierr)) then
            ierr = int(code)
        else if (code /= 0) then
            write (error_unit, '(5a)') call_name, ': ', c_string(c_error_name(code)), ': ', c_string(c_last_error())
            flush (error_unit)
            call end_program(z%communicator, code)
        end if
    end subroutine

    ! The launcher may end this process before it has passed on what was just printed: without this about one sentence in
    ! twenty is lost.
    subroutine wait_a_moment()
        integer(int64) :: now, start, ticks_per_second
        call system_clock(start, ticks_per_second)
        now = start
        do while (now - start < ticks_per_second / 5)
            call system_clock(now)
        end do
    end subroutine

    subroutine end_program(communicator, code)
        integer(c_int), intent(in) :: communicator, code
        integer(c_int) :: begun, ended, mpi_code
        external :: MPI_Abort, MPI_Initialized, MPI_Finalized  ! of the caller's MPI, whichever it is: no module is needed
        begun = 0
        ended = 0
        call MPI_Initialized(begun, mpi_code)
        call MPI_Finalized(ended, mpi_code)
        call wait_a_moment()
        if (begun /= 0 .and. ended == 0) call MPI_Abort(communicator, code, mpi_code)
        error stop 1
    end subroutine

    ! For C: without trailing blanks, with a final NUL. A NUL inside becomes the bytes C0 80, which C refuses by that name.
    pure function c_text(text) result(converted)
        character(len=*), intent(in) :: text
        character(len=:, kind=c_char), allocatable :: converted
        integer :: at
        converted = trim(text)
        do
            at = index(converted, c_null_char)
            if (at == 0) exit
            converted = converted(:at - 1)//char(192)//char(128)//converted(at + 1:)
        end do
        converted = converted//c_null_char
    end function

    ! From C: padded with blanks or cut, never a NUL.
    pure subroutine copy_text(letters, text)
        character(len=*), intent(in) :: letters
        character(len=*), intent(out) :: text
        integer :: last
        last = index(letters, c_null_char) - 1
        if (last < 0) last = len(letters)
        text = letters(:last)
    end subroutine

    function c_string(address) result(text)
        type(c_ptr), intent(in) :: address
        character(len=:), allocatable :: text
        character(kind=c_char), pointer :: letters(:)
        integer :: i
        if (.not. c_associated(address)) then
            text = ''
            return
        end if
        call c_f_pointer(address, letters, [c_strlen(address)])
        allocate (character(len=size(letters)) :: text)
        do i = 1, size(letters)
            text(i:i) = letters(i)
        end do
    end function

    ! Default integers may be wider than C's. What does not fit becomes the
    ! largest C integer, which is no id, root or group: C refuses it.
    elemental integer(c_int) function narrow(number)
        integer, intent(in) :: number
        if (number > huge(narrow) .or. number < -huge(narrow)) then
            narrow = huge(narrow)
        else
            narrow = int(number, c_int)
        end if
    end function

    ! The library's dims run the other way: its last index is the fastest.
    pure function row_major(extents) result(dims)
        integer(int64), intent(in) :: extents(:)
        integer(c_int64_t) :: dims(max(1, size(extents)))
        integer :: i
        dims = 0
        do i = 1, size(extents)
            dims(i) = extents(size(extents) + 1 - i)
        end do
    end function

    ! The registered extents of a tensor in Fortran order; code as zero_tensor.
    subroutine f_dims(z, id, dtype, rank, extents, code)
        type(zero_t), intent(in) :: z
        integer, intent(in) :: id
        integer(c_int), intent(out) :: dtype, rank, code
        integer(int64), intent(out) :: extents(7)
        integer(c_int64_t) :: dims(7)
        integer :: i
        dtype = 0
        rank = 0
        extents = 0
        code = c_tensor(z%handle, narrow(id), dtype, rank, dims)
        if (code /= 0) return
        do i = 1, rank
            extents(i) = dims(rank + 1 - i)
        end do
    end subroutine

    ! Compares an array with the registered tensor. `given` is the array's type; 16-bit tensors travel as integer(int16), given
    ! as ZERO_BF16. exact: the rank must agree (pointers); else an array of another rank with as many elements will do.
    ! Returns 0 when all is well, also for an unknown id: the C call reports that itself.
    function wrong_array(z, id, call_name, concerned, given, extents, exact, of_state) result(code)
        type(zero_t), intent(in) :: z
        integer, intent(in) :: id, given
        character(len=*), intent(in) :: call_name
        integer(c_int), intent(in) :: concerned
        integer(int64), intent(in) :: extents(:)
        logical, intent(in) :: exact, of_state
        integer(c_int) :: code, dtype, rank
        integer(int64) :: registered(7)
        integer :: wanted
        call f_dims(z, id, dtype, rank, registered, code)
        if (code /= 0) then
            code = 0
            return
        end if
        wanted = int(dtype)
        if (wanted == ZERO_F16) wanted = ZERO_BF16
        if (of_state .and. wanted == ZERO_BF16) wanted = ZERO_F32
        if (wanted /= given) then
            code = refuse('the array is '//kind_text(given)//', but tensor '//number(int(id, int64))//' needs '//kind_text(wanted))
        else if (exact .and. size(extents) /= rank) then
            code = refuse('the pointer has rank '//number(size(extents, kind=int64))//', but tensor '//number(int(id, int64))// &
                          ' has the shape '//shape_text(registered(:rank)))
        else if (.not. exact .and. size(extents) == rank .and. any(extents /= registered(:size(extents)))) then
            code = refuse('the array has the shape '//shape_text(extents)//', but tensor '//number(int(id, int64))//' has '// &
                          shape_text(registered(:rank)))
        else if (.not. exact .and. product(extents) /= product(registered(:rank))) then
            code = refuse('the array has '//number(product(extents))//' elements, but tensor '//number(int(id, int64))//' has '// &
                          number(product(registered(:rank))))
        end if
    contains
        integer(c_int) function refuse(sentence)
            character(len=*), intent(in) :: sentence
            refuse = c_refuse(z%handle, concerned, c_text(call_name), c_text(sentence))
        end function
    end function

    function wrong_stride(z, call_name, concerned, contiguous_array) result(code)
        type(zero_t), intent(in) :: z
        character(len=*), intent(in) :: call_name
        integer(c_int), intent(in) :: concerned
        logical, intent(in) :: contiguous_array
        integer(c_int) :: code
        code = 0
        if (.not. contiguous_array) code = c_refuse(z%handle, concerned, c_text(call_name), &
            c_text('the array is a section with gaps; pass a contiguous array, or a copy of the section'))
    end function

    pure function kind_text(dtype) result(text)
        integer, intent(in) :: dtype
        character(len=:), allocatable :: text
        select case (dtype)
        case (ZERO_F32); text = 'real(real32)'
        case (ZERO_F64); text = 'real(real64)'
        case default; text = 'integer(int16), the bits of a 16-bit real'
        end select
    end function

    pure function number(what) result(text)
        integer(int64), intent(in) :: what
        character(len=:), allocatable :: text
        character(len=24) :: digits
        write (digits, '(i0)') what
        text = trim(digits)
    end function

    pure function shape_text(extents) result(text)
        integer(int64), intent(in) :: extents(:)
        character(len=:), allocatable :: text
        integer :: i
        text = '('
        do i = 1, size(extents)
            if (i > 1) text = text//', '
            text = text//number(extents(i))
        end do
        text = text//')'
    end function
end module zero_optimizer_base
