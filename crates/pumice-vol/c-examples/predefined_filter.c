/* A predefined filter function is for all sections of a sparse chunk. */
#include "check.h"

int main(int argc, char **argv)
{
    const hsize_t dims[2] = {64, 64}, chunk[2] = {16, 16};
    hid_t         file = create_file(argc, argv);
    hid_t         dcpl = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_struct_chunk(dcpl, 2, chunk, H5D_SPARSE_CHUNK) >= 0);
    CHECK(H5Pset_deflate(dcpl, 9) >= 0);
    CHECK(H5Pget_nfilter2(dcpl, H5Z_FLAG_SPARSE_SELECTION) == 1);
    CHECK(H5Pget_nfilter2(dcpl, H5Z_FLAG_SPARSE_FIXED_DATA) == 1);
    /* A checksum is for values of fixed size alone: locations have one anyway. */
    CHECK(H5Pset_fletcher32(dcpl) >= 0);
    CHECK(H5Pget_nfilter2(dcpl, H5Z_FLAG_SPARSE_SELECTION) == 1);
    CHECK(H5Pget_nfilter2(dcpl, H5Z_FLAG_SPARSE_FIXED_DATA) == 2);

    hid_t space = H5Screate_simple(2, dims, NULL);
    hid_t dset = H5Dcreate2(file, "matrix", H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    CHECK(dset >= 0);
    int *values = calloc(64 * 64, sizeof *values);
    CHECK(values != NULL);
    values[70] = 7;
    /* Written whole, all elements are defined, zeros too. */
    CHECK(H5Dwrite(dset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    hid_t defined = H5Dget_defined(dset, H5S_ALL, H5P_DEFAULT);
    CHECK(H5Sget_select_npoints(defined) == 64 * 64);

    free(values);
    H5Sclose(defined);
    H5Sclose(space);
    H5Pclose(dcpl);
    CHECK(H5Dclose(dset) >= 0 && H5Fclose(file) >= 0);
    puts("predefined filter: for every section");
    return 0;
}
