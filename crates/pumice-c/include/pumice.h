/* Pumice for C: HDF5 files with sparse storage, without libhdf5.
 *
 *   - Every function returns a status: PUMICE_OK, or the kind of the fault. pumice_error_message() says more.
 *     Results go to the places that the last arguments lead to, and are left alone if the function fails.
 *   - Texts are UTF-8 and end with a null byte. Paths of objects are as in "run1/hits"; "/" is the root group.
 *   - Files, datasets and results are opaque. Each is given back once, by the function named at its type, and may be
 *     used by several threads at a time. NULL may always be given back.
 *   - Arrays are in row-major order. "rank" is the number of dimensions, of a file's array and of every list of
 *     coordinates.
 *
 * docs/c.md tells how to install and use it; each verb has a program in crates/pumice-c/c-examples.
 */
#ifndef PUMICE_H
#define PUMICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a function says of its work. The numbers stay; there may be more. */
typedef enum pumice_status {
    PUMICE_OK = 0,              /* done */
    PUMICE_IO = 1,              /* the operating system refused */
    PUMICE_NO_SPACE = 2,        /* no room on the disk */
    PUMICE_NO_MEMORY = 3,       /* not enough memory */
    PUMICE_LOCKED = 4,          /* another program has the file open, or writes it */
    PUMICE_CHANGED = 5,         /* another program changed the file while it was open */
    PUMICE_DAMAGED = 6,         /* bytes in the file are invalid */
    PUMICE_TOO_NEW = 7,         /* the file has something of a version that is not known */
    PUMICE_NOT_FOUND = 8,       /* a name leads nowhere */
    PUMICE_EXISTS = 9,          /* a name is taken */
    PUMICE_READ_ONLY = 10,      /* the file is open for reading only */
    PUMICE_WRONG_KIND = 11,     /* a group where a dataset was asked for, or the like */
    PUMICE_OUT_OF_BOUNDS = 12,  /* beyond the shape */
    PUMICE_RANK_MISMATCH = 13,  /* another number of dimensions */
    PUMICE_COUNT_MISMATCH = 14, /* more or fewer values than cells */
    PUMICE_TYPE_MISMATCH = 15,  /* no conversion leads from one type to the other */
    PUMICE_WRONG_VALUE = 16,    /* a value that its type cannot have */
    PUMICE_FILTER_MISSING = 17, /* a filter that is not there */
    PUMICE_FILTER = 18,         /* a filter failed */
    PUMICE_NOT_STORED = 19,     /* some changes are not stored */
    PUMICE_INVALID = 20,        /* the arguments contradict themselves or their object */
    PUMICE_UNSUPPORTED = 21,    /* not written yet */
    PUMICE_INTERNAL = 22        /* a defect of Pumice */
} pumice_status;

/* The types of numbers in memory. Files may have others, which are converted. */
typedef enum pumice_type {
    PUMICE_OTHER = 0, /* only as an answer: no number */
    PUMICE_I8 = 1,
    PUMICE_I16 = 2,
    PUMICE_I32 = 3,
    PUMICE_I64 = 4,
    PUMICE_U8 = 5,
    PUMICE_U16 = 6,
    PUMICE_U32 = 7,
    PUMICE_U64 = 8,
    PUMICE_F32 = 9,
    PUMICE_F64 = 10
} pumice_type;

/* How a file is opened. */
typedef enum pumice_mode {
    PUMICE_READ = 0,          /* for reading */
    PUMICE_EDIT = 1,          /* for reading and writing */
    PUMICE_CREATE = 2,        /* a new file, in the place of one that is there */
    PUMICE_CREATE_NEW = 3,    /* a new file, where none is */
    PUMICE_EDIT_OR_CREATE = 4 /* the file that is there, or a new one */
} pumice_mode;

/* What a name belongs to. */
typedef enum pumice_kind {
    PUMICE_KIND_OTHER = 0,    /* something else, or something that cannot be read */
    PUMICE_KIND_GROUP = 1,    /* a group */
    PUMICE_KIND_DATASET = 2,  /* a dataset */
    PUMICE_KIND_DATATYPE = 3, /* a committed datatype */
    PUMICE_KIND_LINK = 4,     /* a soft or external link; it is not followed */
    PUMICE_KIND_ATTRIBUTE = 5 /* an attribute */
} pumice_kind;

/* An open file. Given back by pumice_close. */
typedef struct pumice_file pumice_file;
/* An open dataset. Given back by pumice_dataset_close. */
typedef struct pumice_dataset pumice_dataset;
/* A list of names. Given back by pumice_names_free. */
typedef struct pumice_names pumice_names;
/* Cells and their values. Given back by pumice_cells_free. */
typedef struct pumice_cells pumice_cells;
/* Rows of a matrix, compressed (CSR). Given back by pumice_csr_free. */
typedef struct pumice_csr pumice_csr;

