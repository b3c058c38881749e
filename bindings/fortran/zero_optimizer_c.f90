! The C functions of zero/zero.h as Fortran interfaces, one to one. For the other files of this folder: programs use zero_optimizer.
! Names start with c_; outputs are intent(inout), because C leaves them alone when a call fails;
! pointers to arrays travel as type(c_ptr), C strings as character arrays that end with NUL.
module zero_optimizer_c
    use, intrinsic :: iso_c_binding, only: c_ptr, c_funptr, c_char, c_int, c_int64_t, c_double, c_size_t
    implicit none
    public

    interface
        integer(c_int) function c_init(comm, config, z) bind(C, name='zero_init_f')
            import; integer(c_int), value :: comm; character(kind=c_char), intent(in) :: config(*); type(c_ptr), intent(inout) :: z
        end function
        integer(c_int) function c_set_model_comm(z, model) bind(C, name='zero_set_model_comm_f')
            import; type(c_ptr), value :: z; integer(c_int), value :: model
        end function
        integer(c_int) function c_set_int(z, key, val) bind(C, name='zero_set_int')
            import; type(c_ptr), value :: z; character(kind=c_char), intent(in) :: key(*); integer(c_int64_t), value :: val
        end function
        integer(c_int) function c_set_real(z, key, val) bind(C, name='zero_set_real')
            import; type(c_ptr), value :: z; character(kind=c_char), intent(in) :: key(*); real(c_double), value :: val
        end function
        integer(c_int) function c_set_text(z, key, val) bind(C, name='zero_set_text')
            import; type(c_ptr), value :: z; character(kind=c_char), intent(in) :: key(*), val(*)
        end function
        integer(c_int) function c_get_int(z, key, val) bind(C, name='zero_get_int')
            import; type(c_ptr), value :: z; character(kind=c_char), intent(in) :: key(*); integer(c_int64_t), intent(inout) :: val
        end function
        integer(c_int) function c_get_real(z, key, val) bind(C, name='zero_get_real')
            import; type(c_ptr), value :: z; character(kind=c_char), intent(in) :: key(*); real(c_double), intent(inout) :: val
        end function
        integer(c_int) function c_get_text(z, key, text, capacity, needed) bind(C, name='zero_get_text')
            import; type(c_ptr), value :: z; character(kind=c_char), intent(in) :: key(*)
            character(kind=c_char), intent(inout) :: text(*)
            integer(c_size_t), value :: capacity; integer(c_size_t), intent(inout) :: needed
        end function
        integer(c_int) function c_group(z, options, group) bind(C, name='zero_group')
            import; type(c_ptr), value :: z; character(kind=c_char), intent(in) :: options(*)
            integer(c_int), intent(inout) :: group
        end function
        integer(c_int) function c_register(z, name, dtype, ndim, dims, values, group, id) bind(C, name='zero_register')
            import; type(c_ptr), value :: z, values; character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: dtype, ndim, group; integer(c_int64_t), intent(in) :: dims(*)
            integer(c_int), intent(inout) :: id
        end function
        integer(c_int) function c_find(z, name, id) bind(C, name='zero_find')
            import; type(c_ptr), value :: z; character(kind=c_char), intent(in) :: name(*); integer(c_int), intent(inout) :: id
        end function
        integer(c_int) function c_tensor(z, id, dtype, ndim, dims) bind(C, name='zero_tensor')
            import; type(c_ptr), value :: z; integer(c_int), value :: id
            integer(c_int), intent(inout) :: dtype, ndim; integer(c_int64_t), intent(inout) :: dims(*)
        end function
        integer(c_int) function c_count(z, count) bind(C, name='zero_count')
            import; type(c_ptr), value :: z; integer(c_int), intent(inout) :: count
        end function
        integer(c_int) function c_attach(z, name, dtype, ndim, dims, data, kind) bind(C, name='zero_attach')
            import; type(c_ptr), value :: z, data; character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: dtype, ndim, kind; integer(c_int64_t), intent(in) :: dims(*)
        end function
        integer(c_int) function c_place(z, id, global_dims, offset, low, high) bind(C, name='zero_place')
            import; type(c_ptr), value :: z; integer(c_int), value :: id
            integer(c_int64_t), intent(in) :: global_dims(*), offset(*), low(*), high(*)
        end function
        integer(c_int) function c_state(z, name) bind(C, name='zero_state')
            import; type(c_ptr), value :: z; character(kind=c_char), intent(in) :: name(*)
        end function
        integer(c_int) function c_forecast(z, place, bytes, peak) bind(C, name='zero_forecast')
            import; type(c_ptr), value :: z; integer(c_int), value :: place; integer(c_int64_t), intent(inout) :: bytes, peak
        end function
        integer(c_int) function c_memory(z, place, bytes, peak) bind(C, name='zero_memory')
            import; type(c_ptr), value :: z; integer(c_int), value :: place; integer(c_int64_t), intent(inout) :: bytes, peak
        end function
        integer(c_int) function c_commit(z) bind(C, name='zero_commit')
            import; type(c_ptr), value :: z
        end function
        integer(c_int) function c_fill(z, id, kind, a, b, seed) bind(C, name='zero_fill')
            import; type(c_ptr), value :: z; integer(c_int), value :: id; character(kind=c_char), intent(in) :: kind(*)
            real(c_double), value :: a, b; integer(c_int64_t), value :: seed
        end function
        integer(c_int) function c_gather(z, id, values) bind(C, name='zero_gather')
            import; type(c_ptr), value :: z; integer(c_int), value :: id; type(c_ptr), intent(inout) :: values
        end function
        integer(c_int) function c_prefetch(z, id) bind(C, name='zero_prefetch')
            import; type(c_ptr), value :: z; integer(c_int), value :: id
        end function
        integer(c_int) function c_release(z, id) bind(C, name='zero_release')
            import; type(c_ptr), value :: z; integer(c_int), value :: id
        end function
        integer(c_int) function c_scatter(z, id, root, values) bind(C, name='zero_scatter')
            import; type(c_ptr), value :: z, values; integer(c_int), value :: id, root
        end function
        integer(c_int) function c_gather_to(z, id, root, buffer) bind(C, name='zero_gather_to')
            import; type(c_ptr), value :: z, buffer; integer(c_int), value :: id, root
        end function
        integer(c_int) function c_gather_state(z, id, state, root, buffer) bind(C, name='zero_gather_state')
            import; type(c_ptr), value :: z, buffer; integer(c_int), value :: id, root
            character(kind=c_char), intent(in) :: state(*)
        end function
        integer(c_int) function c_scatter_state(z, id, state, root, buffer) bind(C, name='zero_scatter_state')
            import; type(c_ptr), value :: z, buffer; integer(c_int), value :: id, root
            character(kind=c_char), intent(in) :: state(*)
        end function
        integer(c_int) function c_gather_list(z, n, ids, values) bind(C, name='zero_gather_list')
            import; type(c_ptr), value :: z; integer(c_int), value :: n; integer(c_int), intent(in) :: ids(*)
            type(c_ptr), intent(inout) :: values(*)
        end function
        integer(c_int) function c_release_list(z, n, ids) bind(C, name='zero_release_list')
            import; type(c_ptr), value :: z; integer(c_int), value :: n; integer(c_int), intent(in) :: ids(*)
        end function
        integer(c_int) function c_rebind(z, id, values) bind(C, name='zero_rebind')
            import; type(c_ptr), value :: z, values; integer(c_int), value :: id
        end function
        integer(c_int) function c_gradient(z, id, buffer) bind(C, name='zero_gradient')
            import; type(c_ptr), value :: z; integer(c_int), value :: id; type(c_ptr), intent(inout) :: buffer
        end function
        integer(c_int) function c_reduce_scaled(z, id, factor, gradient) bind(C, name='zero_reduce_scaled')
            import; type(c_ptr), value :: z, gradient; integer(c_int), value :: id; real(c_double), value :: factor
        end function
        integer(c_int) function c_reduce_list(z, n, ids, gradients) bind(C, name='zero_reduce_list')
            import; type(c_ptr), value :: z; integer(c_int), value :: n; integer(c_int), intent(in) :: ids(*)
            type(c_ptr), intent(in) :: gradients(*)
        end function
        integer(c_int) function c_step(z) bind(C, name='zero_step')
            import; type(c_ptr), value :: z
        end function
        integer(c_int) function c_finish(z) bind(C, name='zero_finish')
            import; type(c_ptr), value :: z
        end function
        integer(c_int) function c_slice(z, id, state, data, first, count) bind(C, name='zero_slice')
            import; type(c_ptr), value :: z; integer(c_int), value :: id; character(kind=c_char), intent(in) :: state(*)
            type(c_ptr), intent(inout) :: data; integer(c_int64_t), intent(inout) :: first, count
        end function
        integer(c_int) function c_publish(z) bind(C, name='zero_publish')
            import; type(c_ptr), value :: z
        end function
        integer(c_int) function c_dot(z, a, b, group, res) bind(C, name='zero_dot')
            import; type(c_ptr), value :: z; character(kind=c_char), intent(in) :: a(*), b(*); integer(c_int), value :: group
            real(c_double), intent(inout) :: res
        end function
        integer(c_int) function c_wait(z) bind(C, name='zero_wait')
            import; type(c_ptr), value :: z
        end function
        integer(c_int) function c_save(z, directory, tag) bind(C, name='zero_save')
            import; type(c_ptr), value :: z; character(kind=c_char), intent(in) :: directory(*), tag(*)
        end function
        integer(c_int) function c_load(z, directory, tag) bind(C, name='zero_load')
            import; type(c_ptr), value :: z; character(kind=c_char), intent(in) :: directory(*), tag(*)
        end function
        integer(c_int) function c_should_stop(z, flag) bind(C, name='zero_should_stop')
            import; type(c_ptr), value :: z; integer(c_int), intent(inout) :: flag
        end function
        integer(c_int) function c_report(z, text, capacity, needed) bind(C, name='zero_report')
            import; type(c_ptr), value :: z; character(kind=c_char), intent(inout) :: text(*)
            integer(c_size_t), value :: capacity; integer(c_size_t), intent(inout) :: needed
        end function
        integer(c_int) function c_estimate(config, dtype, ranks, nodes, elements, largest, device, host, nvme) &
                bind(C, name='zero_estimate')
            import; character(kind=c_char), intent(in) :: config(*); integer(c_int), value :: dtype, ranks, nodes
            integer(c_int64_t), value :: elements, largest; integer(c_int64_t), intent(inout) :: device, host, nvme
        end function
        integer(c_int) function c_set_stream(z, stream) bind(C, name='zero_set_stream')
            import; type(c_ptr), value :: z, stream
        end function
        integer(c_int) function c_set_log(z, fn, user) bind(C, name='zero_set_log')
            import; type(c_ptr), value :: z, user; type(c_funptr), value :: fn
        end function
        type(c_ptr) function c_error_name(code) bind(C, name='zero_error_name')
            import; integer(c_int), value :: code
        end function
        type(c_ptr) function c_last_error() bind(C, name='zero_last_error')
            import
        end function
        integer(c_int) function c_version(major, minor, patch) bind(C, name='zero_version')
            import; integer(c_int), intent(inout) :: major, minor, patch
        end function
        type(c_ptr) function c_build_info() bind(C, name='zero_build_info')
            import
        end function
        integer(c_int) function c_finalize(z) bind(C, name='zero_finalize')
            import; type(c_ptr), intent(inout) :: z
        end function
        integer(c_int) function c_refuse(z, collective, call_name, sentence) bind(C, name='zerof_refuse')
            import; type(c_ptr), value :: z; integer(c_int), value :: collective
            character(kind=c_char), intent(in) :: call_name(*), sentence(*)
        end function
        integer(c_int) function c_reduce_flat(z, id, dtype, factor, gradient) bind(C, name='zerof_reduce_flat')
            import; type(c_ptr), value :: z, gradient; integer(c_int), value :: id, dtype; real(c_double), value :: factor
        end function
        integer(c_size_t) function c_strlen(text) bind(C, name='strlen')
            import; type(c_ptr), value :: text
        end function
    end interface
end module zero_optimizer_c
