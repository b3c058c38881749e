// The largest piece of memory that anybody asked `new` for since this was set to 0. With largest_allocation.cpp linked in.
#pragma once
#include <atomic>
#include <cstddef>

namespace zero::test {

extern std::atomic<std::size_t> largest_allocation;

}  // namespace zero::test
