//! Many threads at once against a serial model.
//!
//! Each thread owns a range of cells in every chunk of shared datasets and keeps a model of them:
//! whatever the others do to the same chunks, it must always find its own cells as its model says.
//! One chunk of the first dataset is the business of one thread alone, which also reads and writes
//! it as it is stored.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use crate::toy::*;
use pumice_cache::*;

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
    /// Another dataset in the same cache.
    other: &'b Dataset<Toy>,
    first: usize,
    random: Random,
    model: Model,
    /// What this thread left in the other dataset.
    beside: Model,
}

/// The chunk that only the thread with this first cell uses.
const OWN: (u64, usize) = (CHUNKS, 0);

impl Player<'_> {
    fn play(mut self) -> (Model, Model) {
        for round in 0..ROUNDS {
            match self.random.below(28) {
                0..8 => self.read(),
                8..15 => self.write(round as u8),
                15..18 => self.erase(),
                18 => self.flush(),
                19 => self.have_sole_use(round as u8),
                20..22 => self.write_many(round as u8),
                22..24 => self.read_many(),
                24 => self.look_ahead(),
                25 => self.configure(),
                _ if self.first == OWN.1 => self.store(round as u8),
                _ => self.read(),
            }
        }
        (self.model, self.beside)
    }

    fn flush(&mut self) {
        let (Bench { cache, dataset, .. }, evict) = (self.bench, self.random.below(2) == 0);
        match self.random.below(3) {
            0 => cache.flush(dataset, evict).unwrap(),
            1 => cache.flush(self.other, evict).unwrap(),
            _ => cache.flush_all(evict).unwrap(),
        }
    }

    /// Changes both datasets in one request.
    fn write_many(&mut self, value: u8) {
        let (one, two, data) = (self.chunks(), self.chunks(), [value; WIDTH]);
        let put = |key: &u64| (*key, Write::Put { start: self.first, data: &data });
        let parts = |chunks: &[u64]| chunks.iter().map(put).collect::<Vec<_>>();
        let requests = [(&self.bench.dataset, parts(&one)), (self.other, parts(&two))];
        self.bench.cache.write_many(requests).unwrap();
        one.iter().for_each(|chunk| self.model[*chunk as usize].fill(Some(value)));
        two.iter().for_each(|chunk| self.beside[*chunk as usize].fill(Some(value)));
    }

    fn read_many(&mut self) {
        let (one, two) = (self.chunks(), self.chunks());
        let mut out = vec![[0; WIDTH]; one.len() + two.len()];
        let (first, rest) = out.split_at_mut(one.len());
        let start = self.first;
        let ones: Vec<_> =
            one.iter().zip(first).map(|(key, out)| (*key, Read::Values { start, out })).collect();
        let twos: Vec<_> =
            two.iter().zip(rest).map(|(key, out)| (*key, Read::Values { start, out })).collect();
        let requests = [(&self.bench.dataset, ones), (self.other, twos)];
        self.bench.cache.read_many(requests).unwrap();
        let models = one.iter().map(|chunk| &self.model[*chunk as usize]);
        let beside = two.iter().map(|chunk| &self.beside[*chunk as usize]);
        for (out, model) in out.iter().zip(models.chain(beside)) {
            assert_eq!(*out, model.map(|cell| cell.unwrap_or(FILL)));
        }
    }

    /// What only makes things faster or slower.
    fn look_ahead(&mut self) {
        let (Bench { cache, dataset, .. }, chunks) = (self.bench, self.chunks());
        let hints = [Hint::Normal, Hint::Sequential, Hint::Random, Hint::Once];
        let hint = hints[self.random.below(4)];
        match self.random.below(3) {
            0 => drop(cache.prefetch(dataset, chunks)),
            1 => drop(cache.will_read(dataset, chunks)),
            _ => {
                let direct = self.bench.toy.direct && self.random.below(2) == 0;
                dataset.set_options(DatasetOptions::default().hint(hint).direct(direct));
            }
        }
    }

    fn configure(&mut self) {
        let cache = &self.bench.cache;
        let policy = PolicyKind::ALL[self.random.below(PolicyKind::ALL.len())];
        cache.configure(cache.config().policy(policy)).unwrap();
    }

    /// Writes and reads a chunk as it is stored, now and then with a change that is not.
    fn store(&mut self, value: u8) {
        let Bench { cache, dataset, .. } = self.bench;
        let mut cells = [value; CELLS];
        let toy = &self.bench.toy;
        if toy.unchunked {
            return;
        }
        cache.write_stored(dataset, &OWN.0, &toy.image(&cells), None).unwrap();
        assert_eq!(self.bench.get(OWN.0).unwrap(), cells);
        if self.random.below(2) == 0 {
            cells[3] = value.wrapping_add(1);
            self.bench.put(OWN.0, 3, &cells[3..4]).unwrap();
        }
        let (_, bytes) = cache.read_stored(dataset, &OWN.0).unwrap().unwrap();
        assert_eq!(bytes, toy.image(&cells));
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
        assert!(exclusive.resident_keys().iter().all(|key| *key <= OWN.0));
        let data = &[value; WIDTH];
        exclusive.write([(0, Write::Put { start: self.first, data })]).unwrap();
        self.model[0].fill(Some(value));
        let bytes = 1 + self.random.below(4 * CELLS) as u64;
        drop(exclusive.room(bytes).unwrap());
        if self.random.below(2) == 0 {
            exclusive.flush(false).unwrap();
            exclusive.hold(&exclusive.resident_keys()).discard(|_| true);
            assert!(exclusive.resident_keys().is_empty() && exclusive.peek(&0, |_| ()).is_none());
        }
    }
}

