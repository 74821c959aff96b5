//! Fetched ranges in a folder, for this process and others, now and later.
//!
//! A range is a file of its own, named by the hash of address, state (ETag) and range, so that a replaced object is
//! never served. A file is written under another name and then renamed, so that no process sees half of one, and its
//! content has a checksum: what is damaged is removed and fetched anew. The folder may be removed at any time.
//!
//! Failures to write are not told: what is not kept is fetched again.

use crate::client::Identity;
use crate::fault::Fault;
use crate::options::Disk;
use crate::statistics::{Counts, add};
use ring::digest::{Context, SHA256};
use std::fs::{self, File};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// The beginning of each file.
const MAGIC: &[u8; 16] = b"pumice-remote 1\n";
const CHECKSUM: usize = 32;
const HEAD: usize = MAGIC.len() + CHECKSUM;
const ENDING: &str = "range";
/// A partial file of this age was left by a process that ended.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The ranges of one object in a folder.
#[derive(Debug)]
pub(crate) struct Tier {
    folder: PathBuf,
    most: u64,
    /// Address and state of the object.
    object: String,
    /// Bytes in the folder, as far as this process knows.
    held: AtomicU64,
    counts: Arc<Counts>,
}

impl Tier {
    /// The ranges of an object; none if its state cannot be told.
    pub(crate) fn open(
        disk: &Disk,
        name: &str,
        identity: &Identity,
        counts: Arc<Counts>,
    ) -> Result<Option<Self>, Fault> {
        let Some(state) = identity.text() else { return Ok(None) };
        let folder = disk.folder.clone();
        fs::create_dir_all(&folder).map_err(|error| {
            let what =
                format!("the folder {} for blocks cannot be made: {error}", folder.display());
            Fault::new(error.kind(), what)
        })?;
        let object = format!("{name}\n{state}");
        let tier = Self { folder, most: disk.most, object, held: AtomicU64::new(0), counts };
        tier.make_room(0);
        Ok(Some(tier))
    }

    fn path(&self, range: &Range<u64>) -> PathBuf {
        let mut hash = Context::new(&SHA256);
        hash.update(format!("{}\n{}-{}", self.object, range.start, range.end).as_bytes());
        let digits = hash
            .finish()
            .as_ref()
            .iter()
            .take(20)
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>();
        self.folder.join(format!("{digits}.{ENDING}"))
    }

    /// The checksum of the bytes of a range, which is another for other ranges.
    fn checksum(&self, range: &Range<u64>, bytes: &[u8]) -> [u8; CHECKSUM] {
        let mut hash = Context::new(&SHA256);
        hash.update(format!("{}\n{}-{}\n", self.object, range.start, range.end).as_bytes());
        hash.update(bytes);
        let mut sum = [0; CHECKSUM];
        sum.copy_from_slice(hash.finish().as_ref());
        sum
    }

    /// Whether there is a file for a range; its content may turn out to be damaged.
    pub(crate) fn has(&self, range: &Range<u64>) -> bool {
        self.path(range).is_file()
    }

    /// The bytes of a range.
    pub(crate) fn get(&self, range: &Range<u64>) -> Option<Vec<u8>> {
        let path = self.path(range);
        let file = File::open(&path).ok()?;
        let length = HEAD as u64 + (range.end - range.start);
        let mut bytes = None;
        if file.metadata().ok()?.len() == length {
            bytes = fs::read(&path).ok();
        }
        let sound = bytes.filter(|bytes| {
            bytes.len() as u64 == length
                && bytes.starts_with(MAGIC)
                && bytes[MAGIC.len()..HEAD] == self.checksum(range, &bytes[HEAD..])
        });
        match sound {
            Some(mut bytes) => {
                // Used just now; if that cannot be noted, it leaves sooner.
                let _ = file.set_modified(SystemTime::now());
                add(&self.counts.disk_hits, 1);
                bytes.drain(..HEAD);
                Some(bytes)
            }
            None => {
                let _ = fs::remove_file(&path);
                None
            }
        }
    }

    /// Keeps the bytes of a range, if there is room for them.
    pub(crate) fn put(&self, range: &Range<u64>, bytes: &[u8]) {
        let length = (HEAD + bytes.len()) as u64;
        if length > self.most / 4 || bytes.len() as u64 != range.end - range.start {
            return;
        }
        let path = self.path(range);
        if self.held.fetch_add(length, Ordering::Relaxed) + length > self.most {
            self.make_room(length);
        }
        let _ = self.write(&path, range, bytes);
    }

    fn write(&self, path: &Path, range: &Range<u64>, bytes: &[u8]) -> std::io::Result<()> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let partial = path.with_extension(format!("{}-{number}.partial", std::process::id()));
        let written = File::create_new(&partial).and_then(|mut file| {
            file.write_all(MAGIC)?;
            file.write_all(&self.checksum(range, bytes))?;
            file.write_all(bytes)
        });
        let done = written.and_then(|()| fs::rename(&partial, path));
        if done.is_err() {
            let _ = fs::remove_file(&partial);
        }
        done
    }

    /// Removes the files that were not used for longest, until nine tenths of the limit hold what is there and what is
    /// to come. Other processes may do the same: a file that is gone is no failure.
    fn make_room(&self, wanted: u64) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let (mut files, mut total) = (Vec::new(), wanted);
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(about) = entry.metadata() else { continue };
            let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            match path.extension().and_then(|ending| ending.to_str()) {
                Some(ENDING) => {
                    total += about.len();
                    files.push((used, about.len(), path));
                }
                Some("partial") if used.elapsed().is_ok_and(|age| age > ABANDONED) => {
                    let _ = fs::remove_file(path);
                }
                _ => {}
            }
        }
        if total > self.most {
            files.sort();
            for (_, length, path) in files {
                if total <= self.most / 10 * 9 {
                    break;
                }
                let _ = fs::remove_file(path);
                total = total.saturating_sub(length);
            }
        }
        self.held.store(total, Ordering::Relaxed);
    }
}
