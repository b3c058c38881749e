/* What a program does with the codes of libzero: CHECK(zero_step(z)) goes on, or says which call failed on which rank
   with the library's own sentence, and ends the program. The library itself never prints and never ends a program. */
#ifndef TEXT_MODEL_CHECK_H
#define TEXT_MODEL_CHECK_H

#define CHECK(call) check_code((call), #call)

void check_code(int code, const char *call);
/* Ends the program on all ranks with a sentence of its own. */
void stop(const char *sentence, const char *detail);

#endif
