/* Groups: what is in a file. */
#include "example.h"
#include <string.h>

static void list(pumice_file *file, const char *path, int depth)
{
    pumice_names *names;
    DO(pumice_members(file, path, &names));
    for (size_t at = 0; at < pumice_names_count(names); at++) {
        const char *name = pumice_names_at(names, at);
        char        whole[256];
        printf("%*s%s\n", 2 * depth, "", name);
        snprintf(whole, sizeof whole, "%s/%s", path, name);
        if (pumice_names_kind(names, at) == PUMICE_KIND_GROUP)
            list(file, whole, depth + 1);
    }
    pumice_names_free(names);
}

int main(int argc, char **argv)
{
    pumice_file    *file;
    pumice_dataset *dataset;
    const uint64_t  shape[] = {3};
    DO(pumice_open(path_of(argc, argv), PUMICE_CREATE, &file));
    DO(pumice_group_create(file, "run1/raw"));
    DO(pumice_dataset_create(file, "run1/times", PUMICE_F64, 1, shape, NULL, &dataset));
    pumice_dataset_close(dataset);
    list(file, "/", 0);

    pumice_names *names;
    DO(pumice_members(file, "run1", &names));
    CHECK(pumice_names_count(names) == 2 && strcmp(pumice_names_at(names, 0), "raw") == 0);
    CHECK(pumice_names_kind(names, 0) == PUMICE_KIND_GROUP);
    CHECK(pumice_names_kind(names, 1) == PUMICE_KIND_DATASET);
    CHECK(pumice_names_at(names, 2) == NULL && pumice_names_kind(names, 2) == PUMICE_KIND_OTHER);
    pumice_names_free(names);
    DO(pumice_close(file));
    return 0;
}
