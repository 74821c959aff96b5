/* Dense arrays: chunks, filters, windows, another shape. */
#include "example.h"

int main(int argc, char **argv)
{
    pumice_file    *file;
    pumice_dataset *images;
    const uint64_t  shape[] = {4, 6}, chunk[] = {2, 3}, max_shape[] = {PUMICE_UNLIMITED, 6};
    const uint16_t  fill = 7;

    pumice_options options = {0};
    options.chunk = chunk;
    options.max_shape = max_shape;
    options.shuffle = true;
    options.deflate = 4;
    options.checksum = true;
    options.fill = &fill;

    DO(pumice_open(path_of(argc, argv), PUMICE_CREATE, &file));
    DO(pumice_dataset_create(file, "images", PUMICE_U16, 2, shape, &options, &images));

    /* All of it: count says how many values there are, and must be right. */
    uint16_t all[24];
    for (uint16_t at = 0; at < 24; at++)
        all[at] = at;
    DO(pumice_write(images, NULL, PUMICE_U16, 24, all));

    /* Every second row, columns 1 and 2. The types in memory and in the file may differ. */
    const uint64_t start[] = {0, 1}, count[] = {2, 2}, stride[] = {2, 1};
    pumice_window  window = {.rank = 2, .start = start, .count = count, .stride = stride};
    double         some[4];
    DO(pumice_read(images, &window, PUMICE_F64, 4, some));
    CHECK(some[0] == 1 && some[1] == 2 && some[2] == 13 && some[3] == 14);
    const double none[] = {100, 101, 102, 103};
    DO(pumice_write(images, &window, PUMICE_F64, 4, none));

    /* New rows have the fill value. */
    const uint64_t larger[] = {5, 6};
    DO(pumice_dataset_resize(images, 2, larger));
    uint64_t now[2];
    DO(pumice_dataset_shape(images, 2, now));
    CHECK(pumice_dataset_rank(images) == 2 && now[0] == 5 && now[1] == 6);
    uint16_t last[30];
    DO(pumice_read(images, NULL, PUMICE_U16, 30, last));
    CHECK(last[0] == 0 && last[1] == 100 && last[14] == 103 && last[29] == 7);
    CHECK(pumice_dataset_type(images) == PUMICE_U16 && !pumice_dataset_is_sparse(images));

    pumice_dataset_close(images);
    DO(pumice_close(file));
    return 0;
}
