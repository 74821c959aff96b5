//! What a hit costs: `cargo bench -p pumice-cache`, or a part of it: `... -- 'two threads'`.
//!
//! The layout copies whole chunks of 4 KiB; the copy alone is measured beside, so that the
//! difference is the cache's. One chunk of 1 MiB is copied for comparison with a plain copy.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use pumice_cache::*;

const CHUNK: usize = 4096;
const LARGE: usize = 1 << 20;
/// Rounds of which the best counts where threads are compared: others may use the processors, too.
const ROUNDS: usize = 30;
/// The first coordinate of chunks of 1 MiB.
const LARGE_CHUNKS: u64 = 9;

fn size(key: &[u64; 2]) -> usize {
    if key[0] == LARGE_CHUNKS { LARGE } else { CHUNK }
}

struct Plain;

impl Family for Plain {
    type Key = [u64; 2];
    type Chunk = Vec<u8>;
    type Tag = ();
    type Read<'a> = &'a mut [u8];
    type Write<'a> = &'a [u8];
    type Error = CacheError;
}

impl ByteStore<Plain> for Plain {
    fn fetch(&self, reads: &mut [Fetch<'_>]) -> Result<(), CacheError> {
        // Memory that was never written is not copied like other memory.
        reads.iter_mut().for_each(|read| read.buffer.fill(1));
        Ok(())
    }

    fn put(&self, _: &[Put<'_>]) -> Result<(), CacheError> {
        Ok(())
    }
}

impl ChunkStore<Plain> for Plain {
    fn lookup(&self, keys: &[[u64; 2]]) -> Result<Lookups<()>, CacheError> {
        Ok(keys.iter().map(|key| Some(Stored::new(0, size(key) as u64, ()))).collect())
    }

    fn insert(&self, _: &mut [Placement<[u64; 2], ()>]) -> Result<(), CacheError> {
        Ok(())
    }

    fn delete(&self, _: &[u64; 2]) -> Result<(), CacheError> {
        Ok(())
    }
}

impl Layout<Plain> for Plain {
    fn chunks(&self) -> &dyn ChunkStore<Plain> {
        self
    }

    fn decode(
        &self,
        _: &[u64; 2],
        bytes: Vec<u8>,
        _: &Stored<()>,
        _: Part,
    ) -> Result<Vec<u8>, CacheError> {
        Ok(bytes)
    }

    fn new_chunk(&self, key: &[u64; 2], _: bool) -> Result<Vec<u8>, CacheError> {
        Ok(vec![0; size(key)])
    }

    fn encode(&self, _: &[u64; 2], chunk: &Vec<u8>) -> Result<Encoded<()>, CacheError> {
        Ok(Encoded::new(chunk.clone(), ()))
    }

    fn scatter(
        &self,
        _: &[u64; 2],
        chunk: Option<&Vec<u8>>,
        out: &mut &mut [u8],
    ) -> Result<(), CacheError> {
        if let Some(chunk) = chunk {
            out.copy_from_slice(chunk);
        }
        Ok(())
    }

    fn gather(
        &self,
        _: &[u64; 2],
        chunk: &mut Vec<u8>,
        data: &mut &[u8],
    ) -> Result<Outcome, CacheError> {
        chunk.copy_from_slice(data);
        Ok(Outcome::Keep)
    }
}

/// Whether the command line asks for this.
fn wanted(name: &str) -> bool {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-')).peekable();
    words.peek().is_none() || words.any(|word| name.contains(&word))
}

/// Prints the nanoseconds of one of `each` things that `work` does, the best of five.
fn measure(name: &str, each: usize, mut work: impl FnMut()) {
    if !wanted(name) {
        return;
    }
    let rounds = 200_000 / each.max(1);
    let time = |_| {
        let start = Instant::now();
        (0..rounds).for_each(|_| work());
        start.elapsed().as_nanos() as f64 / (rounds * each) as f64
    };
    let best = (0..5).map(time).fold(f64::INFINITY, f64::min);
    println!("{name:45} {best:8.0} ns");
}

fn main() {
    let cache = ChunkCache::new(Config::default());
    let dataset = cache.register(Arc::new(Plain), DatasetOptions::default());
    let mut out = vec![0; 64 * CHUNK];
    let source = vec![1; CHUNK];
    let chunks: Vec<Vec<u8>> = vec![source.clone(); 64];
    let mut next = 0;
    measure("copy of 4 KiB", 1, || {
        next = (next + 1) % 64;
        black_box(&mut out[..CHUNK]).copy_from_slice(&chunks[next as usize]);
    });
    measure("copy of 64 chunks of 4 KiB, each", 64, || {
        for (out, chunk) in out.chunks_mut(CHUNK).zip(&chunks) {
            black_box(out).copy_from_slice(chunk);
        }
    });
    measure("hit, one chunk a read", 1, || {
        next = (next + 1) % 64;
        cache.read(&dataset, [([3, next], &mut out[..CHUNK])]).expect("plain reads work");
    });
    measure("hit, 64 chunks a read, each", 64, || {
        let parts = out.chunks_mut(CHUNK).zip(0..).map(|(out, key)| ([3, key], out));
        cache.read(&dataset, parts).expect("plain reads work");
    });
    measure("write to a resident chunk", 1, || {
        next = (next + 1) % 64;
        cache.write(&dataset, [([3, next], &source[..])]).expect("plain writes work");
    });
    cache.flush(&dataset, true).expect("plain writes work");
    let mut key = 0;
    measure("miss, one chunk a read", 1, || {
        key += 1;
        cache.read(&dataset, [([4, key], &mut out[..CHUNK])]).expect("plain reads work");
    });
    measure("miss, 64 chunks a read, each", 64, || {
        key += 64;
        let parts = out.chunks_mut(CHUNK).zip(0..).map(|(out, part)| ([5, key + part], out));
        cache.read(&dataset, parts).expect("plain reads work");
    });
    copy_large(&cache, &dataset);
    scale();
}

/// Measures copies of 1 MiB, with and without the cache, in turns.
fn copy_large(cache: &ChunkCache<Plain>, dataset: &Dataset<Plain>) {
    let name = "copy of a resident chunk of 1 MiB";
    if !wanted(name) {
        return;
    }
    let (chunk, mut out) = (vec![1; LARGE], vec![0; LARGE]);
    let time = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..100).for_each(|_| work());
        start.elapsed().as_secs_f64()
    };
    let (mut plain, mut cached) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..20 {
        plain = plain.min(time(&mut || black_box(&mut out[..]).copy_from_slice(black_box(&chunk))));
        cached = cached.min(time(&mut || {
            let part = ([LARGE_CHUNKS, 0], &mut out[..]);
            cache.read(dataset, [part]).expect("plain reads work");
        }));
    }
    println!("{name:45} {:8.2} of the speed of a plain copy", plain / cached);
}

