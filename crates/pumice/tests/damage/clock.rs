//! How long the current thread has computed, pauses left out: other programs may have the machine.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The time that this thread has computed; where the system does not tell, that of the clock.
pub(crate) fn computed() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|told| told.split(' ').next()?.parse().ok());
    let clock = || START.get_or_init(Instant::now).elapsed();
    nanoseconds.map_or_else(clock, Duration::from_nanos)
}

#[test]
fn only_computing_counts() {
    let start = computed();
    std::thread::sleep(Duration::from_millis(50));
    let asleep = computed() - start;
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(20) {
        std::hint::spin_loop();
    }
    let busy = computed() - start;
    assert!(busy > asleep && asleep < Duration::from_millis(50), "{asleep:?} {busy:?}");
}
