//! What a program asks of the connector: the text behind its name in `HDF5_VOL_CONNECTOR`, such as
//! `pumice cache=256M;threads=2;durability=power`, and the access lists that carry it.
//!
//! libhdf5 holds settings by pointers, and copies, compares and frees them by the callbacks below. Files whose settings
//! name the same cache and threads share a cache; files without such settings share the one of the process.

use crate::abi::*;
use crate::fault::{Fault, Result, checked, done};
use crate::handle::text;
use crate::library::{Api, c_text};
use crate::slots;
use pumice::{Context, Durability};
use pumice_engine::file::Cache;
use std::collections::HashSet;
use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::str::FromStr;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// What the text says; nothing of what it does not mention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Settings {
    /// Bytes of decoded chunks that the cache keeps.
    cache: Option<u64>,
    /// Threads that fetch, decode and encode.
    threads: Option<usize>,
    /// What a commit survives, by its place in [`LEVELS`].
    durability: Option<usize>,
}

const LEVELS: [(&str, Durability); 3] =
    [("none", Durability::None), ("process", Durability::Process), ("power", Durability::Power)];

/// More threads than this are a mistake.
const MOST_THREADS: usize = 1024;

impl FromStr for Settings {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let mut settings = Self::default();
        let parts =
            text.split(|between: char| matches!(between, ';' | ',') || between.is_whitespace());
        for part in parts.filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let wrong = |wanted: &str| Err(format!("\"{part}\": {name} is {wanted}"));
            match name {
                "cache" => match bytes(value) {
                    None => return wrong("a number of bytes, as in cache=256M (K, M, G, T)"),
                    found => settings.cache = found,
                },
                "threads" => {
                    match value.parse().ok().filter(|count| (1..=MOST_THREADS).contains(count)) {
                        None => return wrong("a number from 1 to 1024"),
                        found => settings.threads = found,
                    }
                }
                "durability" => match LEVELS.iter().position(|level| level.0 == value) {
                    None => return wrong("none, process or power"),
                    found => settings.durability = found,
                },
                _ => {
                    return Err(format!(
                        "\"{part}\" is not known; settings are cache=256M, threads=2 and durability=power, \
                         separated by ;"
                    ));
                }
            }
        }
        Ok(settings)
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cache = self.cache.map(|bytes| format!("cache={bytes}"));
        let threads = self.threads.map(|count| format!("threads={count}"));
        let durability = self.durability.map(|level| format!("durability={}", LEVELS[level].0));
        let parts: Vec<_> = [cache, threads, durability].into_iter().flatten().collect();
        out.write_str(&parts.join(";"))
    }
}

/// `256M` and the like.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match &*text[digits.len()..].to_ascii_lowercase() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

impl Settings {
    /// What a file access list carries.
    pub(crate) fn of(api: &Api, fapl: Hid) -> Result<Self> {
        if fapl == DEFAULT {
            return Ok(Self::default());
        }
        let mut info = std::ptr::null_mut();
        // SAFETY: a plain call with a list that is open; it gives null, or a copy that is ours.
        let got = api.quietly(|| unsafe { (api.H5Pget_vol_info)(fapl, &mut info) });
        checked(got, "H5Pget_vol_info")?;
        // Of another connector's list there is nothing that could be known.
        if !live().contains(&(info as usize)) {
            return Ok(Self::default());
        }
        // SAFETY: it is one of ours, and was made for this call.
        let settings = unsafe { *info.cast::<Self>() };
        // SAFETY: as above; nobody else has it.
        unsafe { free(info) };
        Ok(settings)
    }

    /// What commits survive, if that is said.
    pub(crate) fn durability(&self) -> Option<Durability> {
        self.durability.map(|level| LEVELS[level].1)
    }

    /// The cache of files with these settings.
    pub(crate) fn cache(&self) -> Result<Cache> {
        type Known = (u32, Settings, Context);
        static CONTEXTS: Mutex<Vec<Known>> = Mutex::new(Vec::new());
        let key = Self { durability: None, ..*self };
        if key == Self::default() {
            return Ok(Context::global().cache());
        }
        let process = std::process::id();
        let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        if contexts.iter().any(|known| known.0 != process) {
            // After a fork the parent's are left as they are: their threads are not here.
            std::mem::forget(std::mem::take(&mut *contexts));
        }
        if let Some((.., context)) = contexts.iter().find(|known| known.1 == key) {
            return Ok(context.cache());
        }
        let mut builder = Context::builder();
        if let Some(bytes) = self.cache {
            builder = builder.cache_bytes(bytes);
        }
        if let Some(threads) = self.threads {
            builder = builder.threads(threads);
            if threads == 1 {
                builder = builder.background(0);
            }
        }
        let context = builder.build()?;
        contexts.push((process, key, context.clone()));
        Ok(context.cache())
    }

    /// The cache of files that go through a driver of the program: without threads, and one for each file.
    pub(crate) fn cache_without_threads(&self) -> Result<Cache> {
        let builder = Context::builder().threads(0).background(0);
        let builder =
            self.cache.into_iter().fold(builder, |builder, bytes| builder.cache_bytes(bytes));
        Ok(builder.build()?.cache())
    }

