//! What every communicator must do, tried with threads.

use pumice_comm::{Alone, CommError, Communicator, ThreadComm, run};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

fn answers<T: Send>(size: usize, program: impl Fn(ThreadComm) -> T + Sync) -> Vec<T> {
    let found = run(size, LIMIT, program);
    found.into_iter().map(|answer| answer.unwrap_or_else(|_| panic!("a rank panicked"))).collect()
}

/// Calls of every kind, of which the answers are known.
fn exercise(comm: &impl Communicator) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    for round in 0..3 {
        let own: Vec<u8> = (0..rank * 3 + round).map(|at| (rank + at) as u8).collect();
        let all = comm.all_gather(&own)?;
        for (from, bytes) in all.iter().enumerate() {
            let sent: Vec<u8> = (0..from * 3 + round).map(|at| (from + at) as u8).collect();
            assert_eq!((bytes, all.len()), (&sent, size));
        }
        let before = comm.exclusive_scan(rank as u64 + 1)?;
        assert_eq!(before, (0..rank as u64).map(|one| one + 1).sum::<u64>());
        for from in 0..size {
            let found = comm.broadcast(from, if from == rank { b"stone" } else { b"" })?;
            assert_eq!(found, b"stone");
        }
        comm.barrier()?;
    }
    comm.send((rank + 1) % size, vec![1])?;
    comm.send((rank + 1) % size, vec![2])?;
    let from = (rank + size - 1) % size;
    assert_eq!((comm.receive(from)?, comm.receive(from)?), (vec![1], vec![2]));
    Ok(())
}

#[test]
fn every_call_gives_what_all_ranks_have_handed_in() {
    exercise(&Alone::default()).unwrap();
    for size in [1, 2, 3, 4, 5, 7, 8, 12] {
        answers(size, |comm| exercise(&comm)).into_iter().for_each(|done| done.unwrap());
    }
}

#[test]
fn a_rank_that_ends_or_panics_ends_the_waits_of_the_others() {
    for panics in [false, true] {
        let found = run(3, LIMIT, |comm| {
            if comm.rank() == 1 {
                assert!(!panics, "on purpose");
                return Ok(());
            }
            let done = comm.barrier().and_then(|()| comm.barrier());
            done.inspect_err(|error| comm.abort(&error.to_string()))
        });
        assert!(found[1].is_err() == panics);
        for rank in [0, 2] {
            assert!(matches!(found[rank], Ok(Err(_))), "rank {rank}, {panics}");
        }
    }
}

#[test]
fn a_silent_rank_is_waited_for_only_so_long() {
    let ranks = ThreadComm::group(2, Duration::from_millis(5));
    assert!(matches!(ranks[0].receive(1), Err(CommError::Silent { rank: 1, .. })));
    assert_eq!(ranks[0].send(2, vec![]), Err(CommError::NoRank(2)));
    assert_eq!(ranks[0].receive(9), Err(CommError::NoRank(9)));
}

#[test]
fn sums_beyond_64_bits_and_messages_of_other_calls_are_errors() {
    let found = answers(2, |comm| comm.exclusive_scan(u64::MAX));
    assert_eq!((&found[0], found[1].clone()), (&Ok(0), Ok(u64::MAX)));
    let found = answers(3, |comm| comm.exclusive_scan(u64::MAX));
    assert_eq!(found[2], Err(CommError::Overflow));
    let found = answers(2, |comm| match comm.rank() {
        0 => comm.all_gather(b"four").map(|_| 0),
        _ => comm.send(0, vec![7; 3]).and_then(|()| comm.receive(0)).map(|_| 0),
    });
    assert_eq!(found[0], Err(CommError::Garbled));
}
