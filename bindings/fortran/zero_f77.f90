! Fortran 77 entry points, ZEROF_...: external subroutines over module zero_optimizer, for codes without modules. Compile this
! file with the code's own flags, so that INTEGER is the same on both sides. Texts, codes and meanings: zero/zero.h; names of
! the codes: zerof.h.
!   H      INTEGER handle                       ID, ROOT   INTEGER, counted from 0; ROOT -1: everyone
!   IERR   INTEGER, 0 or a code                 A, G       one-dimensional arrays: _D REAL*8, _S REAL*4
! An array that is registered must stay where it is (COMMON, SAVE, or the main program) and must not be an array section.
module zero_f77_handles
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer, c_int, c_double
    use, intrinsic :: iso_fortran_env, only: int64, real32, real64
    use zero_optimizer
    use zero_optimizer_c, only: c_reduce_flat
    use zero_optimizer_base, only: answer, narrow, wrong_array, local
    implicit none
    private
    public :: handle_of, new_handle, drop_handle, group_of, flat_real32, flat_real64, reduce_flat

    type :: seat
        type(zero_t) :: context
        integer :: group = 0        ! of the tensors registered next
        logical :: taken = .false.
    end type
    type(seat), allocatable, save, target :: seats(:)  ! handle h sits at seats(h)
    type(zero_t), save, target :: nobody               ! what an unknown handle stands for: C refuses it

contains

    function handle_of(h) result(context)
        integer, intent(in) :: h
        type(zero_t), pointer :: context
        context => nobody
        if (.not. allocated(seats)) return
        if (h < 1 .or. h > size(seats)) return
        if (seats(h)%taken) context => seats(h)%context
    end function

    function group_of(h) result(group)
        integer, intent(in) :: h
        integer, pointer :: group
        integer, save, target :: none
        none = 0
        group => none
        if (.not. allocated(seats)) return
        if (h >= 1 .and. h <= size(seats)) group => seats(h)%group
    end function

    integer function new_handle(context)
        type(zero_t), intent(in) :: context
        type(seat), allocatable :: more(:)
        integer :: old
        if (.not. allocated(seats)) allocate (seats(4))
        old = size(seats)
        do new_handle = 1, old
            if (.not. seats(new_handle)%taken) exit
        end do
        if (new_handle > old) then
            allocate (more(2*old))
            more(:old) = seats
            call move_alloc(more, seats)
        end if
        seats(new_handle)%context = context
        seats(new_handle)%group = 0
        seats(new_handle)%taken = .true.
    end function

    subroutine drop_handle(h)
        integer, intent(in) :: h
        seats(h)%taken = .false.
        seats(h)%context = nobody
    end subroutine

    ! A one-dimensional array of the caller's as all elements of a tensor; no elements for an unknown id, which C refuses.
    integer(int64) function elements(h, id)
        integer, intent(in) :: h, id
        integer :: dtype, rank, ierr
        integer(int64) :: extents(7)
        call zero_tensor(handle_of(h), id, dtype, rank, extents, ierr)
        elements = 0
        if (ierr == 0) elements = product(extents(:rank))
    end function

    function flat_real32(h, id, address) result(values)
        integer, intent(in) :: h, id
        type(c_ptr), intent(in) :: address
        real(real32), pointer :: values(:)
        call c_f_pointer(address, values, [elements(h, id)])
    end function

    function flat_real64(h, id, address) result(values)
        integer, intent(in) :: h, id
        type(c_ptr), intent(in) :: address
        real(real64), pointer :: values(:)
        call c_f_pointer(address, values, [elements(h, id)])
    end function

    ! FACTOR x the array at `address`. Nothing but its kind can be wrong, so the usual case is one call of C.
    subroutine reduce_flat(h, id, dtype, factor, address, ierr)
        integer, intent(in) :: h, id, dtype
        real(c_double), intent(in) :: factor
        type(c_ptr), intent(in) :: address
        integer, intent(out) :: ierr
        type(zero_t), pointer :: z
        integer(c_int) :: code
        z => handle_of(h)
        code = c_reduce_flat(z%handle, narrow(id), int(dtype, c_int), factor, address)
        if (code == -1) code = wrong_array(z, id, 'zero_reduce', local, dtype, [0_int64], .false., .false.)
        call answer(code, 'zero_reduce', z, ierr)
    end subroutine
end module zero_f77_handles

subroutine zerof_init(comm, config, h, ierr)
    use zero_f77_handles
    use zero_optimizer
    implicit none
    integer :: comm, h, ierr
    character(len=*) :: config
    type(zero_t) :: context
    h = 0
    call zero_init(context, comm, config, ierr)
    if (ierr == 0) h = new_handle(context)
