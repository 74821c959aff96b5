//! What a hit costs: `cargo bench -p pumice-cache`.
//!
//! The layout copies whole chunks of 4 KiB; the copy alone is measured beside, so that the
//! difference is the cache's.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use pumice_cache::*;

const CHUNK: usize = 4096;

struct Plain;

impl Layout for Plain {
    type Key = [u64; 2];
    type Chunk = Vec<u8>;
    type Tag = ();
    type Read<'a> = &'a mut [u8];
    type Write<'a> = &'a [u8];
    type Error = CacheError;

    fn lookup(&self, keys: &[[u64; 2]]) -> Result<Lookups<()>, CacheError> {
        Ok(keys.iter().map(|_| Some(Stored::new(0, CHUNK as u64, ()))).collect())
    }

    fn fetch(&self, _: &mut [Fetch<'_>]) -> Result<(), CacheError> {
        Ok(())
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

    fn new_chunk(&self, _: &[u64; 2], _: bool) -> Result<Vec<u8>, CacheError> {
        Ok(vec![0; CHUNK])
    }

    fn encode(&self, _: &[u64; 2], chunk: &Vec<u8>) -> Result<Encoded<()>, CacheError> {
        Ok(Encoded { bytes: chunk.clone(), tag: () })
    }

    fn insert(&self, _: &mut [Placement<[u64; 2], ()>]) -> Result<(), CacheError> {
        Ok(())
    }

    fn put(&self, _: &[Put<'_>]) -> Result<(), CacheError> {
        Ok(())
    }

    fn delete(&self, _: &[u64; 2]) -> Result<(), CacheError> {
        Ok(())
    }

    fn scatter(
        &self,
        _: &[u64; 2],
        chunk: &Vec<u8>,
        out: &mut &mut [u8],
    ) -> Result<(), CacheError> {
        out.copy_from_slice(chunk);
        Ok(())
    }

    fn scatter_absent(&self, _: &[u64; 2], _: &mut &mut [u8]) -> Result<(), CacheError> {
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

    fn footprint(&self, chunk: &Vec<u8>) -> Footprint {
        Footprint { used: chunk.len() as u64, allocated: chunk.capacity() as u64 }
    }
}

/// Prints the nanoseconds of one of `each` things that `work` does, the best of five.
fn measure(name: &str, each: usize, mut work: impl FnMut()) {
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
    scale(&cache, &dataset);
}

/// Prints how many times as many hits two threads have as one, in their best of five rounds.
fn scale(cache: &ChunkCache<Plain>, dataset: &Dataset<Plain>) {
    let run = |threads: u64| {
        let hit = |thread: u64| {
            let mut out = vec![0; CHUNK];
            for round in 0..200_000 {
                let key = [6, 32 * thread + round % 32];
                cache.read(dataset, [(key, &mut out[..])]).expect("plain reads work");
            }
        };
        let start = Instant::now();
        std::thread::scope(|scope| {
            (0..threads).for_each(|thread| drop(scope.spawn(move || hit(thread))));
        });
        200_000.0 * threads as f64 / start.elapsed().as_secs_f64()
    };
    let best = |threads| (0..5).map(|_| run(threads)).fold(0.0, f64::max);
    let (one, two) = (best(1), best(2));
    println!("{:45} {:8.2} times", "hits of two threads, of one", two / one);
}
