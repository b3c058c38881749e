// The same program as C++: the header must mean the same there. See signatures.c.
#include "signatures.c"
