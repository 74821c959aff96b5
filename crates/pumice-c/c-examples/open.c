/* Files: create, flush, close, open, edit. */
#include "example.h"

int main(int argc, char **argv)
{
    const char     *path = path_of(argc, argv);
    pumice_file    *file;
    pumice_dataset *dataset;
    const int32_t   answer = 42;

    DO(pumice_open(path, PUMICE_CREATE, &file));
    DO(pumice_dataset_create(file, "answer", PUMICE_I32, 0, NULL, NULL, &dataset));
    DO(pumice_write(dataset, NULL, PUMICE_I32, 1, &answer));
    DO(pumice_flush(file)); /* from here on the answer is safe */
    pumice_dataset_close(dataset);
    DO(pumice_close(file));

    /* Where a file is, none is created anew; it can be edited, or opened for reading. */
    CHECK(pumice_open(path, PUMICE_CREATE_NEW, &file) == PUMICE_EXISTS);
    DO(pumice_open(path, PUMICE_EDIT_OR_CREATE, &file));
    DO(pumice_group_create(file, "run1/calibration"));
    DO(pumice_close(file));
    DO(pumice_open(path, PUMICE_EDIT, &file));
    DO(pumice_remove(file, "run1/calibration"));
    DO(pumice_close(file));

    bool there;
    DO(pumice_set_cache_bytes(64u << 20));
    DO(pumice_open(path, PUMICE_READ, &file));
    DO(pumice_exists(file, "run1", &there));
    CHECK(there);
    DO(pumice_exists(file, "run1/calibration", &there));
    CHECK(!there);
    double as_double;
    DO(pumice_dataset_open(file, "answer", &dataset));
    DO(pumice_read(dataset, NULL, PUMICE_F64, 1, &as_double)); /* in any type of numbers */
    CHECK(as_double == 42.0);
    pumice_dataset_close(dataset);
    DO(pumice_close(file));
    printf("pumice %s\n", pumice_version());
    return 0;
}
