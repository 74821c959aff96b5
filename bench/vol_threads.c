/* Two threads that read one dataset each, in a libhdf5 with the lock for threads: one after the other, then at once.
 *
 *   cc -O2 bench/vol_threads.c -lhdf5 -lpthread -o threads && HDF5_VOL_CONNECTOR="pumice threads=1" ./threads a.h5
 *
 * With threads=1 the connector has no threads of its own: what is won is won by the program's threads. Natively the lock keeps
 * them apart.
 */
#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SIDE 2048
#define CHUNK 256
#define ROUNDS 5

static hid_t file;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void make(const char *name)
{
    const hsize_t shape[] = {SIDE, SIDE}, chunk[] = {CHUNK, CHUNK};
    int          *values = malloc(sizeof(int) * SIDE * SIDE);
    for (size_t at = 0; at < SIDE * SIDE; at++)
        values[at] = (int)(at % SIDE) / 3 + (rand() & 15);
    hid_t space = H5Screate_simple(2, shape, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(dcpl, 2, chunk);
    H5Pset_shuffle(dcpl);
    H5Pset_deflate(dcpl, 4);
    hid_t dset = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    if (dset < 0 || H5Dwrite(dset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        exit(1);
    H5Dclose(dset), H5Pclose(dcpl), H5Sclose(space);
    free(values);
}

static void *read_one(void *name)
{
    int  *values = malloc(sizeof(int) * SIDE * SIDE);
    hid_t dapl = H5Pcreate(H5P_DATASET_ACCESS);
    H5Pset_chunk_cache(dapl, 521, 0, 0.75); /* each read decodes */
    hid_t dset = H5Dopen2(file, name, dapl);
    memset(values, 1, sizeof(int) * SIDE * SIDE);
    if (dset < 0 || H5Dread(dset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        exit(1);
    H5Dclose(dset), H5Pclose(dapl);
    free(values);
    return NULL;
}

int main(int argc, char **argv)
{
    bool      safe = false;
    char     *names[] = {"a", "b"};
    double    alone = 1e9, both = 1e9;
    pthread_t threads[2];
    if (argc != 2 || H5is_library_threadsafe(&safe) < 0 || !safe)
        return fprintf(stderr, "needs a file's name, and a libhdf5 that is built for threads\n"), 1;
    file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    make("a"), make("b");
    H5Fclose(file);
    file = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        read_one(names[0]), read_one(names[1]);
        if (now() - start < alone)
            alone = now() - start;
        start = now();
        for (int at = 0; at < 2; at++)
            pthread_create(&threads[at], NULL, read_one, names[at]);
        for (int at = 0; at < 2; at++)
            pthread_join(threads[at], NULL);
        if (now() - start < both)
            both = now() - start;
    }
    H5Fclose(file);
    printf("one after the other %.0f ms, two threads %.0f ms: %.2f times as fast\n", alone * 1e3, both * 1e3,
           alone / both);
    return 0;
}