fn play(config: Config, toy: Toy) -> (Stats, u64) {
    let bench = Bench::new(config, toy);
    let beside = Arc::new(Toy::beside(&bench.toy));
    let other = bench.cache.register(Arc::clone(&beside), DatasetOptions::default());
    let empty = vec![[None; WIDTH]; CHUNKS as usize];
    let models: Vec<(Model, Model)> = thread::scope(|scope| {
        let players: Vec<_> = (0..THREADS)
            .map(|i| Player {
                bench: &bench,
                other: &other,
                first: i * WIDTH,
                random: Random(i as u64 * 977 + 5),
                model: empty.clone(),
                beside: empty.clone(),
            })
            .map(|player| scope.spawn(|| player.play()))
            .collect();
        players.into_iter().map(|player| player.join().unwrap()).collect()
    });
    let (resident_limit, active_limit) = bench.cache.config().limits();
    let Bench { toy, cache, dataset } = bench;
    let stats = cache.stats();
    assert!(stats.resident + stats.bookkeeping <= resident_limit);
    let most = active_limit.max(4 * (2 * CELLS as u64 + toy.swell + BOOK));
    let peak = toy.living.peak.load(Ordering::SeqCst);
    assert!(peak <= most, "chunks counted by themselves: {peak} of {most}");
    dataset.close().unwrap();
    other.close().unwrap();
    for chunk in 0..CHUNKS as usize {
        let check = |toy: &Toy, expected: Vec<Option<u8>>| {
            let stored = toy.stored(chunk as u64).unwrap_or_else(|| vec![None; CELLS]);
            assert_eq!(stored, expected);
        };
        check(&toy, models.iter().flat_map(|(model, _)| model[chunk]).collect());
        check(&beside, models.iter().flat_map(|(_, beside)| beside[chunk]).collect());
    }
    (stats, active_limit)
}

#[test]
fn every_thread_finds_its_cells_as_it_left_them() {
    let chunk = 2 * CELLS as u64 + BOOK;
    let mut early = 0;
    for (resident, active) in [(3, 6), (1, 2), (CHUNKS, 2 * CHUNKS), (40, 60), (0, 4)] {
        for threads in [1, 2] {
            let executor = Arc::new(Pool::new(threads).unwrap());
            let config = Config::default().executor(executor);
            let config = config.resident_limit(resident * chunk).active_limit(active * chunk);
            for (swell, open) in [(0, false), (CELLS as u64, true)] {
                let (stats, limit) = play(config.clone(), Toy { swell, open, ..Toy::new(CELLS) });
                // Alone, a chunk may need to be stored, decoded and encoded, and that is an
                // estimate.
                let most = limit.max(4 * (chunk + swell));
                assert!(stats.peak <= most, "{} of {limit}", stats.peak);
                early += if open { stats.encoded_early } else { 0 };
            }
        }
    }
    assert!(early > 0, "idle threads have encoded nothing");
}

#[test]
fn every_thread_finds_its_cells_when_requests_go_direct() {
    for extents in [false, true] {
        let toy = Toy { extents, unchunked: true, ..Toy::new(CELLS) };
        play(Config::default(), toy);
        let toy = Toy { direct: true, extents, ..Toy::new(CELLS) };
        play(Config::default().resident_limit(64).active_limit(64), toy);
    }
}

#[test]
fn every_thread_finds_its_cells_when_some_requests_go_direct_by_extents() {
    let chunk = 2 * CELLS as u64 + BOOK;
    for threads in [1, 2] {
        let config = Config::default().executor(Arc::new(Pool::new(threads).unwrap()));
        // Players let requests go past the cache now and then.
        let config = config.resident_limit(3 * chunk).active_limit(4 * chunk);
        let (stats, _) = play(config, Toy { direct: true, extents: true, ..Toy::new(CELLS) });
        assert!(stats.direct > 0, "{stats:?}");
    }
}

#[test]
fn a_read_never_sees_half_a_write_of_many_chunks() {
    let chunk = 2 * CELLS as u64 + BOOK;
    for resident in [2, CHUNKS] {
        let config = Config::default().executor(Arc::new(Pool::new(2).unwrap()));
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
