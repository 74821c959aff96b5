//! How long the current thread has computed, pauses left out: other programs may have the machine.

use std::cell::OnceCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

thread_local! {
    /// Where the system tells it of this thread, open as long as the thread lives: it is asked often.
    static TOLD: OnceCell<Option<File>> = const { OnceCell::new() };
}

/// The time that this thread has computed; where the system does not tell, that of the clock.
pub(crate) fn computed() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let nanoseconds = TOLD.with(|told| {
        let open = || File::open("/proc/thread-self/schedstat").ok();
        let mut text = [0; 80];
        let length = told.get_or_init(open).as_ref()?.read_at(&mut text, 0).ok()?;
        str::from_utf8(&text[..length]).ok()?.split(' ').next()?.parse().ok()
    });
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
