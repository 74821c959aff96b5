//! Many threads at once against a serial model.
//!
//! Each thread owns a range of cells in every chunk of a shared dataset and keeps a model of them:
//! whatever the others do to the same chunks, it must always find its own cells as its model says.

#![cfg(not(shuttle))]

#[path = "support/toy.rs"]
mod toy;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use pumice_cache::*;
use toy::*;

const THREADS: usize = 4;
const WIDTH: usize = 16;
const CELLS: usize = THREADS * WIDTH;
const CHUNKS: u64 = 12;
const ROUNDS: usize = 1500;

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end
    }
}

/// One thread's cells of all chunks: `None` where nothing is defined.
type Model = Vec<[Option<u8>; WIDTH]>;

struct Player<'b> {
    bench: &'b Bench,
    first: usize,
    random: Random,
    model: Model,
}

impl Player<'_> {
    fn play(mut self) -> Model {
        for round in 0..ROUNDS {
            match self.random.below(20) {
                0..8 => self.read(),
                8..15 => self.write(round as u8),
                15..18 => self.erase(),
                18 => {
                    let evict = self.random.below(2) == 0;
                    self.bench.cache.flush(&self.bench.dataset, evict).unwrap();
                }
                _ => self.have_sole_use(round as u8),
            }
        }
        self.model
    }

    /// Some chunks, each once.
    fn chunks(&mut self) -> Vec<u64> {
        let count = [1, 1, 1, 3, CHUNKS as usize][self.random.below(5)];
        let start = self.random.below(CHUNKS as usize);
        (start..start + count).map(|chunk| chunk as u64 % CHUNKS).collect()
    }

    fn read(&mut self) {
        let chunks = self.chunks();
        let mut out = vec![[0; WIDTH]; chunks.len()];
        let parts = chunks.iter().zip(&mut out);
        let parts = parts.map(|(key, out)| (*key, Read::Values { start: self.first, out }));
        self.bench.cache.read(&self.bench.dataset, parts).unwrap();
        for (chunk, out) in chunks.iter().zip(out) {
            assert_eq!(out, self.model[*chunk as usize].map(|cell| cell.unwrap_or(FILL)));
        }
        let mut defined = Vec::new();
        let parts = [(chunks[0], Read::Defined(&mut defined))];
        self.bench.cache.read(&self.bench.dataset, parts).unwrap();
        let mine =
            defined.into_iter().filter(|cell| (self.first..self.first + WIDTH).contains(cell));
        let model = &self.model[chunks[0] as usize];
        let expected = (0..WIDTH).filter(|&cell| model[cell].is_some());
        assert!(mine.eq(expected.map(|cell| self.first + cell)));
    }

    fn write(&mut self, value: u8) {
        let (chunks, data) = (self.chunks(), [value; WIDTH]);
        let start = self.random.below(WIDTH);
        let data = &data[..1 + self.random.below(WIDTH - start)];
        let put = |key: &u64| (*key, Write::Put { start: self.first + start, data });
        self.bench.cache.write(&self.bench.dataset, chunks.iter().map(put)).unwrap();
        for chunk in chunks {
            self.model[chunk as usize][start..start + data.len()].fill(Some(value));
        }
    }

    fn erase(&mut self) {
        let chunks = self.chunks();
        let erase = |key: &u64| (*key, Write::Erase { start: self.first, len: WIDTH });
        self.bench.cache.write(&self.bench.dataset, chunks.iter().map(erase)).unwrap();
        for chunk in chunks {
            self.model[chunk as usize].fill(None);
        }
    }

    fn have_sole_use(&mut self, value: u8) {
        let exclusive = self.bench.cache.exclusive(&self.bench.dataset);
        assert!(exclusive.resident_keys().iter().all(|key| *key < CHUNKS));
        let data = &[value; WIDTH];
        exclusive.write([(0, Write::Put { start: self.first, data })]).unwrap();
        self.model[0].fill(Some(value));
    }
}

fn play(config: Config, toy: Toy) -> (Stats, u64) {
    let bench = Bench::new(config, toy);
    let models: Vec<Model> = thread::scope(|scope| {
        let players: Vec<_> = (0..THREADS)
            .map(|i| Player {
                bench: &bench,
                first: i * WIDTH,
                random: Random(i as u64 * 977 + 5),
                model: vec![[None; WIDTH]; CHUNKS as usize],
            })
            .map(|player| scope.spawn(|| player.play()))
            .collect();
        players.into_iter().map(|player| player.join().unwrap()).collect()
    });
    let (resident_limit, active_limit) = bench.cache.config().limits();
    let Bench { toy, cache, dataset } = bench;
    let stats = cache.stats();
    assert!(stats.resident + stats.bookkeeping <= resident_limit);
    let most = active_limit.max(4 * (2 * CELLS as u64 + BOOK));
    let peak = toy.living.peak.load(Ordering::SeqCst);
    assert!(peak <= most, "chunks counted by themselves: {peak} of {most}");
    dataset.close().unwrap();
    for chunk in 0..CHUNKS as usize {
        let expected: Vec<_> = models.iter().flat_map(|model| model[chunk]).collect();
        let stored = toy.stored(chunk as u64).unwrap_or_else(|| vec![None; CELLS]);
        assert_eq!(stored, expected);
    }
    (stats, active_limit)
}

#[test]
fn every_thread_finds_its_cells_as_it_left_them() {
    let chunk = 2 * CELLS as u64 + BOOK;
    for (resident, active) in [(3, 6), (1, 2), (CHUNKS, 2 * CHUNKS), (0, 4)] {
        for threads in [1, 2] {
            let executor = Arc::new(Rayon::new(threads).unwrap());
            let config = Config::default().executor(executor);
            let config = config.resident_limit(resident * chunk).active_limit(active * chunk);
            let (stats, limit) = play(config, Toy::new(CELLS));
            // Alone, a chunk may need to be stored, decoded and encoded, and that is an estimate.
            let most = limit.max(4 * chunk);
            assert!(stats.peak <= most, "{} of {limit}", stats.peak);
        }
    }
}

#[test]
fn every_thread_finds_its_cells_when_requests_go_direct() {
    let toy = Toy { direct: true, bypass: true, ..Toy::new(CELLS) };
    play(Config::default(), toy);
    let toy = Toy { direct: true, ..Toy::new(CELLS) };
    play(Config::default().resident_limit(64).active_limit(64), toy);
}

#[test]
fn a_read_never_sees_half_a_write_of_many_chunks() {
    let chunk = 2 * CELLS as u64 + BOOK;
    for resident in [2, CHUNKS] {
        let config = Config::default().executor(Arc::new(Rayon::new(2).unwrap()));
        let config = config.resident_limit(resident * chunk).active_limit(2 * resident * chunk);
        let bench = Bench::new(config, Toy::new(CELLS));
        bench.put_many(0..CHUNKS, &[0; CELLS]).unwrap();
        thread::scope(|scope| {
            for writer in 0..2 {
                let bench = &bench;
                scope.spawn(move || {
                    for round in 0..100 {
                        let data = [round * 2 + writer; CELLS];
                        bench.put_many(0..CHUNKS, &data).unwrap();
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let chunks = bench.get_many((0..CHUNKS).rev()).unwrap();
                        let value = chunks[0][0];
                        assert!(chunks.iter().flatten().all(|cell| *cell == value));
                    }
                });
            }
        });
    }
}
