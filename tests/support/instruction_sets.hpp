// Runs a piece of a test once for every instruction set that this machine has.
#pragma once
#include <string>

#include "tensor/vector.hpp"

template <typename Test>
void for_each_instruction_set(Test test) {
    const std::string before = zero::vector::instruction_set();
    for (const char* which : {"baseline", "avx2", "avx512"}) {
        if (zero::vector::use_instruction_set(which)) test(which);
    }
    zero::vector::use_instruction_set(before.c_str());
}
