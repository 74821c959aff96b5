/* What the examples have in common: the end of a program in which something has failed. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <pumice.h>
#include <stdio.h>
#include <stdlib.h>

/* A call that must succeed. */
#define DO(call)                                                                                          \
    do {                                                                                                  \
        pumice_status status_ = (call);                                                                   \
        if (status_ != PUMICE_OK) {                                                                       \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, pumice_status_name(status_),           \
                    pumice_error_message());                                                              \
            exit(1);                                                                                      \
        }                                                                                                 \
    } while (0)

/* What must hold. */
#define CHECK(condition)                                                                                  \
    do {                                                                                                  \
        if (!(condition)) {                                                                               \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                       \
            exit(1);                                                                                      \
        }                                                                                                 \
    } while (0)

/* The file that the program's argument names. */
static inline const char *path_of(int argc, char **argv)
{
    CHECK(argc == 2);
    return argv[1];
}

#endif
