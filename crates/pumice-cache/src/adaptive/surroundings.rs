//! What the cache must know of the machine: the time, and how much memory is left.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How much memory is used, of how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes in use that cannot be had back by asking.
    pub used: u64,
    /// Bytes that may be used.
    pub limit: u64,
}

impl Memory {
    /// Whether nine tenths are used.
    pub(crate) fn tight(&self) -> bool {
        self.used >= self.limit - self.limit / 10
    }

    fn comfortable(&self) -> u64 {
        self.limit - self.limit / 5
    }

    /// The bytes used beyond eight tenths.
    pub(crate) fn excess(&self) -> u64 {
        self.used.saturating_sub(self.comfortable())
    }

    /// The bytes left below eight tenths.
    pub(crate) fn room(&self) -> u64 {
        self.comfortable().saturating_sub(self.used)
    }
}

/// The time and the memory. Tests bring their own.
pub trait Surroundings: Send + Sync + fmt::Debug {
    /// The time since some moment in the past.
    fn now(&self) -> Duration;

    /// The memory of the process, or of the machine; `None` if that cannot be told.
    fn memory(&self) -> Option<Memory>;

    /// How long to wait between two looks at the time and the memory while no request comes.
    fn patience(&self) -> Duration {
        Duration::from_secs(5)
    }
}

/// The system's clock, and the memory that the control group (version 1 or 2) or else the machine
/// has for the process.
///
/// Memory that only holds files which can be read again does not count as used. To ask takes a
/// tenth of a millisecond, so an answer counts for a tenth of a second.
///
/// ```
/// use pumice_cache::{Surroundings, System};
/// let system = System::new();
/// assert!(system.now() <= system.now());
/// ```
#[derive(Debug)]
pub struct System {
    start: Instant,
    root: PathBuf,
    /// The last answer, and when it was had.
    last: Mutex<Option<(Instant, Option<Memory>)>>,
}

/// For so long an answer counts.
const FRESH: Duration = Duration::from_millis(100);

impl System {
    /// The machine that this runs on.
    pub fn new() -> Self {
        System { start: Instant::now(), root: PathBuf::from("/"), last: Mutex::new(None) }
    }

    /// The bytes of addresses that the process may use, if there is a limit (`ulimit -v`).
    ///
    /// ```
    /// assert!(pumice_cache::System::new().address_space().is_none_or(|bytes| bytes > 0));
    /// ```
    pub fn address_space(&self) -> Option<u64> {
        let limits = self.read("proc/self/limits")?;
        let limit = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
        limit.split_whitespace().next()?.parse().ok()
    }

    fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.read(path)?.trim().parse().ok()
    }

    /// The tightest of the groups that the process is in. A group without a limit has none.
    fn group_memory(&self) -> Option<Memory> {
        let groups = self.read("proc/self/cgroup")?;
        groups.lines().filter_map(|line| self.line_memory(line)).min_by_key(Memory::room)
    }

    /// What a line "number:controllers:/path" says, and the groups above.
    fn line_memory(&self, line: &str) -> Option<Memory> {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let (base, files) = match controllers {
            "" => ("sys/fs/cgroup", VERSION_2),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", VERSION_1)
            }
            _ => return None,
        };
        let path = Path::new(path.trim_start_matches('/'));
        let folders = path.ancestors().map(|above| Path::new(base).join(above));
        folders.filter_map(|folder| self.folder_memory(&folder, files)).min_by_key(Memory::room)
    }

    fn folder_memory(&self, folder: &Path, files: Files) -> Option<Memory> {
        let limit = self.number(folder.join(files.limit))?;
        let used = self.number(folder.join(files.used))?;
        let statistics = self.read(folder.join("memory.stat")).unwrap_or_default();
        let idle = field(&statistics, files.inactive).unwrap_or(0);
        // A limit that no machine has means none.
        (limit < 1 << 60).then_some(Memory { used: used.saturating_sub(idle), limit })
    }

    fn machine_memory(&self) -> Option<Memory> {
        let text = self.read("proc/meminfo")?;
        let total = field(&text, "MemTotal:")?.saturating_mul(1024);
        let available = field(&text, "MemAvailable:")?.saturating_mul(1024);
        Some(Memory { used: total.saturating_sub(available), limit: total })
    }
}

