// The main of tests that need no MPI.
#include "support/catch_runner.hpp"

int main(int argc, char** argv) { return zero::test::run_catch(argc, argv, 0, 1); }
