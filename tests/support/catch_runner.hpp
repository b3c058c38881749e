// Runs the Catch2 cases that are linked in. Catch2 itself is compiled once, in catch_runner.cpp, which takes long.
#pragma once

namespace zero::test {

// `rank` of `ranks` stands before each line about a failed assertion, which is printed on stderr at once: over MPI the other
// ranks may wait for ever for the failing one. ranks = 1: no such lines.
int run_catch(int argc, char** argv, int rank, int ranks);

}  // namespace zero::test
