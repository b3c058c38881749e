! Must not compile with 8-byte default integers against the installed module of 4-byte ones: never a wrong run.
subroutine wide(z)
    use zero_optimizer
    implicit none
    type(zero_t) :: z
    integer :: ierr
    call zero_step(z, ierr)
end subroutine
