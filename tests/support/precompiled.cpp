// Nothing: what stands before every file of a test is precompiled along with this one (cmake/zero_test.cmake).
