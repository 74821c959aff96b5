/* A matrix of 13 x 10 elements, of which few are defined: write, ask, read, erase. */
#include "check.h"

#define ROWS 13
#define COLUMNS 10

static hssize_t count_defined(hid_t dset, hid_t space)
{
    hid_t    found = H5Dget_defined(dset, space, H5P_DEFAULT);
    hssize_t count = H5Sget_select_npoints(found);
    CHECK(found >= 0 && H5Sclose(found) >= 0);
    return count;
}

int main(int argc, char **argv)
{
    const hsize_t dims[2] = {ROWS, COLUMNS}, chunk[2] = {4, 5};
    const hsize_t points[6][2] = {{0, 3}, {7, 2}, {7, 3}, {8, 2}, {8, 3}, {12, 9}};
    const int     values[6] = {66, 1, 2, 3, 4, 5}, fill = -1;
    hid_t         file = create_file(argc, argv);
    hid_t         dcpl = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_sparse_chunk(dcpl, 2, chunk) >= 0);
    CHECK(H5Pset_fill_value(dcpl, H5T_NATIVE_INT, &fill) >= 0);
    hid_t space = H5Screate_simple(2, dims, NULL);
    hid_t dset = H5Dcreate2(file, "matrix", H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    CHECK(dset >= 0);

    /* Elements one by one, in the order of the list. */
    const hsize_t six = 6;
    hid_t         memory = H5Screate_simple(1, &six, NULL);
    CHECK(H5Sselect_elements(space, H5S_SELECT_SET, 6, &points[0][0]) >= 0);
    CHECK(H5Dwrite(dset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values) >= 0);
    CHECK(count_defined(dset, H5S_ALL) == 6);

    /* What is not defined reads as the fill value. */
    int all[ROWS][COLUMNS];
    CHECK(H5Dread(dset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) >= 0);
    CHECK(all[0][3] == 66 && all[8][3] == 4 && all[12][9] == 5 && all[1][1] == -1);

    /* Defined elements of a window, and their values in one read. */
    const hsize_t start[2] = {7, 0}, count[2] = {2, COLUMNS};
    CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0);
    hid_t found = H5Dget_defined(dset, space, H5P_DEFAULT);
    CHECK(H5Sget_select_npoints(found) == 4);
    const hsize_t four = 4;
    int           some[4];
    hid_t         packed = H5Screate_simple(1, &four, NULL);
    CHECK(H5Dread(dset, H5T_NATIVE_INT, packed, found, H5P_DEFAULT, some) >= 0);
    CHECK(some[0] == 1 && some[1] == 2 && some[2] == 3 && some[3] == 4);

    /* Erased, they are undefined again, which is not the same as zero. */
    CHECK(H5Derase(dset, space, H5P_DEFAULT) >= 0);
    CHECK(count_defined(dset, H5S_ALL) == 2);
    CHECK(H5Dread(dset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) >= 0);
    CHECK(all[7][2] == -1 && all[0][3] == 66);

    H5Sclose(packed);
    H5Sclose(found);
    H5Sclose(memory);
    H5Sclose(space);
    H5Pclose(dcpl);
    CHECK(H5Dclose(dset) >= 0 && H5Fclose(file) >= 0);
    puts("worked matrix: written, asked for, read and erased");
    return 0;
}
