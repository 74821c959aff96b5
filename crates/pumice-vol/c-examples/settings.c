/* The connector and its settings by a call, the shared cache's statistics, hints and loading ahead. */
#include "check.h"

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    CHECK(pumice_vol_set_fapl(fapl, "cache=8M;threads=2;durability=process") >= 0);
    hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    CHECK(file >= 0 && pumice_vol_calls() > 0);

    const hsize_t shape[] = {1000, 100}, chunk[] = {10, 100};
    hid_t         space = H5Screate_simple(2, shape, NULL);
    hid_t         dcpl = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_chunk(dcpl, 2, chunk) >= 0);
    /* 64 KiB that other datasets do not take from it. */
    hid_t dapl = H5Pcreate(H5P_DATASET_ACCESS);
    CHECK(H5Pset_chunk_cache(dapl, 521, 64 << 10, 0.5) >= 0);
    hid_t dset = H5Dcreate2(file, "x", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, dapl);
    static int values[1000][100], back[1000][100];
    for (int row = 0; row < 1000; row++)
        for (int column = 0; column < 100; column++)
            values[row][column] = row * column;
    CHECK(dset >= 0 && pumice_vol_set_hint(dset, PUMICE_VOL_SEQUENTIAL) >= 0);
    CHECK(H5Dwrite(dset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    CHECK(pumice_vol_prefetch(dset, H5S_ALL) > 0);
    CHECK(H5Dread(dset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0);
    CHECK(back[999][99] == 999 * 99);

    pumice_vol_cache_stats_t of_dataset, of_cache;
    CHECK(pumice_vol_cache_stats(dset, &of_dataset) >= 0 && pumice_vol_cache_stats(file, &of_cache) >= 0);
    CHECK(of_cache.limit == 8 << 20 && of_dataset.hits + of_dataset.misses >= 100);
    CHECK(pumice_vol_set_cache(file, 1 << 20) >= 0 && pumice_vol_cache_stats(file, &of_cache) >= 0);
    CHECK(of_cache.limit == 1 << 20 && of_cache.resident <= 1 << 20);
    printf("hits %llu, misses %llu\n", (unsigned long long)of_dataset.hits, (unsigned long long)of_dataset.misses);

    /* What is wrong is told, on HDF5's error stack. */
    herr_t failed;
    H5E_BEGIN_TRY { failed = pumice_vol_set_fapl(fapl, "cache=much"); } H5E_END_TRY
    CHECK(failed < 0);
    CHECK(H5Dclose(dset) >= 0 && H5Pclose(dapl) >= 0 && H5Pclose(dcpl) >= 0 && H5Sclose(space) >= 0);
    CHECK(H5Fclose(file) >= 0 && H5Pclose(fapl) >= 0);
    return 0;
}
