/* Filters of each section: shuffle and deflate for the values, deflate alone for the locations. */
#include "check.h"

int main(int argc, char **argv)
{
    const hsize_t  dims[2] = {100, 80}, chunk[2] = {10, 20};
    const unsigned level = 9, size = sizeof(int32_t);
    hid_t          file = create_file(argc, argv);
    hid_t          dcpl = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_struct_chunk(dcpl, 2, chunk, H5D_SPARSE_CHUNK) >= 0);
    CHECK(H5Pset_filter2(dcpl, H5Z_FLAG_SPARSE_SELECTION, H5Z_FILTER_DEFLATE, H5Z_FLAG_OPTIONAL, sizeof level,
                         &level) >= 0);
    CHECK(H5Pset_filter2(dcpl, H5Z_FLAG_SPARSE_FIXED_DATA, H5Z_FILTER_SHUFFLE, H5Z_FLAG_OPTIONAL, sizeof size,
                         &size) >= 0);
    CHECK(H5Pset_filter2(dcpl, H5Z_FLAG_SPARSE_FIXED_DATA, H5Z_FILTER_DEFLATE, H5Z_FLAG_OPTIONAL, sizeof level,
                         &level) >= 0);

    hid_t space = H5Screate_simple(2, dims, NULL);
    hid_t dset = H5Dcreate2(file, "matrix", H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    CHECK(dset >= 0);

    /* A selection of the file is written; nothing else becomes defined. */
    const hsize_t start[2] = {5, 15}, count[2] = {20, 10};
    int32_t       values[200];
    for (int i = 0; i < 200; i++)
        values[i] = i + 1;
    hid_t memory = H5Screate_simple(2, count, NULL);
    CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0);
    CHECK(H5Dwrite(dset, H5T_NATIVE_INT32, memory, space, H5P_DEFAULT, values) >= 0);

    /* The dataset tells what it was made with. */
    hid_t    made = H5Dget_create_plist(dset);
    unsigned flag, given = 0;
    hsize_t  sides[2];
    uint64_t flags;
    size_t   bytes = sizeof given;
    CHECK(H5Pget_struct_chunk(made, 2, sides, &flag) == 2 && flag == H5D_SPARSE_CHUNK && sides[1] == 20);
    CHECK(H5Pget_nfilter2(made, H5Z_FLAG_SPARSE_SELECTION) == 1);
    CHECK(H5Pget_nfilters2(made, H5Z_FLAG_SPARSE_FIXED_DATA) == 2);
    CHECK(H5Pget_filter3(made, H5Z_FLAG_SPARSE_SELECTION, 0, &flags, &bytes, &given, 0, NULL, NULL) ==
          H5Z_FILTER_DEFLATE);
    CHECK(given == level && bytes == sizeof given && flags == H5Z_FLAG_OPTIONAL);
    CHECK(H5Pget_filter_by_id3(made, 1, H5Z_FILTER_SHUFFLE, NULL, NULL, NULL, 0, NULL, NULL) ==
          H5Z_FILTER_SHUFFLE);
    CHECK(H5Premove_filter2(made, 1, H5Z_FILTER_SHUFFLE) >= 0);
    CHECK(H5Pget_nfilter2(made, 1) == 1);
    const unsigned faster = 1;
    CHECK(H5Pmodify_filter2(made, 1, H5Z_FILTER_DEFLATE, 0, sizeof faster, &faster) >= 0);

    H5Pclose(made);
    H5Sclose(memory);
    H5Sclose(space);
    H5Pclose(dcpl);
    CHECK(H5Dclose(dset) >= 0 && H5Fclose(file) >= 0);
    puts("filters of sections: as they were asked for");
    return 0;
}
