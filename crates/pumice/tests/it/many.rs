//! Several datasets in one call, what is announced, and what a write loads.

use pumice::{AllocationTime, Context, File, MemoryStore, ReadMany, Result, Selection, WriteMany};
use std::sync::Arc;

fn context() -> Result<Context> {
    Context::builder().cache_bytes(1 << 20).threads(1).build()
}

#[test]
fn datasets_of_all_layouts_are_read_and_written_together() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let context = context()?;
    let file = File::options().context(&context).create(folder.path().join("a.h5"))?;
    let new = || file.new_dataset::<i32>().shape([100]);
    let contiguous = new().create("contiguous")?;
    let compact = new().compact().create("compact")?;
    let chunked = new().chunk([7]).deflate(1).create("chunked")?;
    let sparse = new().sparse().chunk([16]).create("sparse")?;
    let all = Selection::block(&[0], &[100])?;
    let lent = new().virtual_part(all.clone(), ".", "chunked", all).create("virtual")?;

    let values: Vec<i32> = (0..100).map(|n| n * n).collect();
    let mut writes = WriteMany::new();
    writes.add(&contiguous, .., &values)?.add(&compact, .., &values)?;
    writes.add(&chunked, .., &values)?.add(&sparse, 10..20, &values[..10])?;
    writes.run()?;

    let mut read = vec![vec![0i32; 100]; 5];
    let mut reads = ReadMany::new();
    for (dataset, buffer) in
        [&contiguous, &compact, &chunked, &sparse, &lent].into_iter().zip(&mut read)
    {
        reads.add(dataset, .., buffer)?;
    }
    reads.run()?;
    let mut some = vec![0; 100];
    some[10..20].copy_from_slice(&values[..10]);
    assert_eq!(read, [values.clone(), values.clone(), values.clone(), some, values]);
    Ok(())
}

#[test]
fn chunks_overwritten_whole_are_not_loaded_though_the_extent_cuts_them() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let context = context()?;
    let file = File::options().context(&context).create(&path)?;
    let new = file.new_dataset::<u16>().shape([15, 9]).max_shape([Some(100), None]);
    let dataset = new.chunk([10, 10]).fill_value(77u16).deflate(1).create("a")?;
    dataset.write(.., &[1u16; 135])?;
    drop(dataset);
    file.close()?;

    let file = File::options().context(&context).edit(&path)?;
    let dataset = file.dataset("a")?;
    let before = context.stats().loads;
    dataset.write(.., &[2u16; 135])?;
    assert_eq!(context.stats().loads, before);
    file.flush()?;
    dataset.resize([20, 20])?;
    let read = dataset.read::<u16>(..)?;
    for (cell, value) in read.iter().enumerate() {
        let inside = cell / 20 < 15 && cell % 20 < 9;
        assert_eq!(*value, if inside { 2 } else { 77 }, "cell {cell}");
    }
    Ok(())
}

#[test]
fn what_is_prefetched_or_announced_is_found_in_memory() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let context = context()?;
    let file = File::options().context(&context).create(&path)?;
    let values: Vec<u32> = (0..1000).collect();
    let dataset = file.new_dataset::<u32>().shape([1000]).chunk([10]).deflate(1).create("a")?;
    dataset.write(.., &values)?;
    drop(dataset);
    file.close()?;

    let file = File::options().context(&context).open(&path)?;
    let dataset = file.dataset("a")?;
    assert!(dataset.prefetch(200..300)?);
    let before = context.stats();
    assert_eq!(dataset.read::<u32>(200..300)?, values[200..300]);
    let after = context.stats();
    assert_eq!((after.misses - before.misses, after.prefetch_useful), (0, 10));
    dataset.will_read([500..520, 40..60])?;
    assert_eq!(dataset.read::<u32>(500..520)?, values[500..520]);
    assert_eq!(dataset.read::<u32>(40..60)?, values[40..60]);
    Ok(())
}

#[test]
fn writes_of_interleaved_cells_of_one_dataset_in_one_call_all_count() -> Result<()> {
    let context = Context::builder().threads(4).build()?;
    let file = File::options().context(&context).create_in(Arc::new(MemoryStore::default()))?;
    let dataset = file.new_dataset::<u32>().shape([40_000]).create("a")?;
    for round in 1..20u32 {
        let values: Vec<Vec<u32>> = (0..4).map(|n| vec![round * 10 + n; 10_000]).collect();
        let mut writes = WriteMany::new();
        for (start, values) in (0..4).zip(&values) {
            writes.add(&dataset, Selection::hyperslab(&[start], &[4], &[10_000], &[1])?, values)?;
        }
        writes.run()?;
        let read = dataset.read::<u32>(..)?;
        assert!((0..40_000).all(|n| read[n] == round * 10 + n as u32 % 4), "round {round}");
    }
    Ok(())
}

#[test]
fn large_reads_are_shared_by_threads_whatever_is_in_memory() -> Result<()> {
    let context = Context::builder().threads(3).cache_bytes(1 << 20).build()?;
    let file = File::options().context(&context).create_in(Arc::new(MemoryStore::default()))?;
    let values: Vec<u32> = (0..3_000_000).collect();
    let flat = file.new_dataset::<u32>().shape([3000, 1000]).create("flat")?;
    let new = file.new_dataset::<u32>().shape([3000, 1000]);
    let chunked = new.chunk([64, 512]).create("chunked")?;
    flat.write(.., &values)?;
    chunked.write(.., &values)?;
    context.evict()?;
    // Some chunks are in memory, changed or not.
    chunked.read::<u32>((100..110, 3..5))?;
    chunked.write((2000, 7), &[9])?;
    let mut wanted = values.clone();
    wanted[2_000_007] = 9;
    assert!(flat.read::<u32>(..)? == values);
    assert!(chunked.read::<u32>(..)? == wanted);
    assert!(chunked.read::<u64>(..)?.iter().zip(&wanted).all(|(a, b)| *a == u64::from(*b)));
    let mut both = [vec![0u32; 3_000_000], vec![0u32; 3_000_000]];
    let [one, two] = &mut both;
    let mut reads = ReadMany::new();
    reads.add(&flat, .., one)?.add(&chunked, .., two)?;
    reads.run()?;
    assert!(both[0] == values && both[1] == wanted);
    Ok(())
}

#[test]
fn what_was_cut_off_is_not_read_ahead() -> Result<()> {
    for threads in [1, 3] {
        let context = Context::builder().threads(threads).build()?;
        let file = File::options().context(&context).create_in(Arc::new(MemoryStore::default()))?;
        let new = file.new_dataset::<u32>().shape([100]).max_shape([Some(100)]).chunk([10]);
        let new = new.fill_value(7u32).allocation_time(AllocationTime::Early);
        let dataset = new.create("a")?;
        dataset.write(.., &(1000..1100).collect::<Vec<u32>>())?;
        context.evict()?;
        dataset.will_read([0..10, 90..100])?;
        dataset.resize([50])?;
        dataset.read::<u32>(0..10)?;
        // Whoever reads ahead has the time to.
        std::thread::sleep(std::time::Duration::from_millis(20));
        dataset.resize([100])?;
        assert_eq!(dataset.read::<u32>(90..100)?, [7; 10]);
        assert_eq!(dataset.read::<u32>(40..60)?[9..11], [1049, 7]);
    }
    Ok(())
}
