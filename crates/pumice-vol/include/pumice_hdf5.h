/* The functions of the HDF5 sparse storage RFC, for programs that use libhdf5 with the Pumice connector.
 *
 * Include it after or instead of hdf5.h, link with libhdf5 and libpumice_vol, and let files be opened by the
 * connector (HDF5_PLUGIN_PATH, HDF5_VOL_CONNECTOR=pumice). docs/vol.md tells more.
 */
#ifndef PUMICE_HDF5_H
#define PUMICE_HDF5_H

#include <hdf5.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of structured chunks: sparse data of any type, and dense data of variable length. */
#define H5D_SPARSE_CHUNK 0x0001u
#define H5D_VL_CHUNK 0x0002u

/* Sections of a sparse chunk. */
#define H5Z_FLAG_SPARSE_SELECTION 0u
#define H5Z_FLAG_SPARSE_FIXED_DATA 1u
#define H5Z_FLAG_SPARSE_VL_DATA 2u

/* The most sections that a chunk has. */
#define H5D_STRUCT_CHUNK_MAX_SECTIONS 3

/* What is known of a structured chunk. Lists have an element for every section. */
typedef struct H5D_struct_chunk_info_t {
    int      type;                                             /* H5D_SPARSE_CHUNK or H5D_VL_CHUNK */
    uint8_t  num_sections;                                     /* how many sections there are */
    uint16_t filter_mask[H5D_STRUCT_CHUNK_MAX_SECTIONS];       /* a bit for each filter that was skipped */
    size_t   section_size[H5D_STRUCT_CHUNK_MAX_SECTIONS];      /* bytes that are stored */
    size_t   section_orig_size[H5D_STRUCT_CHUNK_MAX_SECTIONS]; /* bytes before filters */
} H5D_struct_chunk_info_t;

/* Called for every chunk: zero goes on, anything else ends the iteration and is its result. */
typedef int (*H5D_struct_chunk_iter_op_t)(const hsize_t *offset, H5D_struct_chunk_info_t *chunk_info,
                                          haddr_t *addr, hsize_t *chunk_size, void *op_data);

/* Structured chunks in dataset creation property lists. */
herr_t H5Pset_struct_chunk(hid_t plist_id, int ndims, const hsize_t dim[], unsigned flag);
int    H5Pget_struct_chunk(hid_t plist_id, int max_ndims, hsize_t dim[], unsigned *flag);
herr_t H5Pset_sparse_chunk(hid_t plist_id, int ndims, const hsize_t dim[]);

/* Filters of one section. The buffer has the filter's numbers, of 32 bits each. */
herr_t       H5Pset_filter2(hid_t plist_id, uint64_t section_number, H5Z_filter_t filter, uint64_t flags,
                            size_t buf_size, const void *buf);
int          H5Pget_nfilter2(hid_t plist_id, uint64_t section_number);
int          H5Pget_nfilters2(hid_t plist_id, uint64_t section_number);
H5Z_filter_t H5Pget_filter3(hid_t plist_id, uint64_t section_number, unsigned idx, uint64_t *flags,
                            size_t *buf_size, void *buf, size_t namelen, char name[],
                            unsigned *filter_config);
H5Z_filter_t H5Pget_filter_by_id3(hid_t plist_id, uint64_t section_number, H5Z_filter_t filter,
                                  uint64_t *flags, size_t *buf_size, void *buf, size_t namelen, char name[],
                                  unsigned *filter_config);
herr_t       H5Premove_filter2(hid_t plist_id, uint64_t section_number, H5Z_filter_t filter);
herr_t       H5Pmodify_filter2(hid_t plist_id, uint64_t section_number, H5Z_filter_t filter, uint64_t flags,
                               size_t buf_size, const void *buf);

/* A new dataspace in which the defined ones of the selected elements are selected. */
hid_t H5Dget_defined(hid_t dset_id, hid_t file_space_id, hid_t dxpl_id);
/* Makes the selected elements undefined: they read as the fill value. */
herr_t H5Derase(hid_t dset_id, hid_t file_space_id, hid_t dxpl_id);

