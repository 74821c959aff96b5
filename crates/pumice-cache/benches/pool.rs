//! What it costs to share a call: `cargo bench -p pumice-cache --bench pool`, or, of tasks of so many
//! microseconds alone, `... -- 200`.
//!
//! Tasks that only look at the clock, by the calling thread alone, by threads that are made for each call,
//! and by a pool. The best and the median of many calls, in microseconds.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pumice_cache::{Executor, Inline, Pool};

const ROUNDS: usize = 2000;

/// Threads that are made for each call.
struct Made(usize);

impl Executor for Made {
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                match next.fetch_add(1, Ordering::Relaxed) {
                    index if index < count => task(index),
                    _ => return,
                }
            }
        };
        std::thread::scope(|scope| {
            (1..self.0.min(count)).for_each(|_| drop(scope.spawn(work)));
            work();
        });
    }

    fn threads(&self) -> usize {
        self.0
    }
}

fn busy(micros: u64) {
    let (start, length) = (Instant::now(), Duration::from_micros(micros));
    while start.elapsed() < length {
        std::hint::spin_loop();
    }
}

/// The best and the median time of a call of so many tasks; `pause` microseconds pass between calls.
fn measure(executor: &dyn Executor, count: usize, micros: u64, pause: u64) -> (f64, f64) {
    let call = |_| {
        std::thread::sleep(Duration::from_micros(pause));
        let start = Instant::now();
        executor.run(count, &|_| busy(black_box(micros)));
        start.elapsed().as_secs_f64() * 1e6
    };
    let mut times: Vec<f64> = (0..ROUNDS).map(call).collect();
    times.sort_by(f64::total_cmp);
    (times[0], times[times.len() / 2])
}

fn main() {
    let pool = Pool::with_available_threads();
    let made = Made(pool.threads());
    println!("{} threads", pool.threads());
    println!("tasks  each  pause   {:^17} {:^17} {:^17}", "alone", "made", "pool");
    let wanted: Vec<u64> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    for (count, micros) in [(2, 1), (8, 1), (2, 20), (8, 20), (2, 200), (8, 200)] {
        if !wanted.is_empty() && !wanted.contains(&micros) {
            continue;
        }
        for pause in [0, 200] {
            print!("{count:5} {micros:5} {pause:6}  ");
            for executor in [&Inline as &dyn Executor, &made, &pool] {
                let (best, median) = measure(executor, count, micros, pause);
                print!(" {best:8.1} {median:8.1}");
            }
            println!();
        }
    }
}