end subroutine

subroutine zerof_model(h, comm, ierr)
    use zero_f77_handles
    use zero_optimizer
    implicit none
    integer :: h, comm, ierr
    call zero_set_model_comm(handle_of(h), comm, ierr)
end subroutine

subroutine zerof_seti(h, key, ival, ierr)
    use zero_f77_handles
    use zero_optimizer
    implicit none
    integer :: h, ival, ierr
    character(len=*) :: key
    call zero_set(handle_of(h), key, ival, ierr)
end subroutine

subroutine zerof_setd(h, key, dval, ierr)
    use, intrinsic :: iso_fortran_env, only: real64
    use zero_f77_handles
    use zero_optimizer
    implicit none
    integer :: h, ierr
    real(real64) :: dval
    character(len=*) :: key
    call zero_set(handle_of(h), key, dval, ierr)
end subroutine

subroutine zerof_setc(h, key, text, ierr)
    use zero_f77_handles
    use zero_optimizer
    implicit none
    integer :: h, ierr
    character(len=*) :: key, text
    call zero_set(handle_of(h), key, text, ierr)
end subroutine

subroutine zerof_geti(h, key, ival, ierr)
    use zero_f77_handles
    use zero_optimizer
    implicit none
    integer :: h, ival, ierr
    character(len=*) :: key
    call zero_get(handle_of(h), key, ival, ierr)
end subroutine

subroutine zerof_getd(h, key, dval, ierr)
    use, intrinsic :: iso_fortran_env, only: real64
    use zero_f77_handles
    use zero_optimizer
    implicit none
    integer :: h, ierr
    real(real64) :: dval
    character(len=*) :: key
    call zero_get(handle_of(h), key, dval, ierr)
end subroutine

! A group of parameters with options as JSON text. Tensors that are registered from here on belong to it; a blank text makes
! no group and goes back to group 0.
subroutine zerof_group(h, json, group, ierr)
    use zero_f77_handles
    use zero_optimizer
    implicit none
    integer :: h, group, ierr
    integer, pointer :: present_group
    character(len=*) :: json
    group = 0
    ierr = 0
    if (json /= ' ') call zero_group(handle_of(h), json, group, ierr)
    present_group => group_of(h)
    if (ierr == 0) present_group = group
end subroutine

subroutine zerof_commit(h, ierr)
    use zero_f77_handles
    use zero_optimizer
    implicit none
    integer :: h, ierr
    call zero_commit(handle_of(h), ierr)
end subroutine

subroutine zerof_step(h, ierr)
    use zero_f77_handles
    use zero_optimizer
    implicit none
    integer :: h, ierr
    call zero_step(handle_of(h), ierr)
end subroutine

subroutine zerof_finish(h, ierr)
    use zero_f77_handles
    use zero_optimizer
    implicit none
    integer :: h, ierr
    call zero_finish(handle_of(h), ierr)
end subroutine

subroutine zerof_publish(h, ierr)
    use zero_f77_handles
    use zero_optimizer
    implicit none
    integer :: h, ierr
    call zero_publish(handle_of(h), ierr)
end subroutine

subroutine zerof_wait(h, ierr)
    use zero_f77_handles
    use zero_optimizer
    implicit none
    integer :: h, ierr
    call zero_wait(handle_of(h), ierr)
end subroutine

! TAG blank: step-<12 digits>.
subroutine zerof_save(h, directory, tag, ierr)
    use zero_f77_handles
    use zero_optimizer
    implicit none
    integer :: h, ierr
    character(len=*) :: directory, tag
    call zero_save(handle_of(h), directory, tag, ierr)
end subroutine

! TAG blank: the newest complete checkpoint.
subroutine zerof_load(h, directory, tag, ierr)
    use zero_f77_handles
    use zero_optimizer
    implicit none
    integer :: h, ierr
    character(len=*) :: directory, tag
    call zero_load(handle_of(h), directory, tag, ierr)
end subroutine

! The sentence of the last call that failed, padded with blanks or cut.
subroutine zerof_error(text)
    use zero_optimizer
    implicit none
    character(len=*) :: text
    call zero_error_text(text)
end subroutine

subroutine zerof_finalize(h, ierr)
    use, intrinsic :: iso_c_binding, only: c_associated
    use zero_f77_handles
    use zero_optimizer
    implicit none
    integer :: h, ierr
    type(zero_t), pointer :: context
    context => handle_of(h)
    if (.not. c_associated(context%handle)) then
        call zero_finalize(context, ierr)  ! refused, with a sentence
        return
    end if
    call zero_finalize(context, ierr)
    if (c_associated(context%handle)) return
    call drop_handle(h)
    h = 0
end subroutine
