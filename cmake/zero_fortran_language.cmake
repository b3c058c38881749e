# Turns Fortran on when it is wanted, and says what to do when there is no compiler.
if(ZERO_FORTRAN)
    include(CheckLanguage)
    check_language(Fortran)
    if(NOT CMAKE_Fortran_COMPILER)
        message(FATAL_ERROR "ZERO_FORTRAN=ON, but no Fortran compiler was found. Install one (Debian: gfortran) or "
                            "configure with -DZERO_FORTRAN=OFF.")
    endif()
    enable_language(Fortran)
endif()
