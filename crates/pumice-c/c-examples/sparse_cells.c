/* Sparse cells: only those that are written take space. */
#include "example.h"

int main(int argc, char **argv)
{
    pumice_file    *file;
    pumice_dataset *hits;
    const uint64_t  shape[] = {100000, 100000};
    pumice_options  options = {0};
    options.sparse = true;

    DO(pumice_open(path_of(argc, argv), PUMICE_CREATE, &file));
    DO(pumice_dataset_create(file, "run1/hits", PUMICE_F32, 2, shape, &options, &hits));
    CHECK(pumice_dataset_is_sparse(hits));

    const uint64_t coordinates[] = {7, 9, 70000, 8, 7, 10};
    const float    values[] = {1.5f, 2.5f, 3.5f};
    DO(pumice_write_cells(hits, 3, coordinates, PUMICE_F32, values));

    /* A dense window has the fill value where nothing is defined. */
    const uint64_t start[] = {7, 8}, count[] = {2, 4};
    pumice_window  window = {2, start, count, NULL};
    float          dense[8];
    DO(pumice_read(hits, &window, PUMICE_F32, 8, dense));
    CHECK(dense[0] == 0.0f && dense[1] == 1.5f && dense[2] == 3.5f && dense[7] == 0.0f);

    /* Coordinates and values of what is defined. */
    pumice_cells *cells;
    DO(pumice_read_defined(hits, &window, PUMICE_F64, &cells));
    const uint64_t *points = pumice_cells_coordinates(cells);
    const double   *numbers = pumice_cells_values(cells);
    CHECK(pumice_cells_count(cells) == 2);
    for (size_t at = 0; at < pumice_cells_count(cells); at++)
        printf("(%llu, %llu) = %g\n", (unsigned long long)points[2 * at],
               (unsigned long long)points[2 * at + 1], numbers[at]);
    CHECK(points[0] == 7 && points[1] == 9 && points[3] == 10 && numbers[1] == 3.5);
    pumice_cells_free(cells);

    /* Coordinates alone, and their number alone. */
    DO(pumice_defined(hits, NULL, &cells));
    CHECK(pumice_cells_count(cells) == 3 && pumice_cells_values(cells) == NULL);
    CHECK(pumice_cells_coordinates(cells)[4] == 70000);
    pumice_cells_free(cells);

    /* Undefined again, which is not the same as zero. */
    uint64_t left;
    DO(pumice_erase(hits, &window));
    DO(pumice_count_defined(hits, NULL, &left));
    CHECK(left == 1);
    const uint64_t one[] = {70000, 8};
    DO(pumice_erase_cells(hits, 1, one));
    DO(pumice_count_defined(hits, NULL, &left));
    CHECK(left == 0);
    DO(pumice_write_cells(hits, 3, coordinates, PUMICE_F32, values));

    pumice_dataset_close(hits);
    DO(pumice_close(file));
    return 0;
}