    /// A pointer for libhdf5, which [`free`] takes back.
    pub(crate) fn give(self) -> *mut c_void {
        let pointer = Box::into_raw(Box::new(self)).cast::<c_void>();
        live().insert(pointer as usize);
        pointer
    }
}

/// Pointers that libhdf5 has.
fn live() -> MutexGuard<'static, HashSet<usize>> {
    static LIVE: LazyLock<Mutex<HashSet<usize>>> = LazyLock::new(Mutex::default);
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The callbacks for settings, with the size before them.
pub(crate) fn callbacks<const SLOT: usize>() -> [*const c_void; 5] {
    [
        copy as *const c_void,
        compare as *const c_void,
        free as *const c_void,
        to_text::<SLOT> as *const c_void,
        from_text::<SLOT> as *const c_void,
    ]
}

/// `copy`.
///
/// # Safety
/// All arguments are as libhdf5 gives them: a pointer of [`Settings::give`] that was not freed.
unsafe extern "C" fn copy(info: *const c_void) -> *mut c_void {
    // SAFETY: as above.
    let settings = unsafe { info.cast::<Settings>().as_ref() };
    settings.map_or(std::ptr::null_mut(), |settings| settings.give())
}

/// `cmp`.
///
/// # Safety
/// As [`copy`].
unsafe extern "C" fn compare(answer: *mut c_int, one: *const c_void, other: *const c_void) -> Herr {
    // SAFETY: as for `copy`, and a place for the answer.
    unsafe {
        let of =
            |info: *const c_void| info.cast::<Settings>().as_ref().copied().unwrap_or_default();
        *answer = of(one).cmp(&of(other)) as c_int;
    }
    OK
}

/// `free`.
///
/// # Safety
/// As [`copy`]; it is not used again.
pub(crate) unsafe extern "C" fn free(info: *mut c_void) -> Herr {
    if live().remove(&(info as usize)) {
        // SAFETY: it was given and not freed before.
        drop(unsafe { Box::from_raw(info.cast::<Settings>()) });
    }
    OK
}

/// `to_str`: memory that the program gives back to libhdf5.
///
/// # Safety
/// As [`copy`], and a place for the text.
unsafe extern "C" fn to_text<const SLOT: usize>(info: *const c_void, to: *mut *mut c_char) -> Herr {
    let Some(api) = slots::api(SLOT) else { return FAIL };
    done(api, c"info to string", || {
        // SAFETY: as for `copy`.
        let settings = unsafe { info.cast::<Settings>().as_ref() }.copied().unwrap_or_default();
        let text = c_text(&settings.to_string());
        let bytes = text.as_bytes_with_nul();
        // SAFETY: a plain call; the memory has room for the text.
        unsafe {
            let place = (api.H5allocate_memory)(bytes.len(), false).cast::<u8>();
            if place.is_null() {
                return Err(Fault::Library("H5allocate_memory"));
            }
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
            *to = place.cast();
        }
        Ok(())
    })
}

/// `from_str`.
///
/// # Safety
/// As [`copy`]: a text, and a place for the settings.
unsafe extern "C" fn from_text<const SLOT: usize>(
    given: *const c_char,
    to: *mut *mut c_void,
) -> Herr {
    let Some(api) = slots::api(SLOT) else { return FAIL };
    done(api, c"info from string", || {
        // SAFETY: as for `copy`.
        let settings = parse(unsafe { text(given)? })?;
        // SAFETY: as for `copy`.
        unsafe { *to = settings.give() };
        Ok(())
    })
}

/// Settings of a text.
pub(crate) fn parse(text: &str) -> Result<Settings> {
    text.parse().map_err(|what| Fault::Invalid(format!("the connector's settings: {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_shown() {
        let settings: Settings = "cache=256M;threads=2;durability=power".parse().unwrap();
        assert_eq!(settings.to_string(), "cache=268435456;threads=2;durability=power");
        assert_eq!(settings.to_string().parse(), Ok(settings));
        assert_eq!(settings.durability(), Some(Durability::Power));
        assert_eq!("".parse(), Ok(Settings::default()));
        assert_eq!(
            " threads=3, cache=1gib ".parse::<Settings>().unwrap().to_string(),
            "cache=1073741824;threads=3"
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("cache=much", "number of bytes"),
            ("cache=99999999999T", "number of bytes"),
            ("cache", "number of bytes"),
            ("threads=0", "1 to 1024"),
            ("durability=full", "none, process or power"),
            ("cash=1M", "\"cash=1M\" is not known"),
        ] {
            let error = text.parse::<Settings>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn files_with_the_same_settings_share_a_cache() {
        let one: Settings = "cache=1M;threads=1".parse().unwrap();
        let other: Settings = "threads=1;durability=none;cache=1024K".parse().unwrap();
        let (one, other) = (one.cache().unwrap(), other.cache().unwrap());
        assert!(one.is(&other) && !one.is(&Settings::default().cache().unwrap()));
    }
}
