! A field that libzero owns, in device memory where the library works there: OpenACC computes a gradient beside it and hands over its
! device address. Where there is no device (or no OpenACC) the same lines run in host memory. Status 1 when the misfit does not fall.
program descent
    use, intrinsic :: iso_fortran_env, only: real64, int64
    use, intrinsic :: iso_c_binding, only: c_ptr, c_loc, c_f_pointer
    use mpi_f08
    use zero_optimizer
    implicit none
    integer, parameter :: n = 100000, updates = 60
    character(len=*), parameter :: configuration = '{"zero_optimization": {"stage": 2}, &
        &"optimizer": {"type": "Adam", "params": {"lr": 0.05}}}'
    type(zero_t) :: z
    type(c_ptr) :: whole(1), gradients(1)
    real(real64), pointer :: field(:)
    real(real64), target, allocatable :: gradient(:)
    real(real64) :: misfit, first_misfit
    integer(int64) :: bytes, peak
    integer :: id, update, rank
    logical :: on_device

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    allocate(gradient(n))
    !$acc enter data create(gradient)   ! before zero_init: "auto" then finds that this program uses the device
    call zero_init(z, MPI_COMM_WORLD, configuration)
    call zero_register(z, 'field', ZERO_F64, [n], id)
    call zero_commit(z)
    call zero_memory(z, ZERO_PLACE_DEVICE, bytes, peak)
    on_device = bytes > 0
    do update = 1, updates
        call zero_gather_list(z, [id], whole)
        call c_f_pointer(whole(1), field, [n])
        call compute(n, field, gradient, misfit, on_device)
        call zero_release_list(z, [id])
        if (update == 1) first_misfit = misfit
        gradients(1) = place_of(n, gradient, on_device)
        call zero_reduce_list(z, [id], gradients)
        call zero_step(z)
    end do
    if (rank == 0) print '(a, l2, a, es10.3, a, es10.3)', 'on a device:', on_device, '  misfit ', first_misfit, ' -> ', misfit
    !$acc exit data delete(gradient)
    call zero_finalize(z)
    call MPI_Finalize()
    if (misfit > 0.01_real64 * first_misfit) stop 1

contains

    ! field: an address of the library's, so it needs no copy; gradient: this program's, present on the device.
    subroutine compute(count, field, gradient, misfit, on_device)
        integer, intent(in) :: count
        real(real64), intent(in) :: field(count)
        real(real64), intent(inout) :: gradient(count)
        real(real64), intent(out) :: misfit
        logical, intent(in) :: on_device
        real(real64) :: total
        integer :: i
        total = 0
        if (on_device) then
            !$acc parallel loop deviceptr(field) present(gradient) copy(total) reduction(+:total)
            do i = 1, count
                gradient(i) = field(i) - sin(0.001_real64 * i)
                total = total + 0.5_real64 * gradient(i)**2
            end do
        else
            do i = 1, count
                gradient(i) = field(i) - sin(0.001_real64 * i)
                total = total + 0.5_real64 * gradient(i)**2
            end do
        end if
        misfit = total
    end subroutine compute

    ! The device's address where the gradient is there.
    type(c_ptr) function place_of(count, gradient, on_device)
        integer, intent(in) :: count
        real(real64), intent(in), target :: gradient(count)
        logical, intent(in) :: on_device
        place_of = c_loc(gradient)
        if (.not. on_device) return
        !$acc host_data use_device(gradient)
        place_of = c_loc(gradient)
        !$acc end host_data
    end function place_of
end program descent
