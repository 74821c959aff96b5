//! Several datasets in one call: of every layout and datatype, in every way of transfer; and loading ahead on every
//! layout.

use pumice::{
    CacheOptions, Context, Dataset, Datatype, File, Heaped, MemoryStore, ReadMany, Result,
    Selection, Sequences, Strings, Transfer, Value, WriteMany,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const WORDS: u64 = 12;

fn all(count: u64) -> Selection {
    Selection::block(&[0], &[count]).unwrap()
}

/// Strings in every layout that has them: contiguous, in the global heap of chunks, in structured chunks, sparse,
/// of a fixed length, and lent by two of these.
fn texts(file: &File) -> Result<Vec<Dataset>> {
    let new = || file.new_strings().shape([WORDS]);
    let mut made = vec![
        new().create("contiguous")?,
        new().chunk([5]).create("chunked")?,
        new().chunk([5]).deflate(1).create("filtered")?,
        new().chunk([5]).variable_length().create("structured")?,
        new().chunk([5]).sparse().create("sparse")?,
        file.new_dataset_of(Datatype::fixed_string(20)).shape([WORDS]).create("fixed")?,
    ];
    for (name, source) in [("lent", "chunked"), ("lent structured", "structured")] {
        let parts = new().virtual_part(all(WORDS), ".", source, all(WORDS));
        made.push(parts.create(name)?);
    }
    Ok(made)
}

fn words(round: u64) -> Vec<String> {
    (0..WORDS).map(|n| "stone".repeat((n % 3) as usize) + &(round * 100 + n).to_string()).collect()
}

#[test]
fn strings_of_every_layout_are_written_and_read_together() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let file = File::create(&path)?;
    let made = texts(&file)?;
    let (own, lent) = made.split_at(6);
    for round in 0..4 {
        let packed: Strings = words(round).iter().collect();
        let mut writes = WriteMany::new();
        for (number, dataset) in own.iter().enumerate() {
            match number % 2 {
                0 => writes.add_strings(dataset, .., &words(round))?,
                _ => writes.add_packed_strings(dataset, .., &packed)?,
            };
        }
        writes.run()?;
        let mut found = vec![Strings::default(); made.len()];
        let mut reads = ReadMany::new();
        for (dataset, strings) in made.iter().zip(&mut found) {
            reads.add_strings(dataset, .., strings)?;
        }
        reads.run()?;
        for (dataset, found) in made.iter().zip(&found) {
            assert_eq!(found.to_vec(), words(round), "{}", dataset.path());
        }
    }
    // What is written to those that are lent is written to those that lend.
    let mut writes = WriteMany::new();
    for dataset in lent {
        writes.add_strings(dataset, 3..5, &["lent", ""])?;
    }
    writes.add_strings(&own[0], 0, &["first"])?;
    writes.run()?;
    for dataset in [&own[1], &own[3], &lent[0], &lent[1]] {
        assert_eq!(dataset.read_strings(2..6)?.to_vec(), [&words(3)[2], "lent", "", &words(3)[5]]);
    }
    drop(made);
    file.close()?;
    let file = File::open(&path)?;
    assert_eq!(file.dataset("contiguous")?.read_strings(0..2)?.to_vec(), ["first", &words(3)[1]]);
    assert_eq!(file.dataset("filtered")?.read_strings(..)?.to_vec(), words(3));
    Ok(())
}

#[test]
fn what_strings_referred_to_before_makes_room() -> Result<()> {
    let store = Arc::new(MemoryStore::default());
    let file = File::options().create_in(store.clone())?;
    let one = file.new_strings().shape([50]).create("one")?;
    let two = file.new_strings().shape([50]).chunk([7]).create("two")?;
    let mut length = 0;
    for round in 0..40 {
        let texts: Vec<String> = (0..50).map(|n| format!("{round:>4}{n:>200}")).collect();
        let mut writes = WriteMany::new();
        writes.add_strings(&one, .., &texts)?.add_strings(&two, .., &texts)?;
        writes.run()?;
        file.flush()?;
        if round == 9 {
            length = pumice_store::Store::len(&*store).unwrap();
        }
    }
    let now = pumice_store::Store::len(&*store).unwrap();
    assert!(now <= length + length / 4, "{length} bytes have become {now}");
    Ok(())
}