impl Default for System {
    fn default() -> Self {
        System::new()
    }
}

impl Surroundings for System {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn memory(&self) -> Option<Memory> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, memory)) = last.filter(|(when, _)| when.elapsed() < FRESH) {
            return memory;
        }
        let both = [self.group_memory(), self.machine_memory()];
        let memory = both.into_iter().flatten().min_by_key(Memory::room);
        *last = Some((Instant::now(), memory));
        memory
    }
}

/// Where a version of control groups says what.
#[derive(Clone, Copy)]
struct Files {
    limit: &'static str,
    used: &'static str,
    inactive: &'static str,
}

const VERSION_1: Files = Files {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    inactive: "total_inactive_file",
};
const VERSION_2: Files =
    Files { limit: "memory.max", used: "memory.current", inactive: "inactive_file" };

/// The number behind a name, in lines of names and numbers.
fn field(text: &str, name: &str) -> Option<u64> {
    let mut fields = text.lines().map(str::split_whitespace);
    fields.find_map(|mut words| (words.next() == Some(name)).then(|| words.next()?.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine in a folder.
    fn machine(name: &str, files: &[(&str, &str)]) -> System {
        let root = std::env::temp_dir().join(format!("pumice-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        System { root, ..System::new() }
    }

    const MEMINFO: (&str, &str) =
        ("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable:  400 kB\n");

    #[test]
    fn the_tightest_group_of_version_2_counts() {
        let system = machine(
            "v2",
            &[
                MEMINFO,
                ("proc/self/cgroup", "0::/a/b\n"),
                ("sys/fs/cgroup/a/b/memory.max", "max\n"),
                ("sys/fs/cgroup/a/b/memory.current", "5000\n"),
                ("sys/fs/cgroup/a/memory.max", "100000\n"),
                ("sys/fs/cgroup/a/memory.current", "70000\n"),
                ("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 20000\n"),
            ],
        );
        assert_eq!(system.memory(), Some(Memory { used: 50_000, limit: 100_000 }));
        fs::remove_dir_all(system.root).unwrap();
    }

    #[test]
    fn version_1_is_understood_and_no_limit_is_none() {
        let system = machine(
            "v1",
            &[
                MEMINFO,
                ("proc/self/cgroup", "5:cpu,memory:/x\n3:pids:/x\n"),
                ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712"),
                ("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "1"),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "4000"),
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", "3000"),
            ],
        );
        assert_eq!(system.memory(), Some(Memory { used: 3000, limit: 4000 }));
        fs::remove_dir_all(system.root).unwrap();
    }

    #[test]
    fn the_limit_of_addresses_is_the_one_that_counts_now() {
        let lines = |limit: &str| {
            format!("Limit   Soft Limit  Hard Limit  Units\nMax address space  {limit}  bytes\n")
        };
        for (limit, found) in [("163840000 unlimited", Some(163_840_000)), ("unlimited 5", None)] {
            let system = machine("limits", &[("proc/self/limits", &lines(limit))]);
            assert_eq!(system.address_space(), found);
            fs::remove_dir_all(&system.root).unwrap();
        }
    }

    #[test]
    fn without_groups_the_machine_counts_and_without_that_nothing() {
        let system = machine("none", &[MEMINFO]);
        assert_eq!(system.memory(), Some(Memory { used: 600 << 10, limit: 1000 << 10 }));
        fs::remove_dir_all(&system.root).unwrap();
        assert!(system.memory().is_some(), "an answer counts for a while");
        assert_eq!(System { root: system.root, ..System::new() }.memory(), None);
    }

    #[test]
    fn memory_is_tight_from_nine_tenths_on() {
        let memory = |used| Memory { used, limit: 1000 };
        assert!(!memory(899).tight() && memory(900).tight());
        assert_eq!((memory(950).excess(), memory(950).room()), (150, 0));
        assert_eq!((memory(700).excess(), memory(700).room()), (0, 100));
    }
}
