//! What ranks see of one another.

use crate::support::{folder, options, ranks};
use pumice::Selection;
use pumice_collective::{CollectiveError, CollectiveFile};

#[test]
fn every_rank_reads_what_all_have_written() {
    let (_folder, path) = folder();
    ranks(3, |comm| {
        let rank = comm.rank() as u64;
        let file = CollectiveFile::create_with(comm, &path, options())?;
        let dataset = file
            .create_dataset("d", |file| file.new_dataset::<u16>().shape([9]).chunk([2]).sparse())?;
        assert_eq!(dataset.read::<u16>(..)?, [0; 9]);
        dataset.write(rank * 3..rank * 3 + 2, &[rank as u8 + 1; 2])?;
        assert_eq!(dataset.read::<f32>(..)?, [1., 1., 0., 2., 2., 0., 3., 3., 0.]);
        // By itself, from a cache of its own.
        let reader = dataset.reader()?;
        if rank == 2 {
            assert_eq!(reader.count_defined(..)?, 6);
        }
        dataset.erase(if rank == 1 { Selection::all() } else { Selection::none() })?;
        assert_eq!(dataset.reader()?.count_defined(..)?, 0);
        file.close()
    });
}

#[test]
fn an_error_of_one_rank_is_an_error_of_all_and_they_go_on() {
    let (_folder, path) = folder();
    ranks(3, |comm| {
        let rank = comm.rank();
        let file = CollectiveFile::create_with(comm, &path, options())?;
        let describe = |file: &pumice::File| file.new_dataset::<u8>().shape([9]).chunk([2]);
        let dataset = file.create_dataset("d", describe)?;
        let reach = if rank == 1 { 12 } else { 3 };
        let failed = dataset.write(0..reach, &vec![1u8; reach as usize]);
        match (rank, failed) {
            (1, Err(CollectiveError::File(_))) => {}
            (_, Err(CollectiveError::Elsewhere { rank: 1, .. })) => {}
            (_, other) => panic!("{other:?}"),
        }
        assert!(file.create_dataset("d", describe).is_err(), "it exists");
        assert!(file.dataset("none").is_err());
        assert!(dataset.resize([99]).is_err());
        assert!(file.change(|file| file.group("none").map(drop)).is_err());
        dataset.write(rank as u64, &[7u8])?;
        assert_eq!(dataset.read::<u8>(..)?, [7, 7, 7, 0, 0, 0, 0, 0, 0]);
        file.close()
    });
}

#[test]
fn ranks_that_make_different_calls_learn_of_it() {
    let (_folder, path) = folder();
    let found = pumice_comm::run(2, crate::support::LIMIT, |comm| {
        let comm: std::sync::Arc<dyn pumice_comm::Communicator> = std::sync::Arc::new(comm);
        let rank = comm.rank();
        let file = CollectiveFile::create_with(comm, &path, options())?;
        match rank {
            0 => file.flush(),
            _ => file.change(|_| Ok(())),
        }
    });
    for done in found {
        let error = done.unwrap().unwrap_err();
        assert!(
            matches!(error, CollectiveError::Disagree(_) | CollectiveError::Comm(_)),
            "{error}"
        );
    }
}

#[test]
fn ranks_write_chunks_of_their_own_without_calls() {
    let (_folder, path) = folder();
    ranks(4, |comm| {
        let rank = comm.rank() as u64;
        let file = CollectiveFile::create_with(comm, &path, options())?;
        let dataset = file.create_dataset("d", |file| {
            file.new_dataset::<u32>().shape([40]).chunk([5]).deflate(1)
        })?;
        // One has more to write than another.
        for turn in 0..rank + 1 {
            dataset.write_alone(rank * 10 + turn, &[rank as u32 + 1])?;
        }
        let sum: u64 = dataset.read::<u64>(..)?.iter().sum();
        assert_eq!(sum, 1 + 2 * 2 + 3 * 3 + 4 * 4);
        // On top of what is stored, and of what all write.
        dataset.write_alone(rank * 10 + 9, &[100u32])?;
        let sum: u64 = dataset.read::<u64>(..)?.iter().sum();
        assert_eq!(sum, 30 + 400);
        // Two change one chunk.
        if rank < 2 {
            dataset.write_alone(39, &[1u32])?;
        }
        let failed = file.flush().unwrap_err();
        let said = failed.to_string();
        assert!(said.contains("chunk [7] of d") && said.contains("[0, 1]"), "{said}");
        assert!(file.close().is_err(), "they still have different values");
        Ok(())
    });
    assert_eq!(
        pumice::File::open(&path).unwrap().dataset("d").unwrap().read::<u32>(39).unwrap(),
        [100]
    );
}