#[test]
fn of_a_point_that_repeats_the_last_string_counts() -> Result<()> {
    let file = File::in_memory()?;
    let points = Selection::points(1, vec![3, 0, 3])?;
    let made = texts(&file)?;
    let mut writes = WriteMany::new();
    for dataset in &made[..6] {
        writes.add_strings(dataset, points.clone(), &["a", "b", "c"])?;
    }
    writes.run()?;
    for dataset in &made {
        assert_eq!(dataset.read_strings(0..4)?.to_vec(), ["b", "", "", "c"], "{}", dataset.path());
    }
    Ok(())
}

#[test]
fn sequences_values_and_elements_with_their_heap_go_together() -> Result<()> {
    let file = File::in_memory()?;
    let tags = Datatype::varlen(Datatype::varlen_string(16), 16);
    let photo = Datatype::compound([("id", Datatype::i32_le()), ("tags", tags)]);
    let new = || file.new_dataset_of(photo.clone()).shape([6]);
    let photos = [
        new().create("c")?,
        new().chunk([4]).variable_length().create("v")?,
        new().chunk([4]).sparse().create("s")?,
    ];
    let walks = |name: &str| file.new_sequences(Datatype::i16_be()).shape([6]).create(name);
    let walks =
        [walks("w")?, file.new_sequences(Datatype::i16_le()).shape([6]).sparse().create("ws")?];
    let value = |id: i128| {
        let tags = Value::Sequence(vec!["sea".into(), "sun".into()]);
        Value::Compound(vec![("id".into(), Value::Integer(id)), ("tags".into(), tags)])
    };
    let steps: Sequences<i32> = [vec![1, -2, 3], vec![], vec![7]].into_iter().collect();
    let mut writes = WriteMany::new();
    for dataset in &photos {
        writes.add_values(dataset, 2..4, &[value(7), value(8)])?;
    }
    for dataset in &walks {
        writes.add_sequences(dataset, 1..4, &steps)?;
    }
    writes.run()?;

    let (mut values, mut heaped) = (vec![Vec::new(); 3], vec![Heaped::default(); 3]);
    let mut found = vec![Sequences::<f64>::default(); 2];
    let mut reads = ReadMany::new();
    for ((dataset, values), heaped) in photos.iter().zip(&mut values).zip(&mut heaped) {
        reads.add_values(dataset, 2..4, values)?.add_heaped(dataset, .., heaped)?;
    }
    for (dataset, found) in walks.iter().zip(&mut found) {
        reads.add_sequences(dataset, 1..4, found)?;
    }
    reads.run()?;
    for ((dataset, values), heaped) in photos.iter().zip(&values).zip(&heaped) {
        assert_eq!(values, &[value(7), value(8)]);
        assert_eq!(heaped.values(&photo)?, dataset.read_values(..)?);
    }
    for found in &found {
        assert_eq!((&found[0], found[1].len(), &found[2]), (&[1.0, -2.0, 3.0][..], 0, &[7.0][..]));
    }
    // Back from elements and heap.
    let other = new().chunk([2]).create("other")?;
    let mut writes = WriteMany::new();
    writes.add_heaped(&other, .., &heaped[0])?;
    writes.run()?;
    assert_eq!(other.read_values(..)?, photos[0].read_values(..)?);
    Ok(())
}

