//! Third-party filters: a tiny one that is compiled here, found through `HDF5_PLUGIN_PATH`.
#![cfg(feature = "plugins")]

use pumice_filter::{FilterError, FilterSpec, Pipeline, find};
use std::path::Path;
use std::process::Command;

/// A filter that adds its parameter to every byte and a byte at the end. It replaces the buffer, and
/// fails where a byte of the input is 255.
const SOURCE: &str = r#"
#include <stdlib.h>
typedef struct {
    int version, id;
    unsigned encoder, decoder;
    const char *name;
    void *can_apply, *set_local;
    size_t (*filter)(unsigned, size_t, const unsigned *, size_t, size_t *, void **);
} class2;
static size_t run(unsigned flags, size_t count, const unsigned *values, size_t bytes, size_t *size, void **buffer) {
    unsigned char *from = *buffer, *to = malloc(bytes + 1), add = count ? values[0] : 0;
    size_t length = flags & 0x100 ? bytes - 1 : bytes + 1;
    for (size_t i = 0; i < bytes; i++) {
        if (!(flags & 0x100) && from[i] == 255) { free(to); return 0; }
        to[i] = flags & 0x100 ? from[i] - add : from[i] + add;
    }
    to[bytes] = 7;
    free(*buffer);
    *buffer = to;
    *size = bytes + 1;
    return length;
}
static const class2 info = {1, 311, 1, 1, "adds", 0, 0, run};
int H5PLget_plugin_type(void) { return 0; }
const void *H5PLget_plugin_info(void) { return &info; }
"#;

/// Compiles a library; nothing if there is no C compiler.
fn compile(folder: &Path, name: &str, source: &str) -> Option<()> {
    let code = folder.join(format!("{name}.c"));
    std::fs::write(&code, source).unwrap();
    let library = folder.join(format!("lib{name}.so"));
    let done = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(library).arg(code).status();
    done.ok().filter(std::process::ExitStatus::success).map(drop)
}

/// One test, because the folder is found through the environment of the process.
#[test]
fn a_plugin_is_found_by_its_id_and_runs_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    if compile(folder.path(), "adds", SOURCE).is_none() {
        println!("skipped: no C compiler");
        return;
    }
    compile(folder.path(), "other", "int H5PLget_plugin_type(void) { return 1; }").unwrap();
    compile(folder.path(), "nothing", "int unrelated;").unwrap();
    std::fs::write(folder.path().join("libtext.so"), "no library").unwrap();
    // SAFETY: the only test of its process, and nothing reads the environment meanwhile.
    unsafe { std::env::set_var("HDF5_PLUGIN_PATH", folder.path()) };

    assert!(find(312).is_none(), "no such plugin");
    let filter = find(311).expect("the plugin is in the folder");
    assert_eq!((filter.id(), filter.name()), (311, "adds"));

    let adds =
        |optional| FilterSpec { id: 311, optional, name: None, config: None, parameters: vec![3] };
    let pipeline = Pipeline::new(vec![adds(false), FilterSpec::fletcher32()]).unwrap();
    let (stored, mask) = pipeline.encode(vec![1, 2, 253]).unwrap();
    assert_eq!((&stored[..4], mask), (&[4, 5, 0, 7][..], 0));
    assert_eq!(pipeline.decode(stored.clone(), mask, 3).unwrap(), [1, 2, 253]);
    assert!(pipeline.decode(stored, mask, 2).is_err(), "more than the limit");
    assert!(matches!(pipeline.encode(vec![255]), Err(FilterError::Encode { .. })));
    let optional = Pipeline::new(vec![adds(true)]).unwrap();
    assert_eq!(optional.encode(vec![255]).unwrap(), (vec![255], 1));
}
