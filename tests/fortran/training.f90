! Stages 0 to 3 from Fortran against descent on paper: kinds, ranks 0 to 7, dims reversed, hand-overs, slices, lists, states,
! sections with gaps and wrong shapes refused. Compiled with both widths of default integers and reals (B46).
program training
    use, intrinsic :: iso_c_binding, only: c_ptr, c_loc, c_f_pointer
    use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
    use mpi
    use checks
    use zero_optimizer
    implicit none
    integer, parameter :: mpi_kind = kind(MPI_COMM_WORLD)
    integer(mpi_kind) :: rank, ranks, ierr
    integer :: stage
    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    do stage = 0, 3
        call descend(stage)
        call all_ranks(stage)
        call in_parts(stage)
        call misuse(stage)
    end do
    call sizes_beyond_32_bits()
    call finish()

contains

    subroutine begin(z, stage)
        type(zero_t), intent(out) :: z
        integer, intent(in) :: stage
        call zero_init(z, MPI_COMM_WORLD, '{"optimizer": {"type": "SGD", "params": {"lr": 0.25}}}')
        call zero_set(z, 'zero_optimization.stage', stage)
        call zero_set(z, 'zero_optimization.stage3_param_persistence_threshold', 0_int32)
        call zero_set(z, 'libzero.stale_check', .false.)
    end subroutine

    ! f = sum over ranks r of |w - r|^2 / 2: the mean gradient is w - (P-1)/2.
    subroutine descend(stage)
        integer, intent(in) :: stage
        type(zero_t) :: z
        real(real64), allocatable, target :: w(:, :)
        real(real32), target :: s
        real(real64), pointer :: p(:, :), g(:, :)
        real(real64) :: expected, whole(3, 4), lr
        real(real32) :: expected_s, whole_s
        integer :: id, id_s, step, number
        integer(int64) :: steps
        logical :: flag
        allocate (w(3, 4))
        w = 8
        s = 4
        call begin(z, stage)
        call zero_register(z, 'w', w, id)
        call zero_register(z, 's', s, id_s)
        call zero_count(z, number)
        call check(number == 2, 'two tensors')
        call zero_commit(z)
        expected = 8
        expected_s = 4
        do step = 1, 10
            call zero_gather(z, id, p)
            call check(all(shape(p) == [3, 4]), 'shape of the gathered pointer')
            call zero_gradient(z, id, g)
            g = p - rank
            call zero_release(z, id)
            call zero_reduce(z, id)
            call zero_reduce_scaled(z, id_s, 0.5_real32, 2.0_real32)
            call zero_step(z)
            expected = expected - 0.25_real64*(expected - 0.5_real64*(ranks - 1))
            expected_s = expected_s - 0.25_real32
            call zero_gather_to(z, id, ZERO_EVERYONE, whole)
            call check(all(abs(whole - expected) <= 1e-12_real64*max(1.0_real64, abs(expected))), 'values after a step')
            call zero_gather_to(z, id_s, ZERO_EVERYONE, whole_s)
            call check(whole_s == expected_s, 'the scalar after a step')
            if (stage < 3) call check(all(w == whole), 'the caller''s array is up to date')
        end do
        call zero_get(z, 'step', steps)
        call check(steps == 10, 'ten steps')
        call zero_get(z, 'lr', lr)
        call check(lr == 0.25_real64, 'rate')
        call zero_get(z, 'libzero.stale_check', flag)
        call check(.not. flag, 'a logical option')
        call zero_finalize(z)
    end subroutine

    ! Every rank of array: dims are stored reversed, elements keep their order in memory.
    subroutine all_ranks(stage)
        integer, intent(in) :: stage
        type(zero_t) :: z
        real(real32), target :: a0, a1(2), a2(2, 3), a3(2, 3, 1), a4(2, 1, 3, 2), a5(2, 1, 1, 1, 2), a6(1, 2, 1, 2, 1, 2)
        real(real64), target :: a7(2, 1, 2, 1, 2, 1, 3)
        real(real64), pointer :: p7(:, :, :, :, :, :, :)
        real(real32), pointer :: p2(:, :)
        real(real64) :: given(24), got(2, 1, 2, 1, 2, 1, 3)
        integer :: ids(0:7), dtype, number, group
        integer(int64) :: extents(7)
        a0 = 0; a1 = 0; a2 = 0; a3 = 0; a4 = 0; a5 = 0; a6 = 0; a7 = 0
        given = [(real(number, real64), number=1, 24)]
        call begin(z, stage)
        call zero_group(z, '{"lr": 1}', group)
        call zero_register(z, 'a0', a0, ids(0))
        call zero_register(z, 'a1', a1, ids(1), group)
        call zero_register(z, 'a2', a2, ids(2), group=group)
        call zero_register(z, 'a3', a3, ids(3))
        call zero_register(z, 'a4', a4, ids(4))
        call zero_register(z, 'a5', a5, ids(5))
        call zero_register(z, 'a6', a6, ids(6))
        call zero_register(z, 'a7', a7, ids(7))
        call zero_register(z, 'own', ZERO_F32, [5_int64, 6_int64], number)
        call zero_register(z, 'own too', ZERO_BF16, [7_int32], number)
        call zero_tensor(z, ids(7), dtype, number, extents)
        call check(dtype == ZERO_F64 .and. number == 7 .and. all(extents == shape(a7)), 'extents come back as Fortran has them')
        call zero_find(z, 'a4 ', number)
        call check(number == ids(4), 'find, with a blank')
        call zero_commit(z)
        if (rank == ranks - 1) then
            call zero_scatter(z, ids(7), int(ranks - 1), given)  ! another rank with as many elements
        else
            call zero_scatter(z, ids(7), int(ranks - 1))
        end if
        call zero_gather(z, ids(7), p7)
        call check(all(reshape(p7, [24]) == given), 'elements in order')
        call check(all(shape(p7) == shape(a7)), 'and in shape')
        call zero_release(z, ids(7))
        call zero_gather_state(z, ids(7), 'master', ZERO_EVERYONE, got)
        call check(all(reshape(got, [24]) == given), 'the state')
        a2 = 1
        call zero_reduce(z, ids(2), a2)
        call zero_step(z)
        call zero_gather(z, ids(2), p2)
        ! stages 0 to 2 take the edited array as the present values
        call check(all(p2 == merge(0.0, -1.0, stage < 3)), 'the rate of the group')
        call zero_release(z, ids(2))
        call zero_finalize(z)
    end subroutine

    subroutine in_parts(stage)
        integer, intent(in) :: stage
        type(zero_t) :: z
        real(real64), target :: w(11), g(11)
        real(real64), pointer :: values(:), gradient(:), whole(:)
        integer(int64) :: first, count, bytes, peak
        real(real64) :: squares
        type(c_ptr) :: places(1)
        integer :: id, i
        logical :: flag
        w = 0
        g = [(real(i, real64), i=1, 11)]
        call begin(z, stage)
        call zero_state(z, 'mine')
        call zero_register(z, 'w', w, id)
        call zero_commit(z)
        call zero_reduce_list(z, [id], [c_loc(g)])
        call zero_finish(z)
        call zero_slice(z, id, 'gradient', gradient, first, count)
        call check(size(gradient) == count .and. first >= 1 .and. first + count - 1 <= 11, 'slice')
        call check(all(gradient == g(first:first + count - 1)), 'element numbers count from 1')
        call zero_slice(z, id, 'value', values, first, count)
        values = values - 2*gradient
        call zero_dot(z, 'gradient', 'gradient', squares)
        call check(squares == sum(g**2), 'dot over all')
        call zero_dot(z, 'gradient', 'gradient', 0, squares)
        call check(squares == sum(g**2), 'dot over group 0')
        call zero_publish(z)
        call zero_gather_list(z, [id], places)
        call c_f_pointer(places(1), whole, [11])
        call check(all(whole == -2*g), 'the caller''s own step')
        call zero_release_list(z, [id])
        call zero_fill(z, id, 'constant', 3.0)
        call zero_gather_to(z, id, ZERO_EVERYONE, g)
        call check(all(g == 3), 'fill')
        call zero_fill(z, id, 'uniform', 1.0_real64, 2.0_real64, 42)
        call zero_gather_to(z, id, ZERO_EVERYONE, g)
        call check(all(g >= 1 .and. g < 2), 'fill uniform')
        call zero_memory(z, ZERO_PLACE_HOST, bytes, peak)
        call check(bytes > 0 .and. peak >= bytes, 'memory')
        call zero_should_stop(z, flag)
        call check(.not. flag, 'no reason to stop')
        call zero_wait(z)
        call zero_finalize(z)
    end subroutine

    subroutine misuse(stage)
        integer, intent(in) :: stage
        type(zero_t) :: z
        real(real64), target :: w(4, 6), other(4, 6)
        real(real32) :: narrow(4, 6)
        real(real64) :: scalar, transposed(6, 4)
        real(real64), pointer :: p(:), q(:, :), unassociated(:)
        real(real32), pointer :: r(:, :)
        integer :: id, code, unit
        character(len=300) :: text
        nullify (unassociated)
        w = 0
        other = 1
        narrow = 1
        call begin(z, stage)
        call zero_register(z, 'gaps', w(1:4:2, :), id, ierr=code)
        call check(code == ZERO_ERR_ARGUMENT, 'an array with gaps cannot be kept')
        call zero_error_text(text)
        call check(index(text, 'contiguous') > 0, 'sentence about the gaps')
        call zero_register(z, 'nothing', unassociated, id, ierr=code)
        call check(code == ZERO_ERR_ARGUMENT, 'a pointer to nothing cannot be kept')
        call zero_register(z, 'columns', w(:, 2:3), id)  ! contiguous: allowed
        call zero_register(z, 'other', other, id)
        call zero_register(z, 'other', other, id, ierr=code)
        call check(code == ZERO_ERR_ARGUMENT, 'the same name again')
        call zero_find(z, 'other', id)
        call zero_commit(z)
        call zero_reduce(z, id, narrow, code)
        call check(code == ZERO_ERR_ARGUMENT, 'a gradient of the wrong kind')
        call zero_reduce(z, id, transposed, code)
        call check(code == ZERO_ERR_ARGUMENT, 'a gradient of the wrong shape')
        call zero_reduce(z, id, w(1:3, :), code)
        call check(code == ZERO_ERR_ARGUMENT, 'a gradient of the wrong size')
        call zero_reduce(z, id, 1.0_real64, code)
        call check(code == ZERO_ERR_ARGUMENT, 'a scalar as gradient')
        call zero_reduce(z, 99, w, code)
        call check(code == ZERO_ERR_ARGUMENT, 'an unknown id')
        call zero_reduce(z, id, other(4:1:-1, :), code)
        call check(code == ZERO_ERR_ARGUMENT, 'a gradient with a stride')
        call zero_gather(z, id, p, code)
        call check(code == ZERO_ERR_ARGUMENT .and. .not. associated(p), 'a pointer of the wrong rank')
        call zero_gather(z, id, r, code)
        call check(code == ZERO_ERR_ARGUMENT .and. .not. associated(r), 'a pointer of the wrong kind')
        call zero_gather(z, 99, q, code)
        call check(code == ZERO_ERR_ARGUMENT, 'an unknown id to gather')
        ! One rank alone in a collective call: all get the error.
        if (rank == ranks - 1) then
            call zero_gather_to(z, id, ZERO_EVERYONE, transposed, code)
        else
            call zero_gather_to(z, id, ZERO_EVERYONE, w, code)
        end if
        call check(code == ZERO_ERR_ARGUMENT, 'the wrong shape on one rank')
        call zero_gather_state(z, id, 'value', ZERO_EVERYONE, narrow, code)
        call check(code == ZERO_ERR_ARGUMENT, 'a state of the wrong kind')
        call zero_get(z, 'no_such_key', scalar, code)
        call check(code == ZERO_ERR_CONFIG, 'an unknown key')
        call zero_set(z, 'zero_optimization.stage', 1, code)
        call check(code == ZERO_ERR_STATE, 'a fixed key')
        call zero_save(z, 'dir'//achar(0)//'ectory', ierr=code)
        call check(code == ZERO_ERR_ARGUMENT, 'a NUL in a folder''s name')
        open (newunit=unit, status='scratch')
        call zero_set_log(z, unit)
        call zero_reset_log(z)
        call zero_report(z, unit)
        close (unit)
        call zero_gather(z, id, q)
        call check(all(q == 1), 'still usable')
        call zero_release(z, id)
        call zero_finalize(z)
        call zero_finalize(z, code)
        call check(code == ZERO_ERR_ARGUMENT, 'finalized twice')
    end subroutine

    ! B46: sizes as any integer; 32-bit arithmetic cannot show the answer.
    subroutine sizes_beyond_32_bits()
        character(len=*), parameter :: config = &
            '{"zero_optimization": {"stage": 1}, "optimizer": {"type": "Adam"}, "libzero": {"device": "host"}}'
        integer(int64) :: device, host, nvme
        call zero_estimate(config, ZERO_F32, 8, 1, 3000000000_int64, 3000000000_int64, device, host, nvme)
        call check(device == 0 .and. host == 27000000000_int64 .and. nvme == 0, 'the estimate')
        call zero_estimate(config, ZERO_F32, 8, 1, 8192_int32, 8192_int32, device, host, nvme)
        call check(host == 73728, 'the estimate of a small model')
        call zero_estimate(config, ZERO_F32, 8, 1, 8192, 8192, device, host, nvme)
        call check(host == 73728, 'with default integers')
    end subroutine
end program
