! The command line of the inversion: names, meanings and defaults in one place. Every rank reads it for itself.
module options
    use, intrinsic :: iso_fortran_env, only: output_unit
    implicit none
    private
    public :: options_t, read_options, print_help

    type :: options_t
        integer :: stage = 3, size = 512, steps = 60, save_every = 0, stop_after = 0, experiments = 4
        character(len=1024) :: directory = 'inversion_checkpoints', picture = 'inversion.pgm'
        logical :: resume = .false., check_gradient = .false., help = .false.
    end type

contains

    subroutine read_options(chosen, problem)
        type(options_t), intent(out) :: chosen
        character(len=:), allocatable, intent(out) :: problem
        integer :: k
        problem = ''
        k = 1
        do while (k <= command_argument_count() .and. problem == '')
            call read_option(k, chosen, problem)
            k = k + 1
        end do
        if (problem == '') problem = out_of_range(chosen)
    end subroutine

    subroutine read_option(k, chosen, problem)
        integer, intent(inout) :: k
        type(options_t), intent(inout) :: chosen
        character(len=:), allocatable, intent(inout) :: problem
        character(len=1024) :: name
        call get_command_argument(k, name)
        select case (name)
        case ('--stage')
            call read_integer(k, chosen%stage, problem)
        case ('--size')
            call read_integer(k, chosen%size, problem)
        case ('--steps')
            call read_integer(k, chosen%steps, problem)
        case ('--save-every')
            call read_integer(k, chosen%save_every, problem)
        case ('--stop-after')
            call read_integer(k, chosen%stop_after, problem)
        case ('--experiments')
            call read_integer(k, chosen%experiments, problem)
        case ('--directory')
            call read_text(k, chosen%directory, problem)
        case ('--picture')
            call read_text(k, chosen%picture, problem)
        case ('--resume')
            chosen%resume = .true.
        case ('--check-gradient')
            chosen%check_gradient = .true.
        case ('--help', '-h')
            chosen%help = .true.
        case default
            problem = 'unknown option ' // trim(name) // '; --help lists them'
        end select
    end subroutine

    subroutine read_integer(k, value, problem)
        integer, intent(inout) :: k, value
        character(len=:), allocatable, intent(inout) :: problem
        character(len=1024) :: name, text
        integer :: status
        call get_command_argument(k, name)
        call read_text(k, text, problem)
        if (problem /= '') return
        read (text, *, iostat=status) value
        if (status /= 0 .or. verify(trim(text), '0123456789') /= 0) then
            problem = trim(name) // ' needs a whole number, not ' // trim(text)
        end if
    end subroutine

    subroutine read_text(k, value, problem)
        integer, intent(inout) :: k
        character(len=*), intent(inout) :: value
        character(len=:), allocatable, intent(inout) :: problem
        character(len=1024) :: name
        integer :: length
        call get_command_argument(k, name)
        if (k == command_argument_count()) then
            problem = trim(name) // ' needs a value'
            return
        end if
        k = k + 1
        call get_command_argument(k, value, length)
        if (length > len(value)) problem = 'the value of ' // trim(name) // ' is too long'
        if (length == 0) problem = trim(name) // ' needs a value'
    end subroutine

    function out_of_range(chosen) result(problem)
        type(options_t), intent(in) :: chosen
        character(len=:), allocatable :: problem
        problem = ''
        if (chosen%stage > 3) problem = '--stage must be 0, 1, 2 or 3'
        if (chosen%size < 8 .or. chosen%size > 4096) problem = '--size must be 8 to 4096'
        if (chosen%steps < 1) problem = '--steps must be at least 1'
        if (chosen%experiments < 1) problem = '--experiments must be at least 1'
    end function

    subroutine print_help()
        write (output_unit, '(a)') &
            'inversion: finds the conductivity of every cell of a plate from photographs of its temperature', &
            '  --stage 0..3        stage of ZeRO (3)', &
            '  --size N            cells along each side, 8 to 4096; a rank takes 0.3 KiB per cell (512)', &
            '  --steps N           updates in all (60)', &
            '  --experiments N     ways in which the plate is heated, dealt out to the ranks (4)', &
            '  --save-every N      saves a checkpoint after every N updates; 0: never (0)', &
            '  --directory FOLDER  where checkpoints are (inversion_checkpoints)', &
            '  --resume            goes on from the newest checkpoint', &
            '  --stop-after N      aborts after N updates, as a crash would', &
            '  --picture FILE      the true field and the recovered one, PGM (inversion.pgm)', &
            '  --check-gradient    compares the adjoint with central differences, and ends'
    end subroutine
end module options
