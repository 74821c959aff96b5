/* Errors: a status says which fault, a message says where and what to do. */
#include "example.h"
#include <string.h>

int main(int argc, char **argv)
{
    const char     *path = path_of(argc, argv);
    pumice_file    *file = NULL;
    pumice_dataset *dataset = NULL;
    const uint64_t  shape[] = {3};
    const double    values[] = {1, 2, 3, 4};

    CHECK(strcmp(pumice_error_message(), "") == 0);
    CHECK(pumice_open("/nowhere/at/all.h5", PUMICE_READ, &file) == PUMICE_NOT_FOUND && file == NULL);
    CHECK(strstr(pumice_error_message(), "/nowhere/at/all.h5") != NULL);
    CHECK(pumice_open(__FILE__, PUMICE_READ, &file) == PUMICE_DAMAGED);

    DO(pumice_open(path, PUMICE_CREATE, &file));
    CHECK(pumice_dataset_open(file, "x", &dataset) == PUMICE_NOT_FOUND);
    DO(pumice_dataset_create(file, "x", PUMICE_F64, 1, shape, NULL, &dataset));
    CHECK(pumice_write(dataset, NULL, PUMICE_F64, 4, values) == PUMICE_COUNT_MISMATCH);
    const uint64_t start[] = {2}, count[] = {2};
    pumice_window  window = {1, start, count, NULL};
    CHECK(pumice_write(dataset, &window, PUMICE_F64, 2, values) == PUMICE_OUT_OF_BOUNDS);
    CHECK(pumice_read(dataset, NULL, (pumice_type)77, 3, NULL) == PUMICE_INVALID);
    CHECK(pumice_read(dataset, NULL, PUMICE_F64, 3, NULL) == PUMICE_INVALID);
    CHECK(pumice_erase(dataset, &window) == PUMICE_OUT_OF_BOUNDS || pumice_erase(dataset, NULL) != PUMICE_OK);
    CHECK(pumice_group_create(file, "x") == PUMICE_EXISTS);
    CHECK(pumice_members(file, "x", NULL) == PUMICE_WRONG_KIND);
    CHECK(pumice_open(path, PUMICE_READ, NULL) == PUMICE_INVALID);

    /* The file's handle has gone: its dataset stays usable, and keeps the file open. */
    DO(pumice_write(dataset, NULL, PUMICE_F64, 3, values));
    DO(pumice_close(file));
    double back[3];
    DO(pumice_read(dataset, NULL, PUMICE_F64, 3, back));
    CHECK(back[2] == 3);
    pumice_dataset_close(dataset);

    DO(pumice_open(path, PUMICE_READ, &file));
    CHECK(pumice_remove(file, "x") == PUMICE_READ_ONLY);
    DO(pumice_close(file));

    /* NULL is no handle, and may be given back. */
    CHECK(pumice_flush(NULL) == PUMICE_INVALID);
    DO(pumice_close(NULL));
    pumice_dataset_close(NULL);
    pumice_cells_free(NULL);
    pumice_csr_free(NULL);
    pumice_names_free(NULL);
    printf("%s\n", pumice_status_name(PUMICE_NOT_FOUND));
    return 0;
}