/* A window: along each dimension, count cells from start on, stride apart. Where a window can be given, NULL is the
 * whole dataset. */
typedef struct pumice_window {
    size_t          rank;   /* the number of dimensions */
    const uint64_t *start;  /* rank numbers: the first cell */
    const uint64_t *count;  /* rank numbers: how many cells */
    const uint64_t *stride; /* rank numbers: from one cell to the next; NULL: 1 */
} pumice_window;

/* No limit, in max_shape of pumice_options. */
#define PUMICE_UNLIMITED UINT64_MAX

/* How a new dataset is stored. All zero is a dense dataset without chunks and filters. */
typedef struct pumice_options {
    bool            sparse;    /* only defined cells take space */
    bool            shuffle;   /* shuffle the bytes of values */
    bool            checksum;  /* Fletcher-32 */
    uint32_t        deflate;   /* deflate's level, 1 to 9; 0: not at all. Sparse datasets are compressed unless plain */
    bool            plain;     /* no filters, where there are some otherwise */
    const uint64_t *chunk;     /* rank numbers; NULL: chosen */
    const uint64_t *max_shape; /* rank numbers, PUMICE_UNLIMITED for no limit; NULL: the shape stays */
    const void     *fill;      /* the fill value, of the dataset's type; NULL: 0 */
} pumice_options;

/* ---- Errors ---- */

/* What the last failed call in this thread said; empty if none failed. Stays until the thread's next failure. */
const char *pumice_error_message(void);
/* The name of a status, such as "not found". */
const char *pumice_status_name(pumice_status status);
/* The version of the library, such as "0.1.0". */
const char *pumice_version(void);

/* ---- Files ---- */

/* Opens or creates a file. */
pumice_status pumice_open(const char *path, pumice_mode mode, pumice_file **file);
/* Writes all changes to the file: all of them or, after an error, none. */
pumice_status pumice_flush(pumice_file *file);
/* Writes all changes and gives the file back. The handle is gone after an error, too: call pumice_flush before, if
 * the program can do something about it. Datasets that are still open stay usable, and keep the file open until the last
 * of them is given back. */
pumice_status pumice_close(pumice_file *file);
/* Limits the memory of the chunk cache that all files share. */
pumice_status pumice_set_cache_bytes(uint64_t bytes);

/* ---- Groups and names ---- */

/* Makes a group, and those on the way to it. */
pumice_status pumice_group_create(pumice_file *file, const char *path);
/* Whether a path leads to an object. */
pumice_status pumice_exists(pumice_file *file, const char *path, bool *exists);
/* Takes away a name. The object goes with its last name. */
pumice_status pumice_remove(pumice_file *file, const char *path);
/* The members of a group, in order of their names. */
pumice_status pumice_members(pumice_file *file, const char *path, pumice_names **names);
/* How many names there are. */
size_t pumice_names_count(const pumice_names *names);
/* A name, which stays until the list is given back; NULL behind the last. */
const char *pumice_names_at(const pumice_names *names, size_t index);
/* What a name belongs to. */
pumice_kind pumice_names_kind(const pumice_names *names, size_t index);
/* Gives a list of names back. */
void pumice_names_free(pumice_names *names);

/* ---- Datasets ---- */

/* Makes a dataset. Its shape has rank numbers; a rank of 0 is a single value. Options may be NULL. */
pumice_status pumice_dataset_create(pumice_file *file, const char *path, pumice_type type, size_t rank,
                                    const uint64_t *shape, const pumice_options *options,
                                    pumice_dataset **dataset);
/* Opens a dataset. */
pumice_status pumice_dataset_open(pumice_file *file, const char *path, pumice_dataset **dataset);
/* Gives a dataset back. What was written to it stays with the file. */
void pumice_dataset_close(pumice_dataset *dataset);
/* The number of dimensions. */
size_t pumice_dataset_rank(const pumice_dataset *dataset);
/* The shape; rank must be the dataset's. */
pumice_status pumice_dataset_shape(const pumice_dataset *dataset, size_t rank, uint64_t *shape);
/* The type to read it with; PUMICE_OTHER if it has no numbers. */
pumice_type pumice_dataset_type(const pumice_dataset *dataset);
/* Whether it is sparse. */
bool pumice_dataset_is_sparse(const pumice_dataset *dataset);
/* Changes the shape, within the limits that it was made with. */
pumice_status pumice_dataset_resize(pumice_dataset *dataset, size_t rank, const uint64_t *shape);
/* Reads a window into count values of a type. Undefined cells read as the fill value. */
pumice_status pumice_read(pumice_dataset *dataset, const pumice_window *window, pumice_type type, size_t count,
                          void *values);
