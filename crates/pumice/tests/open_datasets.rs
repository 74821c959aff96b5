//! The memory of an open dataset.

use pumice::{Context, Dataset, File};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

const DATASETS: usize = 2000;
/// An open dataset costs no more than this, its chunks aside.
const LIMIT: isize = 4096;

static HELD: AtomicIsize = AtomicIsize::new(0);

/// Counts the bytes that are allocated.
struct Counting;

// SAFETY: hands every call on to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn an_open_dataset_costs_at_most_four_kilobytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.h5");
    let file = File::create(&path).unwrap();
    for number in 0..DATASETS {
        let builder = file.new_dataset::<f64>().shape([1000, 64]).max_shape([None, Some(64)]);
        let dataset = builder.chunk([100, 64]).shuffle().deflate(1).create(&name(number)).unwrap();
        dataset.write((0..1, ..), &[1.5f64; 64]).unwrap();
    }
    file.close().unwrap();

    let context = Context::builder().cache_bytes(0).threads(1).build().unwrap();
    let file = File::options().context(&context).open(&path).unwrap();
    // What the file needs once, whoever is open.
    drop(file.dataset(&name(0)).unwrap());
    let before = HELD.load(Ordering::Relaxed);
    let open: Vec<Dataset> =
        (0..DATASETS).map(|number| file.dataset(&name(number)).unwrap()).collect();
    let opened = (HELD.load(Ordering::Relaxed) - before) / DATASETS as isize;
    for dataset in &open {
        assert_eq!(dataset.read::<f64>((0..2, 0..1)).unwrap(), [1.5, 0.0]);
    }
    let read = (HELD.load(Ordering::Relaxed) - before) / DATASETS as isize;
    println!("{opened} bytes once open, {read} once read");
    assert!(opened <= LIMIT, "{opened} bytes for an open dataset");
    assert!(read <= LIMIT, "{read} bytes for an open dataset that was read");
}

fn name(number: usize) -> String {
    format!("d{number:04}")
}
