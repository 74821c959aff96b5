//! Advisory locks on files, as libhdf5 takes them: `flock`, shared for reading, exclusive for
//! changing, never waiting.
//!
//! They keep programs apart that ask for them, and also two openings by one program. They do not
//! keep out programs that do not ask.

use rustix::fs::{FlockOperation, flock, major, minor};
use rustix::io::Errno;
use std::fs::File;
use std::io;

/// The environment variable that libhdf5 and its users set.
const VARIABLE: &str = "HDF5_USE_FILE_LOCKING";

/// Whether files are locked while they are open.
///
/// ```
/// use pumice_store::Locking;
/// assert_eq!(Locking::from_setting("FALSE"), Some(Locking::Off));
/// assert_eq!(Locking::from_setting("best_effort"), Some(Locking::BestEffort));
/// assert_eq!(Locking::from_setting("perhaps"), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Locking {
    /// Never.
    Off,
    /// If the file system can; the default.
    #[default]
    BestEffort,
    /// Always: opening fails on a file system that cannot lock.
    Required,
}

impl Locking {
    /// The value of `HDF5_USE_FILE_LOCKING`, or the default.
    pub fn from_environment() -> Self {
        let setting = std::env::var(VARIABLE).unwrap_or_default();
        Self::from_setting(&setting).unwrap_or_default()
    }

    /// The meaning of a value of `HDF5_USE_FILE_LOCKING`, in any case of letters.
    pub fn from_setting(setting: &str) -> Option<Self> {
        match setting.to_ascii_uppercase().as_str() {
            "TRUE" | "1" => Some(Self::Required),
            "FALSE" | "0" => Some(Self::Off),
            "BEST_EFFORT" => Some(Self::BestEffort),
            _ => None,
        }
    }

    /// Locks an open file, and returns whether it is locked; `WouldBlock` if another opening
    /// prevents it.
    pub(crate) fn lock(self, file: &File, exclusive: bool) -> io::Result<bool> {
        if self == Self::Off {
            return Ok(false);
        }
        let operation = match exclusive {
            true => FlockOperation::NonBlockingLockExclusive,
            false => FlockOperation::NonBlockingLockShared,
        };
        loop {
            match flock(file, operation) {
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => return Err(in_the_way(file, exclusive)),
                Err(Errno::NOSYS | Errno::OPNOTSUPP) if self == Self::BestEffort => {
                    return Ok(false);
                }
                answer => return answer.map(|()| true).map_err(io::Error::from),
            }
        }
    }
}

/// Gives up the lock on a file, if there is one.
pub(crate) fn unlock(file: &File) {
    // It fails only where locking does not work, and then there is no lock.
    let _ = flock(file, FlockOperation::Unlock);
}

fn in_the_way(file: &File, exclusive: bool) -> io::Error {
    let use_of_it = if exclusive { "open" } else { "open for writing" };
    let holder = match holder(file) {
        Some(name) => format!("{name} has it {use_of_it}"),
        None => format!("somebody has it {use_of_it}"),
    };
    let message = format!(
        "the file is locked: {holder}; close it there, or set {VARIABLE}=FALSE if nobody changes it"
    );
    io::Error::new(io::ErrorKind::WouldBlock, message)
}

/// The process that holds a lock on the file, if the system tells.
fn holder(file: &File) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let (metadata, locks) = (file.metadata().ok()?, std::fs::read_to_string("/proc/locks").ok()?);
    let process = holder_in(&locks, metadata.dev(), metadata.ino())?;
    if process == std::process::id() {
        return Some("this process".into());
    }
    let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    Some(format!("process {process} {}", name.trim()).trim().into())
}

/// The process that holds a lock on a file, by the system's list. Inodes of two devices may be
/// equal; if the file system does not tell the device of a file, no process is found.
fn holder_in(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let place = format!("{:02x}:{:02x}:{inode}", major(device), minor(device));
    let held = locks.lines().filter(|line| line.contains("FLOCK"));
    let mut fields = held.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = fields.find(|fields| fields.get(5).is_some_and(|other| *other == place))?;
    line.get(4)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::makedev;

    #[test]
    fn the_holder_of_a_lock_has_locked_this_file_and_not_one_of_another_device() {
        let locks = "\
            1: POSIX  ADVISORY  WRITE 5 08:01:77 0 EOF\n\
            2: FLOCK  ADVISORY  WRITE 6 00:2c:77 0 EOF\n\
            3: FLOCK  ADVISORY  WRITE 7 08:01:177 0 EOF\n\
            4: FLOCK  ADVISORY  READ  8 08:01:77 0 EOF\n";
        assert_eq!(holder_in(locks, makedev(8, 1), 77), Some(8));
        assert_eq!(holder_in(locks, makedev(0, 44), 77), Some(6));
        assert_eq!(holder_in(locks, makedev(8, 1), 177), Some(7));
        assert_eq!(holder_in(locks, makedev(8, 2), 77), None);
    }
}
