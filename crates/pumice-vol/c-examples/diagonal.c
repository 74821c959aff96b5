/* A diagonal of a million elements in an array of a million by a million. */
#include "check.h"

#define SIDE 1000000
#define STEP 1000

int main(int argc, char **argv)
{
    const hsize_t dims[2] = {SIDE, SIDE}, chunk[2] = {1000, 1000};
    hid_t         file = create_file(argc, argv);
    hid_t         dcpl = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_sparse_chunk(dcpl, 2, chunk) >= 0);
    hid_t space = H5Screate_simple(2, dims, NULL);
    hid_t dset = H5Dcreate2(file, "diagonal", H5T_IEEE_F64LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    CHECK(dset >= 0);

    const hsize_t count = SIDE / STEP;
    hsize_t      *points = malloc(2 * count * sizeof *points);
    double       *values = malloc(count * sizeof *values);
    CHECK(points != NULL && values != NULL);
    for (hsize_t i = 0; i < count; i++) {
        points[2 * i] = points[2 * i + 1] = i * STEP;
        values[i] = (double)i;
    }
    hid_t memory = H5Screate_simple(1, &count, NULL);
    CHECK(H5Sselect_elements(space, H5S_SELECT_SET, count, points) >= 0);
    CHECK(H5Dwrite(dset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values) >= 0);
    CHECK(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);

    hid_t found = H5Dget_defined(dset, H5S_ALL, H5P_DEFAULT);
    CHECK(H5Sget_select_npoints(found) == (hssize_t)count);
    CHECK(H5Dget_storage_size(dset) < 1000000);

    free(points);
    free(values);
    H5Sclose(found);
    H5Sclose(memory);
    H5Sclose(space);
    H5Pclose(dcpl);
    CHECK(H5Dclose(dset) >= 0 && H5Fclose(file) >= 0);
    puts("diagonal: only what was written takes space");
    return 0;
}
