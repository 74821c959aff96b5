//! Requests of one contiguous dataset at the same time: those that have no cell in common do not wait for each
//! other, others do so in their order, and nothing between cells is lost. A store that holds a thread back makes the
//! moments come.

use crate::beside::{LONG, beside_as};
use pumice::{Context, Dataset, File, MemoryStore, Selection};
use pumice_store::{ReadOp, Store, WriteOp};
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// Bytes in memory. Calls of a thread of the name "held" wait until they are let go, and writes of one of the name
/// "held writing".
#[derive(Default)]
struct Gated {
    inner: MemoryStore,
    /// The number of calls that have come, and whether they may go on.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Gated {
    fn pass(&self, writes: bool) {
        match thread::current().name() {
            Some("held") => {}
            Some("held writing") if writes => {}
            _ => return,
        }
        let mut state = self.state.lock().unwrap();
        state.0 += 1;
        self.changed.notify_all();
        let _open = self.changed.wait_while(state, |state| !state.1).unwrap();
    }

    fn wait_for_visitor(&self) {
        let state = self.state.lock().unwrap();
        let (state, _) =
            self.changed.wait_timeout_while(state, LONG, |state| state.0 == 0).unwrap();
        assert!(state.0 > 0, "it has come to the store");
    }

    fn open(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }

    fn close(&self) {
        *self.state.lock().unwrap() = (0, false);
    }
}

/// Lets all go when the test ends, however it does.
struct Opened<'g>(&'g Gated);

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}