/* Writes count values of a type to a window. */
pumice_status pumice_write(pumice_dataset *dataset, const pumice_window *window, pumice_type type, size_t count,
                           const void *values);

/* ---- Sparse cells ---- */

/* Writes count cells: count times rank coordinates, one cell after another, and a value for each. They are defined
 * then. */
pumice_status pumice_write_cells(pumice_dataset *dataset, size_t count, const uint64_t *coordinates,
                                 pumice_type type, const void *values);
/* Defined cells of a window, and their values. In a dense dataset all cells are defined. */
pumice_status pumice_read_defined(pumice_dataset *dataset, const pumice_window *window, pumice_type type,
                                  pumice_cells **cells);
/* Defined cells of a window, without values. */
pumice_status pumice_defined(pumice_dataset *dataset, const pumice_window *window, pumice_cells **cells);
/* How many cells of a window are defined. */
pumice_status pumice_count_defined(pumice_dataset *dataset, const pumice_window *window, uint64_t *count);
/* Makes the cells of a window undefined: they read as the fill value and take no space. */
pumice_status pumice_erase(pumice_dataset *dataset, const pumice_window *window);
/* Makes count cells undefined. */
pumice_status pumice_erase_cells(pumice_dataset *dataset, size_t count, const uint64_t *coordinates);

/* How many cells there are. */
size_t pumice_cells_count(const pumice_cells *cells);
/* Their coordinates, count times rank numbers, which stay until the cells are given back. */
const uint64_t *pumice_cells_coordinates(const pumice_cells *cells);
/* Their values, of the type that was asked for; NULL if none were. */
const void *pumice_cells_values(const pumice_cells *cells);
/* Gives cells back. */
void pumice_cells_free(pumice_cells *cells);

/* ---- Compressed rows ---- */

/* Writes rows of a matrix, from first_row on: the cells of row r are those from pointers[r] to pointers[r + 1], their
 * columns are in indices. There are row_count + 1 pointers, the first 0, and as many indices and values as the last
 * one says. */
pumice_status pumice_write_csr(pumice_dataset *dataset, uint64_t first_row, size_t row_count,
                               const uint64_t *pointers, const uint64_t *indices, pumice_type type,
                               const void *values);
/* Defined cells of a window of a matrix as compressed rows. Rows and columns count from the window's corner. */
pumice_status pumice_read_csr(pumice_dataset *dataset, const pumice_window *window, pumice_type type,
                              pumice_csr **csr);
/* The number of rows. */
size_t pumice_csr_rows(const pumice_csr *csr);
/* The number of cells. */
size_t pumice_csr_count(const pumice_csr *csr);
/* Where each row begins, and the end of the last: one more than there are rows. */
const uint64_t *pumice_csr_pointers(const pumice_csr *csr);
/* The column of each cell. */
const uint64_t *pumice_csr_indices(const pumice_csr *csr);
/* The value of each cell, of the type that was asked for. */
const void *pumice_csr_values(const pumice_csr *csr);
/* Gives compressed rows back. */
void pumice_csr_free(pumice_csr *csr);

/* ---- Attributes ---- */

/* Makes an attribute of an object, in the place of one of that name. A rank of 0 is a single number, and shape may be
 * NULL then. */
pumice_status pumice_attribute_set(pumice_file *file, const char *path, const char *name, pumice_type type,
                                   size_t rank, const uint64_t *shape, const void *values);
/* Reads an attribute into count numbers of a type. */
pumice_status pumice_attribute_get(pumice_file *file, const char *path, const char *name, pumice_type type,
                                   size_t count, void *values);
/* How many values an attribute has, and the type to read it with: PUMICE_OTHER if it has no numbers. Both places may
 * be NULL. */
pumice_status pumice_attribute_info(pumice_file *file, const char *path, const char *name, pumice_type *type,
                                    size_t *count);
/* Makes an attribute that is a text. */
pumice_status pumice_attribute_set_text(pumice_file *file, const char *path, const char *name, const char *text);
/* Reads a text into size bytes, a null byte at the end: what has no room is cut off. The length is that of the whole
 * text, without the null byte. Text may be NULL if size is 0, length may be NULL. */
pumice_status pumice_attribute_get_text(pumice_file *file, const char *path, const char *name, size_t size,
                                        char *text, size_t *length);
/* Takes an attribute away. */
pumice_status pumice_attribute_remove(pumice_file *file, const char *path, const char *name);
/* The names of an object's attributes. */
pumice_status pumice_attributes(pumice_file *file, const char *path, pumice_names **names);

#ifdef __cplusplus
}
#endif

#endif