/// Prints how many times as many hits two threads have as one, in their best rounds; once in one cache,
/// once each in its own, which is what the machine can do.
fn scale() {
    let name = "hits of two threads, of one";
    if !wanted(name) {
        return;
    }
    let make = || {
        let cache = ChunkCache::new(Config::default());
        let dataset = cache.register(Arc::new(Plain), DatasetOptions::default());
        (cache, dataset)
    };
    let (shared, own) = (make(), [make(), make()]);
    let hit = |(cache, dataset): &(ChunkCache<Plain>, Dataset<Plain>), thread: u64| {
        let mut out = vec![0; CHUNK];
        for round in 0..200_000 {
            let key = [6, 32 * thread + round % 32];
            cache.read(dataset, [(key, &mut out[..])]).expect("plain reads work");
        }
    };
    let run = |caches: &[&(ChunkCache<Plain>, Dataset<Plain>)]| {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for (cache, thread) in caches.iter().zip(0..) {
                scope.spawn(move || hit(cache, thread));
            }
        });
        200_000.0 * caches.len() as f64 / start.elapsed().as_secs_f64()
    };
    let (mut one, mut two, mut apart) = (0_f64, 0_f64, 0_f64);
    for _ in 0..ROUNDS {
        one = one.max(run(&[&shared]));
        two = two.max(run(&[&shared, &shared]));
        apart = apart.max(run(&[&own[0], &own[1]]));
    }
    let line = "hits of two threads, each in a cache of its own";
    println!("{name:45} {:8.2} times", two / one);
    println!("{line:45} {:8.2} times", apart / one);
}