/* Structured chunks as they are stored. */
herr_t H5Dwrite_struct_chunk(hid_t dset_id, hid_t dxpl_id, H5D_struct_chunk_info_t *chunk_info,
                             const hsize_t *offset, void *buf[]);
herr_t H5Dread_struct_chunk(hid_t dset_id, hid_t dxpl_id, const hsize_t *offset,
                            H5D_struct_chunk_info_t *chunk_info, void *buf[]);
herr_t H5Dget_struct_chunk_info(hid_t dset_id, hid_t fspace_id, hsize_t chunk_idx, hsize_t *offset,
                                H5D_struct_chunk_info_t *chunk_info, haddr_t *addr, hsize_t *chunk_size);
herr_t H5Dget_struct_chunk_info_by_coord(hid_t dset_id, const hsize_t *offset,
                                         H5D_struct_chunk_info_t *chunk_info, haddr_t *addr,
                                         hsize_t *chunk_size);
herr_t H5Dstruct_chunk_iter(hid_t dset_id, hid_t dxpl_id, H5D_struct_chunk_iter_op_t cb, void *op_data);

/* ---- Functions of Pumice's own ---- */

/* How often libhdf5 has called the connector in this process. */
uint64_t pumice_vol_calls(void);

/* Lets files that are opened with a file access list go through the connector: HDF5_VOL_CONNECTOR and
 * HDF5_PLUGIN_PATH are not needed then. Settings may be NULL, or are like "cache=256M;threads=2;durability=power".
 * Files whose settings have the same cache and threads share a cache, all others the one of the process. */
herr_t pumice_vol_set_fapl(hid_t fapl_id, const char *settings);

/* What a cache has done and has; bytes where nothing else is said. */
typedef struct pumice_vol_cache_stats_t {
    uint64_t hits;            /* requests of chunks that were in memory */
    uint64_t misses;          /* and of others */
    uint64_t evictions;       /* chunks that made room */
    uint64_t write_backs;     /* changed chunks that were stored */
    uint64_t bytes_read;      /* from files */
    uint64_t bytes_written;   /* to files */
    uint64_t prefetched;      /* chunks that were loaded ahead */
    uint64_t prefetch_useful; /* of them, those that were wanted then */
    uint64_t resident;        /* in memory now */
    uint64_t dirty;           /* of it, changed and not stored yet */
    uint64_t peak;            /* the most that was ever in memory */
    uint64_t limit;           /* that the cache keeps between requests */
} pumice_vol_cache_stats_t;

/* How a dataset is going to be used. */
typedef enum pumice_vol_hint_t {
    PUMICE_VOL_NORMAL = 0,     /* nothing is known */
    PUMICE_VOL_SEQUENTIAL = 1, /* from the first chunk to the last */
    PUMICE_VOL_RANDOM = 2,     /* in no order */
    PUMICE_VOL_ONCE = 3        /* each chunk once */
} pumice_vol_hint_t;

/* Limits the bytes that a cache keeps: that of an open file or object, or with H5I_INVALID_HID that of the process. */
herr_t pumice_vol_set_cache(hid_t id, uint64_t bytes);
/* Statistics of a dataset, or of the whole cache that belongs to another identifier, as above. */
herr_t pumice_vol_cache_stats(hid_t id, pumice_vol_cache_stats_t *stats);
/* Tells how a dataset is going to be used. Holds until the dataset is closed everywhere. */
herr_t pumice_vol_set_hint(hid_t dset_id, pumice_vol_hint_t hint);
/* Begins to load selected chunks on an idle thread: positive if it has begun, 0 for data without chunks. */
htri_t pumice_vol_prefetch(hid_t dset_id, hid_t file_space_id);

#ifdef __cplusplus
}
#endif

#endif
