//! One suite that every store must pass.

use pumice_store::{
    FamilyStore, FileStore, Locking, MemoryStore, PartedStore, ReadOp, Store, WriteOp,
};
use std::io::ErrorKind;
use std::sync::Arc;

fn with_every_store(check: impl Fn(&dyn Store)) {
    check(&MemoryStore::default());
    let folder = tempfile::tempdir().unwrap();
    check(&FileStore::create(folder.path().join("store")).unwrap());
    for size in [100, 1 << 20] {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().to_path_buf();
        let name = move |number: u64| directory.join(format!("{number}"));
        let first = Arc::new(FileStore::create(name(0)).unwrap());
        check(&FamilyStore::open(first, size, Locking::default(), name).unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    let [path, other] = ["meta", "raw"].map(|name| folder.path().join(name));
    let first = Arc::new(FileStore::create(&path).unwrap());
    let others = vec![(1 << 60, other)];
    check(&PartedStore::create(first, &path, others, Locking::default()).unwrap());
}

#[test]
fn what_is_written_is_read_and_gaps_are_zero() {
    with_every_store(|store| {
        store.write_at(5, b"abc").unwrap();
        assert_eq!(store.len().unwrap(), 8);
        let mut buffer = [9; 8];
        store.read_at(0, &mut buffer).unwrap();
        assert_eq!(&buffer, b"\0\0\0\0\0abc");
    });
}

#[test]
fn reading_past_the_end_is_an_error() {
    with_every_store(|store| {
        store.write_at(0, b"abc").unwrap();
        for offset in [1, 3, 1 << 40, u64::MAX - 1] {
            assert!(store.read_at(offset, &mut [0; 3]).is_err(), "{offset}");
        }
        let error = store.read_at(1, &mut [0; 3]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        let (mut one, mut two) = ([0; 2], [0; 2]);
        let mut ops =
            [ReadOp { offset: 0, buffer: &mut one }, ReadOp { offset: 2, buffer: &mut two }];
        assert_eq!(store.read_vectored(&mut ops).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    });
}

#[test]
fn vectored_calls_equal_single_ones_whatever_the_order_and_gaps() {
    // 3,000 neighbours force several system calls; the tail is backwards and has gaps.
    let mut places: Vec<(u64, usize)> = (0..3000).map(|i| (i * 7, 7)).collect();
    places.extend([(40_000, 100), (39_000, 1), (50_000, 0), (30_000, 77)]);
    let data: Vec<u8> = (0..60_000u32).map(|i| (i * 31 % 251) as u8).collect();
    with_every_store(|store| {
        let writes: Vec<WriteOp<'_>> = places
            .iter()
            .map(|&(offset, len)| WriteOp { offset, bytes: &data[offset as usize..][..len] })
            .collect();
        store.write_vectored(&writes).unwrap();
        let mut buffers: Vec<Vec<u8>> = places.iter().map(|&(_, len)| vec![0; len]).collect();
        let mut reads: Vec<ReadOp<'_>> = places
            .iter()
            .zip(&mut buffers)
            .map(|(&(offset, _), buffer)| ReadOp { offset, buffer })
            .collect();
        store.read_vectored(&mut reads).unwrap();
        for (&(offset, len), buffer) in places.iter().zip(&buffers) {
            assert_eq!(buffer, &data[offset as usize..][..len]);
        }
    });
}

#[test]
fn cutting_and_extending_keeps_what_is_left_and_adds_zeros() {
    with_every_store(|store| {
        store.write_at(0, b"abcdef").unwrap();
        store.set_len(3).unwrap();
        store.set_len(5).unwrap();
        let mut buffer = [9; 5];
        store.read_at(0, &mut buffer).unwrap();
        assert_eq!(&buffer, b"abc\0\0");
        store.sync().unwrap();
    });
}

#[test]
fn threads_write_side_by_side() {
    with_every_store(|store| {
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                scope.spawn(move || {
                    for i in 0..50 {
                        store.write_at((i * 4 + thread) * 8, &[thread as u8; 8]).unwrap();
                    }
                });
            }
        });
        let mut all = vec![0; 4 * 50 * 8];
        store.read_at(0, &mut all).unwrap();
        assert!(all.chunks(8).enumerate().all(|(i, block)| block == [(i % 4) as u8; 8]));
    });
}

#[test]
fn a_file_has_many_readers_or_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let open = || FileStore::open_or_create(&path).unwrap();
    let (one, two) = (open(), open());
    one.lock(Locking::Required, false).unwrap();
    two.lock(Locking::Required, false).unwrap();
    let refused = open().lock(Locking::BestEffort, true).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    assert!(refused.to_string().contains("HDF5_USE_FILE_LOCKING"), "{refused}");
    open().lock(Locking::Off, true).unwrap();
    one.unlock();
    drop(two);
    one.lock(Locking::Required, true).unwrap();
    assert!(open().lock(Locking::Required, false).is_err());
}
