//! A file's list of datasets, in the moments in which it changes: what another thread opens or changes while a
//! dataset is made, or written back in order to be forgotten, and what is not written yet when it is forgotten.
//! A store that calls back before it writes makes these moments come.

use pumice::{File, MemoryStore, Selection};
use pumice_store::Store;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// More than a file remembers of those that nobody holds.
const MANY: usize = 5000;

type Hook = Box<dyn FnMut() + Send>;

/// Bytes in memory; calls back before each write, but not for writes that this leads to.
#[derive(Default)]
struct Hooked {
    inner: MemoryStore,
    hook: Mutex<Option<Hook>>,
}

impl Hooked {
    fn set(&self, hook: Option<Hook>) {
        *self.hook.lock().unwrap() = hook;
    }
}

impl Store for Hooked {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let hook = self.hook.lock().unwrap().take();
        if let Some(mut hook) = hook {
            hook();
            self.hook.lock().unwrap().get_or_insert(hook);
        }
        self.inner.write_at(offset, bytes)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
}

/// Does something on another thread; who has to wait for others goes on alone.
fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(work()));
    told.recv_timeout(Duration::from_secs(2)).ok()
}

/// A compressed dataset with a chunk that is not written yet, which nobody holds.
fn unwritten(file: &File, name: &str) {
    let new = file.new_dataset::<i32>().shape([40]).chunk([10]).deflate(1);
    new.create(name).unwrap().write(0..3, &[1, 2, 3]).unwrap();
}

/// Makes so many datasets that others are forgotten.
fn crowd(file: &File, name: &str) {
    for number in 0..MANY {
        file.new_dataset::<i32>().shape([4]).create(&format!("{name}{number}")).unwrap();
    }
}

#[test]
fn a_dataset_that_is_found_by_another_thread_is_the_one_that_was_made() {
    let store = Arc::new(Hooked::default());
    let file = Arc::new(File::options().create_in(store.clone()).unwrap());
    unwritten(&file, "unwritten");
    let calls = Arc::new(AtomicUsize::new(0));
    let found = Arc::new(Mutex::new(Vec::new()));
    for number in 0..MANY {
        let now = format!("d{number}");
        // Others look for it all the time while it is made.
        let (wanted, others, seen) = (now.clone(), file.clone(), found.clone());
        let count = calls.clone();
        store.set(Some(Box::new(move || {
            let (wanted, others) = (wanted.clone(), others.clone());
            count.fetch_add(1, Ordering::Relaxed);
            seen.lock().unwrap().extend(beside(move || others.dataset(&wanted).ok()).flatten());
        })));
        let made = file.new_dataset::<i32>().shape([4]).chunk([4]).create(&now).unwrap();
        store.set(None);
        made.write(.., &[number as i32; 4]).unwrap();
        for dataset in found.lock().unwrap().drain(..) {
            assert_eq!(dataset.read::<i32>(..).unwrap(), [number as i32; 4], "{now}");
        }
    }
    assert!(calls.load(Ordering::Relaxed) > 0, "something was written back while one was made");
}

#[test]
fn a_dataset_that_is_changed_while_others_are_written_back_with_it_keeps_the_change() {
    let store = Arc::new(Hooked::default());
    let file = Arc::new(File::options().create_in(store.clone()).unwrap());
    // The first has nothing to write, and is done with when the second is written.
    file.new_dataset::<i32>().shape([40]).chunk([10]).deflate(1).create("first").unwrap();
    unwritten(&file, "second");
    let (others, changed) = (file.clone(), Arc::new(AtomicUsize::new(0)));
    let count = changed.clone();
    store.set(Some(Box::new(move || {
        if count.load(Ordering::Relaxed) > 0 {
            return;
        }
        let others = others.clone();
        let done = beside(move || others.dataset("first")?.write(20..22, &[7, 8]));
        count.fetch_add(usize::from(matches!(done, Some(Ok(())))), Ordering::Relaxed);
    })));
    crowd(&file, "d");
    store.set(None);
    assert_eq!(changed.load(Ordering::Relaxed), 1, "it was changed before it could be forgotten");
    let check = |file: &File| {
        let found = file.dataset("first").unwrap().read::<i32>(..).unwrap();
        assert_eq!(found[19..23], [0, 7, 8, 0]);
        let found = file.dataset("second").unwrap().read::<i32>(..).unwrap();
        assert_eq!(found[..4], [1, 2, 3, 0]);
    };
    check(&file);
    file.flush().unwrap();
    check(&File::options().open_in(store).unwrap());
}

#[test]
fn sources_of_a_virtual_dataset_that_nobody_holds_are_in_its_files_commit() {
    let folder = tempfile::tempdir().unwrap();
    let [source, path, copy] =
        ["source.h5", "whole.h5", "copy.h5"].map(|name| folder.path().join(name));
    // Somebody has it open all the time, so that it is not closed.
    let lent = File::create(&source).unwrap();
    let new = lent.new_dataset::<i32>().shape([8]).max_shape([None]).chunk([4]).deflate(1);
    new.create("a").unwrap();
    lent.flush().unwrap();
    let file = File::create(&path).unwrap();
    let all = || Selection::block(&[0], &[8]).unwrap();
    let view = file.new_dataset::<i32>().shape([8]);
    let view = view.virtual_part(all(), "source.h5", "a", all()).create("view").unwrap();
    view.write(.., &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    drop(view);
    crowd(&file, "d");
    file.flush().unwrap();
    std::fs::copy(&source, &copy).unwrap();
    let found = File::open(&copy).unwrap().dataset("a").unwrap().read::<i32>(..).unwrap();
    assert_eq!(found, [1, 2, 3, 4, 5, 6, 7, 8], "as another program finds it");
    drop(lent);
}

#[test]
fn strings_that_wait_for_a_commit_outlast_those_who_wrote_them() {
    let store = Arc::new(MemoryStore::default());
    let file = File::options().create_in(store.clone()).unwrap();
    let words = file.new_strings().shape([3]).create("words").unwrap();
    words.write_strings(.., &["one", "two", "three"]).unwrap();
    file.flush().unwrap();
    words.write_strings(1..3, &["a second", "a third"]).unwrap();
    drop(words);
    crowd(&file, "d");
    let wanted = ["one", "a second", "a third"];
    assert_eq!(file.dataset("words").unwrap().read_strings(..).unwrap(), wanted);
    file.flush().unwrap();
    let again = File::options().open_in(store).unwrap();
    assert_eq!(again.dataset("words").unwrap().read_strings(..).unwrap(), wanted);
}