#[test]
fn each_part_is_transferred_in_its_own_way() -> Result<()> {
    let file = File::in_memory()?;
    let new = || file.new_dataset::<i16>().shape([4]);
    let made = [
        new().create("contiguous")?,
        new().chunk([3]).deflate(1).create("chunked")?,
        new().chunk([3]).sparse().create("sparse")?,
        new().virtual_part(all(4), ".", "chunked", all(4)).create("lent")?,
    ];
    let places = Selection::hyperslab(&[0], &[2], &[4], &[1])?;
    let twice = Transfer::new().transform("2*x")?.memory(places.clone(), [8]);
    let apart: Vec<i32> = (0..8).collect();
    let mut writes = WriteMany::new();
    for dataset in &made[..3] {
        writes.add_with(dataset, .., &apart, &twice)?;
    }
    writes.run()?;
    let mut found = vec![[-1.0f64; 8]; 4];
    let back = Transfer::new().transform("x/4")?.memory(places, [8]);
    let mut reads = ReadMany::new();
    for (dataset, found) in made.iter().zip(&mut found) {
        reads.add_with(dataset, .., found, &back)?;
    }
    reads.run()?;
    assert_eq!(found, [[0.0, -1.0, 1.0, -1.0, 2.0, -1.0, 3.0, -1.0]; 4]);
    // Of any datatype, and to the one that is lent.
    let (mut writes, big) = (WriteMany::new(), Datatype::i16_be());
    writes.add_as(&made[3], 1..3, &big, &[1, 0, 0, 9], &Transfer::new())?;
    writes.run()?;
    assert_eq!(made[1].read::<i16>(..)?, [0, 256, 9, 12]);
    let mut bytes = [0; 4];
    let mut reads = ReadMany::new();
    reads.add_as(&made[1], 1..3, &big, &mut bytes, &Transfer::new())?;
    reads.run()?;
    assert_eq!(bytes, [1, 0, 0, 9]);
    // Two places that are one.
    let (one, mut two) = (Selection::points(1, vec![1, 1])?, [0i16; 2]);
    let mut reads = ReadMany::new();
    reads.add_with(&made[0], 0..2, &mut two, &Transfer::new().memory(one, [2]))?;
    assert!(reads.run().is_err());
    Ok(())
}

#[test]
fn checksums_that_are_not_to_be_compared_are_not() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.h5");
    let file = File::create(&path)?;
    let new =
        |name: &str| file.new_dataset::<u16>().shape([9]).chunk([9]).fletcher32().create(name);
    new("bad")?.write(4..6, &[0xABCD_u16, 0x1234])?;
    new("good")?.write(4..6, &[1u16, 2])?;
    file.close()?;
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(2).position(|two| two == [0xCD, 0xAB]).unwrap();
    bytes[at] ^= 1;
    let file = File::options().open_bytes(bytes)?;
    let (bad, good) = (file.dataset("bad")?, file.dataset("good")?);
    for verify in [true, false] {
        let (mut one, mut two) = ([0u16; 2], [0u16; 2]);
        let mut reads = ReadMany::new();
        reads.add_with(&bad, 4..6, &mut one, &Transfer::new().verify(verify))?;
        reads.add(&good, 4..6, &mut two)?;
        assert_eq!(reads.run().is_err(), verify);
        assert!(verify || (one, two) == ([0xABCC, 0x1234], [1, 2]));
    }
    Ok(())
}

#[test]
fn nothing_is_written_if_one_part_cannot_be() -> Result<()> {
    let file = File::in_memory()?;
    let made = texts(&file)?;
    let numbers = file.new_dataset::<i32>().shape([4]).create("numbers")?;
    let few = ["too", "few"];
    for bad in &made {
        let mut writes = WriteMany::new();
        writes.add(&numbers, .., &[1i32; 4])?;
        for dataset in &made {
            writes.add_strings(dataset, 0..2, &few)?;
        }
        writes.add_strings(bad, 0..3, &few)?;
        assert!(writes.run().is_err(), "{}", bad.path());
    }
    let mut writes = WriteMany::new();
    writes.add(&numbers, .., &[1i32; 4])?.add_strings(&made[0], 0..1, &["nul\0l"])?;
    assert!(writes.run().is_err());
    assert_eq!(numbers.read::<i32>(..)?, [0; 4]);
    for dataset in &made {
        assert!(dataset.read_strings(..)?.iter().all(<[u8]>::is_empty), "{}", dataset.path());
    }
    assert!(WriteMany::new().add_strings(&numbers, .., &few).is_err());
    let none = Sequences::<u8>::default();
    assert!(WriteMany::new().add_sequences(&made[0], .., &none).is_err());
    Ok(())
}

