//! Several datasets in one call, what is announced, and what a write loads.

use pumice::{Context, File, ReadMany, Result, Selection, WriteMany};

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
