/* What the examples have in common: the end of a program that something has failed in. */
#ifndef CHECK_H
#define CHECK_H

#include <pumice_hdf5.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);      \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

/* The file that the program's argument names. */
static inline hid_t create_file(int argc, char **argv)
{
    CHECK(argc == 2);
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    CHECK(H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0);
    hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    CHECK(file >= 0 && pumice_vol_calls() > 0);
    CHECK(H5Pclose(fapl) >= 0);
    return file;
}

#endif