#[test]
fn nobody_sees_some_of_the_strings_and_not_the_others() -> Result<()> {
    let file = File::in_memory()?;
    let made = texts(&file)?;
    let own = &made[..6];
    let write = |text: String| {
        let mut writes = WriteMany::new();
        for dataset in own {
            writes.add_strings(dataset, .., &vec![text.clone(); WORDS as usize]).unwrap();
        }
        writes.run().unwrap();
    };
    write("begin".into());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let write = &write;
                scope.spawn(move || (0..60).for_each(|round| write(format!("{writer}-{round}"))))
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let mut found = vec![Strings::default(); own.len()];
                    let mut reads = ReadMany::new();
                    for (dataset, found) in own.iter().zip(&mut found) {
                        reads.add_strings(dataset, .., found).unwrap();
                    }
                    reads.run().unwrap();
                    let first = found[0].to_vec()[0].clone();
                    let same = found.iter().all(|f| f.to_vec().iter().all(|t| *t == first));
                    assert!(same, "{first} and others");
                }
            });
        }
        let writers: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|writer| writer.unwrap());
    });
    Ok(())
}

#[test]
fn what_cannot_be_loaded_ahead_says_so_and_what_is_lent_is_loaded_where_it_is() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let context = Context::builder().cache_bytes(4 << 20).threads(1).build()?;
    let file = File::options().context(&context).create(&path)?;
    let new = || file.new_dataset::<u32>().shape([1000]);
    let values: Vec<u32> = (0..1000).collect();
    let raw = folder.path().join("raw").display().to_string();
    let past = [
        new().create("contiguous")?,
        new().compact().create("compact")?,
        new().external(&raw, 0, None).create("external")?,
        new().virtual_part(all(1000), ".", "contiguous", all(1000)).create("lent contiguous")?,
    ];
    let kept = [
        new().chunk([100]).create("plain")?,
        new().chunk([100]).deflate(1).create("chunked")?,
        new().chunk([100]).sparse().create("sparse")?,
        new().virtual_part(all(1000), ".", "chunked", all(1000)).create("lent")?,
    ];
    for dataset in past[..3].iter().chain(&kept[..3]) {
        dataset.write(.., &values)?;
    }
    let strings = file.new_strings().shape([50]).chunk([10]).variable_length().create("strings")?;
    strings.write_strings(.., &vec!["stone"; 50])?;
    file.flush()?;
    for dataset in &past {
        assert!(!dataset.prefetch(200..300)?, "{}", dataset.path());
        assert!(!dataset.will_read(std::iter::once(200..300))?, "{}", dataset.path());
    }
    for dataset in &kept {
        context.evict()?;
        assert!(dataset.prefetch(200..300)?, "{}", dataset.path());
        assert!(dataset.will_read([200..300, 0..50])?, "{}", dataset.path());
        let before = context.stats().misses;
        assert_eq!(dataset.read::<u32>(210..290)?, values[210..290], "{}", dataset.path());
        assert_eq!(context.stats().misses, before, "{}", dataset.path());
    }
    context.evict()?;
    assert!(strings.prefetch(20..30)?);
    let before = context.stats().misses;
    assert_eq!(strings.read_strings(20..30)?.to_vec(), ["stone"; 10]);
    assert_eq!(context.stats().misses, before);
    // What goes past the cache is not loaded either, and nothing at all is nothing.
    kept[1].set_cache_options(CacheOptions::default().direct(true));
    assert!(!kept[1].prefetch(200..300)? && !kept[1].will_read(std::iter::once(0..10))?);
    assert!(!kept[0].prefetch(Selection::none())?);
    Ok(())
}

#[test]
fn a_vast_selection_that_is_loaded_ahead_costs_what_is_stored() -> Result<()> {
    let context = Context::builder().build()?;
    let file = File::options().context(&context).create_in(Arc::new(MemoryStore::default()))?;
    let side = 1 << 40;
    let new = file.new_dataset::<u32>().shape([side, side]).chunk([1 << 10, 1 << 10]);
    let sparse = new.sparse().create("sparse")?;
    sparse.write_points(&[[5, 5], [side - 1, 7]], &[1u32, 2])?;
    file.flush()?;
    context.evict()?;
    assert!(sparse.will_read([(.., ..)])?);
    sparse.prefetch((.., ..))?;
    assert_eq!(sparse.count_defined(..)?, 2);
    Ok(())
}
