/* Structured chunks as they are stored: copied from one dataset to another without being decoded. */
#include "check.h"

static int count_chunk(const hsize_t *offset, H5D_struct_chunk_info_t *info, haddr_t *addr, hsize_t *size,
                       void *data)
{
    (void)offset;
    CHECK(info->type == H5D_SPARSE_CHUNK && info->num_sections == 2);
    CHECK(*addr != HADDR_UNDEF && *size >= info->section_size[0] + info->section_size[1]);
    ++*(int *)data;
    return 0;
}

int main(int argc, char **argv)
{
    const hsize_t dims[2] = {20, 20}, chunk[2] = {10, 10}, start[2] = {12, 3}, count[2] = {2, 4};
    const int     values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    hid_t         file = create_file(argc, argv);
    hid_t         dcpl = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_struct_chunk(dcpl, 2, chunk, H5D_SPARSE_CHUNK) >= 0);
    CHECK(H5Pset_deflate(dcpl, 6) >= 0);
    hid_t space = H5Screate_simple(2, dims, NULL), memory = H5Screate_simple(2, count, NULL);
    hid_t from = H5Dcreate2(file, "from", H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    hid_t to = H5Dcreate2(file, "to", H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    CHECK(from >= 0 && to >= 0);
    CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0);
    CHECK(H5Dwrite(from, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values) >= 0);
    CHECK(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);

    int seen = 0;
    CHECK(H5Dstruct_chunk_iter(from, H5P_DEFAULT, count_chunk, &seen) == 0 && seen == 1);
    hsize_t                 offset[2], size;
    haddr_t                 addr;
    H5D_struct_chunk_info_t info;
    CHECK(H5Dget_struct_chunk_info(from, H5S_ALL, 0, offset, &info, &addr, &size) >= 0);
    CHECK(offset[0] == 10 && offset[1] == 0 && size > 0);
    void *sections[2] = {malloc(info.section_size[0]), malloc(info.section_size[1])};
    CHECK(H5Dread_struct_chunk(from, H5P_DEFAULT, offset, &info, sections) >= 0);
    CHECK(H5Dwrite_struct_chunk(to, H5P_DEFAULT, &info, offset, sections) >= 0);

    int copied[8] = {0};
    CHECK(H5Dread(to, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, copied) >= 0);
    for (int i = 0; i < 8; i++)
        CHECK(copied[i] == values[i]);
    const hsize_t absent[2] = {0, 10};
    CHECK(H5Dget_struct_chunk_info_by_coord(to, absent, &info, &addr, &size) >= 0);
    CHECK(size == 0 && addr == HADDR_UNDEF);

    free(sections[0]);
    free(sections[1]);
    H5Sclose(memory);
    H5Sclose(space);
    H5Pclose(dcpl);
    CHECK(H5Dclose(from) >= 0 && H5Dclose(to) >= 0 && H5Fclose(file) >= 0);
    puts("direct chunks: copied as they are");
    return 0;
}
