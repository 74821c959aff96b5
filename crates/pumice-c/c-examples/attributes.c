/* Attributes: numbers and texts of files, groups and datasets. */
#include "example.h"
#include <string.h>

int main(int argc, char **argv)
{
    pumice_file *file;
    DO(pumice_open(path_of(argc, argv), PUMICE_CREATE, &file));
    DO(pumice_group_create(file, "run1"));

    const double   scale = 0.25;
    const int32_t  ranges[] = {1, 2, 3, 4, 5, 6};
    const uint64_t shape[] = {2, 3};
    DO(pumice_attribute_set(file, "/", "scale", PUMICE_F64, 0, NULL, &scale));
    DO(pumice_attribute_set(file, "run1", "ranges", PUMICE_I32, 2, shape, ranges));
    DO(pumice_attribute_set_text(file, "run1", "operator", "nobody in particular"));

    double read;
    DO(pumice_attribute_get(file, "/", "scale", PUMICE_F64, 1, &read));
    CHECK(read == 0.25);
    pumice_type type;
    size_t      count;
    DO(pumice_attribute_info(file, "run1", "ranges", &type, &count));
    CHECK(type == PUMICE_I32 && count == 6);
    int64_t wider[6];
    DO(pumice_attribute_get(file, "run1", "ranges", PUMICE_I64, count, wider));
    CHECK(wider[0] == 1 && wider[5] == 6);

    /* A text's length is that of the whole, as snprintf gives it. */
    char   text[7];
    size_t length;
    DO(pumice_attribute_get_text(file, "run1", "operator", sizeof text, text, &length));
    CHECK(strcmp(text, "nobody") == 0 && length == 20);

    pumice_names *names;
    DO(pumice_attributes(file, "run1", &names));
    CHECK(pumice_names_count(names) == 2 && pumice_names_kind(names, 0) == PUMICE_KIND_ATTRIBUTE);
    pumice_names_free(names);
    DO(pumice_attribute_set(file, "run1", "old", PUMICE_F64, 0, NULL, &scale));
    DO(pumice_attribute_remove(file, "run1", "old"));
    CHECK(pumice_attribute_get(file, "run1", "old", PUMICE_F64, 1, &read) == PUMICE_NOT_FOUND);

    DO(pumice_close(file));
    return 0;
}
