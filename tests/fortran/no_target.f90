! Must not compile: an array that the library keeps needs the attribute target.
subroutine no_target(z)
    use zero_optimizer
    implicit none
    type(zero_t) :: z
    real :: w(4)
    integer :: id
    call zero_register(z, 'w', w, id)
end subroutine
