! B48: texts in both directions, with guards around what is written.
program strings
    use mpi
    use checks
    use zero_optimizer
    implicit none
    type :: guarded
        sequence
        character(len=8) :: before = '########'
        character(len=400) :: text = repeat('?', 400)
        character(len=8) :: after = '########'
    end type
    type(zero_t) :: z
    type(guarded) :: room
    character(len=4096) :: config
    character(len=64) :: folder
    character(len=400) :: sentence
    character(len=3) :: exact
    character(len=2) :: cut
    integer :: ierr, code, length, at, id
    real, target :: w(4) = 0
    call MPI_Init(ierr)

    config = '{"optimizer": {"type": "SGD"}}'
    call zero_init(z, MPI_COMM_WORLD, config)
    call zero_get(z, 'optimizer.type', exact)
    call check(exact == 'SGD', 'a text that fits exactly')
    call zero_get(z, 'optimizer.type', cut)
    call check(cut == 'SG', 'a text that is cut')
    call zero_get(z, 'optimizer.type  ', room%text)
    call check(room%text == 'SGD' .and. index(room%text, achar(0)) == 0, 'padded with blanks, no NUL')
    call zero_set(z, 'optimizer.params.lr ', 0.5d0)
    call zero_set(z, 'optimizer.params.nesterov', 'false    ')

    ! An error text of length L into L-1, L, L+1 and 1 characters.
    call zero_set(z, 'no.such.key', 1, code)
    call check(code == ZERO_ERR_CONFIG, 'unknown key')
    call zero_error_text(sentence)
    length = len_trim(sentence)
    call check(length > 10 .and. length < 399, 'length of the sentence')
    do at = 1, 4
        call into(merge(1, length + at - 3, at == 1))
    end do
    call zero_error_name(ZERO_ERR_CONFIG, room%text)
    call check(room%text == 'ZERO_ERR_CONFIG', 'the name of a code')

    ! NUL inside a text is refused, wherever it stands.
    call zero_register(z, 'w'//achar(0)//'x', w, id, ierr=code)
    call check(code == ZERO_ERR_ARGUMENT, 'NUL in a name')
    call zero_error_text(sentence)
    call check(index(sentence, 'NUL') > 0, 'and said so')
    call zero_set(z, 'optimizer.params.lr'//achar(0), 1.0, code)
    call check(code == ZERO_ERR_ARGUMENT, 'NUL at the end of a key')
    call zero_register(z, 'w with blanks inside  ', w, id)
    call zero_commit(z)

    folder = 'ckpt'
    call save(folder, 'ckpt')
    folder = 'my run'
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call make_folder('my run')
    call save('my run/ckpt  ', 'my run/ckpt')
    call zero_finalize(z)

    config = '{"optimizer": '//achar(0)//' {"type": "SGD"}}'
    call zero_init(z, MPI_COMM_WORLD, config, code)
    call check(code == ZERO_ERR_CONFIG .or. code == ZERO_ERR_ARGUMENT, 'NUL in the configuration')
    call zero_init(z, MPI_COMM_WORLD, 'file'//achar(0)//'name', code)
    call check(code == ZERO_ERR_IO .or. code == ZERO_ERR_ARGUMENT, 'NUL in the name of the configuration file')
    call zero_build_info(room%text)
    call check(index(room%text, 'libzero') == 1 .and. room%before == '########' .and. room%after == '########', 'guards')
    call finish()

contains

    subroutine into(characters)
        integer, intent(in) :: characters
        room%text = repeat('?', 400)
        call zero_error_text(room%text(:characters))
        call check(room%text(:characters) == sentence(:characters), 'the sentence, padded or cut')
        call check(index(room%text, achar(0)) == 0, 'no NUL')
        call check(room%text(characters + 1:) == repeat('?', 400 - characters), 'nothing written behind')
        call check(room%before == '########' .and. room%after == '########', 'guards')
    end subroutine

    subroutine save(directory, expected)
        character(len=*), intent(in) :: directory, expected
        logical :: exists
        call zero_save(z, directory, 'first', code)
        if (code == ZERO_ERR_UNSUPPORTED) return  ! built without HDF5
        call check(code == 0, 'saving to '//expected)
        inquire (file=expected//'/first/MANIFEST.json', exist=exists)
        call check(exists, 'the folder is '//expected)
        inquire (file=expected//' /first/MANIFEST.json', exist=exists)
        call check(.not. exists, 'without trailing blanks')
        call zero_load(z, directory, ierr=code)
        call check(code == 0, 'loading the newest')
        call zero_load(z, directory, 'first    ')
    end subroutine

    subroutine make_folder(name)
        character(len=*), intent(in) :: name
        integer :: rank
        call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
        if (rank == 0) call execute_command_line('mkdir -p "'//name//'"')
        call MPI_Barrier(MPI_COMM_WORLD, ierr)
    end subroutine
end program
