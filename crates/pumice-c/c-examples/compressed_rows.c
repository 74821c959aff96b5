/* Matrices as compressed rows (CSR), as libraries of linear algebra have them. */
#include "example.h"

int main(int argc, char **argv)
{
    pumice_file    *file;
    pumice_dataset *matrix;
    const uint64_t  shape[] = {4, 5};
    pumice_options  options = {0};
    options.sparse = true;

    DO(pumice_open(path_of(argc, argv), PUMICE_CREATE, &file));
    DO(pumice_dataset_create(file, "matrix", PUMICE_F64, 2, shape, &options, &matrix));

    /* Rows 0 and 1, then rows 2 and 3. */
    const uint64_t pointers[] = {0, 2, 2}, indices[] = {0, 4};
    const double   values[] = {1, 2};
    DO(pumice_write_csr(matrix, 0, 2, pointers, indices, PUMICE_F64, values));
    const uint64_t next_pointers[] = {0, 1, 3}, next_indices[] = {2, 1, 3};
    const int32_t  next_values[] = {3, 4, 5};
    DO(pumice_write_csr(matrix, 2, 2, next_pointers, next_indices, PUMICE_I32, next_values));

    pumice_csr *csr;
    DO(pumice_read_csr(matrix, NULL, PUMICE_F64, &csr));
    const uint64_t *rows = pumice_csr_pointers(csr), *columns = pumice_csr_indices(csr);
    const double   *numbers = pumice_csr_values(csr);
    double          product[4] = {0, 0, 0, 0};
    const double    vector[] = {1, 10, 100, 1000, 10000};
    CHECK(pumice_csr_rows(csr) == 4 && pumice_csr_count(csr) == 5);
    for (size_t row = 0; row < pumice_csr_rows(csr); row++)
        for (uint64_t at = rows[row]; at < rows[row + 1]; at++)
            product[row] += numbers[at] * vector[columns[at]];
    CHECK(product[0] == 20001 && product[1] == 0 && product[2] == 300 && product[3] == 5040);
    pumice_csr_free(csr);

    /* Rows and columns of a window count from its corner. */
    const uint64_t start[] = {2, 1}, count[] = {2, 2};
    pumice_window  window = {2, start, count, NULL};
    DO(pumice_read_csr(matrix, &window, PUMICE_I64, &csr));
    CHECK(pumice_csr_rows(csr) == 2 && pumice_csr_count(csr) == 2);
    CHECK(pumice_csr_indices(csr)[0] == 1 && pumice_csr_indices(csr)[1] == 0);
    CHECK(((const int64_t *)pumice_csr_values(csr))[1] == 4);
    pumice_csr_free(csr);

    pumice_dataset_close(matrix);
    DO(pumice_close(file));
    return 0;
}