impl Store for Gated {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.pass(false);
        self.inner.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.pass(true);
        self.inner.write_at(offset, bytes)
    }

    fn read_vectored(&self, ops: &mut [ReadOp<'_>]) -> io::Result<()> {
        self.pass(false);
        self.inner.read_vectored(ops)
    }

    fn write_vectored(&self, ops: &[WriteOp<'_>]) -> io::Result<()> {
        self.pass(true);
        self.inner.write_vectored(ops)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
}

/// A file in a store that can hold threads back. Requests run on the threads that make them.
fn gated() -> (Arc<Gated>, File) {
    let store = Arc::new(Gated::default());
    let context = Context::builder().threads(1).build().unwrap();
    let file = File::options().context(&context).create_in(store.clone()).unwrap();
    (store, file)
}

fn block(start: [u64; 2], count: [u64; 2]) -> Selection {
    Selection::block(&start, &count).unwrap()
}

fn put(dataset: &Dataset, cells: &Selection, value: i32) {
    let count = cells.count(&dataset.shape()) as usize;
    dataset.write(cells.clone(), &vec![value; count]).unwrap();
}

/// A request that is held back in the store, one that has no cell in common with it, and one that has.
fn check(
    dataset: &Dataset,
    store: &Gated,
    one: &Selection,
    apart: &Selection,
    meeting: &Selection,
) {
    for held_writes in [true, false] {
        put(dataset, &Selection::all(), 0);
        thread::scope(|scope| {
            store.close();
            let _opened = Opened(store);
            let held = beside_as(scope, "held", || match held_writes {
                true => put(dataset, one, 1),
                false => assert!(dataset.read::<i32>(one.clone()).unwrap().iter().all(|&v| v == 0)),
            });
            store.wait_for_visitor();
            let other = beside_as(scope, "other", || {
                put(dataset, apart, 2);
                dataset.read::<i32>(apart.clone()).unwrap()
            });
            let found = other.soon("it has no cell in common");
            assert!(found.iter().all(|&value| value == 2));
            let later = beside_as(scope, "later", || put(dataset, meeting, 3));
            assert!(later.is_held_back(), "it has a cell in common");
            assert!(held.has_not_ended());
            store.open();
            held.recv().unwrap();
            later.recv().unwrap();
        });
        let found = dataset.read::<i32>(meeting.clone()).unwrap();
        assert!(found.iter().all(|&value| value == 3), "the later one counts");
        let found = dataset.read::<i32>(apart.clone()).unwrap();
        assert!(found.iter().all(|&value| value != 0));
    }
}

#[test]
fn rows_do_not_wait_for_other_rows() {
    let (store, file) = gated();
    let dataset = file.new_dataset::<i32>().shape([100, 50]).create("d").unwrap();
    put(&dataset, &Selection::all(), 0);
    let rows = |first, count| block([first, 0], [count, 50]);
    check(&dataset, &store, &rows(10, 20), &rows(30, 5), &rows(29, 1));
    check(&dataset, &store, &rows(10, 1), &rows(0, 10), &block([10, 49], [2, 1]));
}

#[test]
fn columns_do_not_wait_for_other_columns_however_many_rows_there_are() {
    let (store, file) = gated();
    for rows in [20, 5000] {
        let new = file.new_dataset::<i32>().shape([rows, 4096]);
        let dataset = new.create(&format!("d{rows}")).unwrap();
        put(&dataset, &Selection::all(), 0);
        let columns = |first, count| block([0, first], [rows, count]);
        check(&dataset, &store, &columns(0, 1200), &columns(2600, 1200), &columns(1199, 2));
    }
}

#[test]
fn points_and_strides_do_not_wait_for_what_lies_between_them() {
    let (store, file) = gated();
    let dataset = file.new_dataset::<i32>().shape([64, 64]).create("d").unwrap();
    put(&dataset, &Selection::all(), 0);
    let points = Selection::points(2, vec![40, 3, 0, 0, 63, 63]).unwrap();
    let between = block([1, 0], [39, 64]);
    check(&dataset, &store, &points, &between, &block([63, 60], [1, 4]));
    let strides = Selection::hyperslab(&[0, 0], &[32, 1], &[2, 1], &[1, 64]).unwrap();
    check(&dataset, &store, &strides, &block([1, 0], [31, 64]), &block([31, 0], [2, 64]));
}

#[test]
fn resetting_waits_for_none_but_its_own_cells() {
    let (store, file) = gated();
    let dataset = file.new_dataset::<i32>().shape([90]).fill_value(7).create("d").unwrap();
    dataset.write(.., &[1; 90]).unwrap();
    thread::scope(|scope| {
        let _opened = Opened(&store);
        let held = beside_as(scope, "held", || dataset.reset(0..30).unwrap());
        store.wait_for_visitor();
        let other = beside_as(scope, "other", || dataset.reset(30..60).unwrap());
        other.soon("it has no cell in common");
        store.open();
        held.recv().unwrap();
    });
    let found = dataset.read::<i32>(..).unwrap();
    assert_eq!(found, [[7; 30], [7; 30], [1; 30]].concat());
}

#[test]
fn external_files_are_written_at_the_same_time() {
    // The file's own store does not hold back what is outside: it is only seen that all is there.
    let folder = tempfile::tempdir().unwrap();
    let file = File::create(folder.path().join("a.h5")).unwrap();
    let path = folder.path().join("raw.bin");
    let new = file.new_dataset::<i32>().shape([4000]).external(path.to_str().unwrap(), 0, None);
    let dataset = new.create("d").unwrap();
    thread::scope(|scope| {
        for part in 0..8u64 {
            let dataset = &dataset;
            scope.spawn(move || {
                let values = vec![part as i32 + 1; 500];
                dataset.write(500 * part..500 * part + 500, &values).unwrap();
            });
        }
    });
    let found = dataset.read::<i32>(..).unwrap();
    assert!(found.iter().enumerate().all(|(at, &value)| value == at as i32 / 500 + 1));
}

#[test]
fn what_lies_between_cells_of_a_write_keeps_what_others_write_there() {
    let (store, file) = gated();
    let dataset = file.new_dataset::<i32>().shape([30, 64]).create("d").unwrap();
    put(&dataset, &Selection::all(), 0);
    let columns =
        |first: u64| Selection::hyperslab(&[0, first], &[1, 4], &[30, 16], &[1, 1]).unwrap();
    thread::scope(|scope| {
        let _opened = Opened(&store);
        // Small cells at small distances: it has read what lies between them, and will write it back.
        let held = beside_as(scope, "held writing", || put(&dataset, &columns(0), 1));
        store.wait_for_visitor();
        let reads = beside_as(scope, "reads", || dataset.read::<i32>(columns(1)).unwrap());
        assert_eq!(reads.soon("reads need not wait"), [0; 480]);
        // In the same way, and straight.
        let narrow = beside_as(scope, "narrow", || put(&dataset, &columns(1), 2));
        let wide = beside_as(scope, "wide", || put(&dataset, &block([7, 2], [1, 1]), 3));
        assert!(narrow.is_held_back() && wide.is_held_back());
        store.open();
        held.recv().unwrap();
        narrow.recv().unwrap();
        wide.recv().unwrap();
    });
    let found = dataset.read::<i32>(..).unwrap();
    let wanted = |at: usize| match (at / 64, at % 4) {
        (_, 0) => 1,
        (_, 1) => 2,
        (7, 2) if at % 64 == 2 => 3,
        _ => 0,
    };
    assert!(found.iter().enumerate().all(|(at, &value)| value == wanted(at)));
}
