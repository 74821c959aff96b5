//! One object: its identity, and ranges of it.
//!
//! The first answer says how long the object is and which state of it this is (its ETag, or else the time of
//! its last change). Every later request asks for that state, and every later answer is checked to be of it.
//! A request that fails for a reason that may pass is repeated, from the first byte that is missing.

use crate::address::{Address, Service};
use crate::fault::Fault;
use crate::options::Options;
use crate::statistics::{Counts, add};
use crate::wire::Trace;
use futures_util::StreamExt;
use object_store::client::HttpError;
use object_store::{GetOptions, GetRange, GetResult, ObjectMeta};
use std::error::Error;
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// The longest pause between two attempts, and the longest that a server may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_WAIT: u64 = 30;

/// How often a server that has never answered is asked again.
const UNREACHED: u32 = 2;

/// Which state of an object is read.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) length: u64,
    pub(crate) tag: Option<String>,
    pub(crate) modified: i64,
}

impl Identity {
    fn of(meta: &ObjectMeta) -> Self {
        Self {
            length: meta.size,
            tag: meta.e_tag.clone(),
            modified: meta.last_modified.timestamp(),
        }
    }

    /// The ETag as a condition: a weak one never holds.
    fn condition(&self) -> Option<String> {
        self.tag.clone().filter(|tag| !tag.starts_with("W/"))
    }

    /// What is different in a later answer.
    fn differs(&self, now: &Self) -> Option<String> {
        if self.tag != now.tag {
            let text = |tag: &Option<String>| tag.clone().unwrap_or_else(|| "none".into());
            return Some(format!("its ETag was {} and is {}", text(&self.tag), text(&now.tag)));
        }
        if self.length != now.length {
            return Some(format!("it had {} bytes and has {}", self.length, now.length));
        }
        let changed = self.tag.is_none() && self.modified != now.modified;
        changed.then(|| "it has another time of change".to_owned())
    }

    /// A text that is another for each state, if the server says so much of it.
    pub(crate) fn text(&self) -> Option<String> {
        match (&self.tag, self.modified) {
            (Some(tag), _) => Some(format!("{tag} {}", self.length)),
            (None, 0) => None,
            (None, modified) => Some(format!("@{modified} {}", self.length)),
        }
    }
}

/// A failed attempt.
enum Failure {
    Final(Fault),
    /// Worth repeating, after so many seconds if the server said so.
    Passing(Fault, Option<u64>),
}

/// Fetches ranges of one object.
#[derive(Debug)]
pub(crate) struct Client {
    address: Address,
    identity: OnceLock<Identity>,
    /// How many requests may be under way.
    flights: Semaphore,
    retries: u32,
    backoff: Duration,
    counts: Arc<Counts>,
}

impl Client {
    pub(crate) fn new(address: Address, options: &Options, counts: Arc<Counts>) -> Self {
        let flights = Semaphore::new(options.requests);
        let (retries, backoff) = (options.retries, options.backoff);
        Self { address, identity: OnceLock::new(), flights, retries, backoff, counts }
    }

    /// The address without secrets.
    pub(crate) fn name(&self) -> &str {
        &self.address.name
    }

    /// What the first answer said; before it, nothing.
    pub(crate) fn identity(&self) -> Option<&Identity> {
        self.identity.get()
    }

    /// The bytes of a range. The first call asks for a range from 0 on and may get fewer.
    pub(crate) async fn fetch(&self, range: Range<u64>) -> Result<Vec<u8>, Fault> {
        let flight = self.flights.acquire().await;
        let _flight = flight.map_err(|_| Fault::internal("no request can be sent any more"))?;
        let mut bytes = Vec::new();
        let began = Instant::now();
        let mut attempt = 0;
        loop {
            let failure = match self.attempt(&range, &mut bytes).await {
                Ok(()) => return Ok(bytes),
                Err(failure) => failure,
            };
            let (fault, wait) = match failure {
                Failure::Final(fault) => return Err(fault),
                Failure::Passing(fault, wait) => (fault, wait),
            };
            // A server that was never reached may have another name.
            let unknown = self.identity().is_none() && fault.kind() == ErrorKind::NotConnected;
            if attempt >= if unknown { self.retries.min(UNREACHED) } else { self.retries } {
                let (name, seconds) = (self.name(), began.elapsed().as_secs_f32());
                return Err(Fault::new(
                    ErrorKind::TimedOut,
                    format!(
                        "{name}: {fault}; gave up after {} attempts in {seconds:.1} s",
                        attempt + 1
                    ),
                ));
            }
            tokio::time::sleep(self.pause(attempt, wait, &range)).await;
            attempt += 1;
            add(&self.counts.retries, 1);
        }
    }

    /// The pause before the next attempt: longer each time, and not the same for all that wait.
    fn pause(&self, attempt: u32, wait: Option<u64>, range: &Range<u64>) -> Duration {
        if let Some(seconds) = wait {
            return Duration::from_secs(seconds.min(LONGEST_WAIT));
        }
        let longest = self.backoff.saturating_mul(1 << attempt.min(16)).min(LONGEST_PAUSE);
        // Requests of other ranges come at other times: from one half of the pause to all of it.
        let spread = range.start.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
        longest / 2 + (longest / 512).saturating_mul(spread as u32)
    }

    /// Asks once for what is missing of a range, and adds what comes.
    async fn attempt(&self, range: &Range<u64>, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        let start = range.start + bytes.len() as u64;
        let trace = Arc::<Trace>::default();
        let mut options = GetOptions {
            range: Some(GetRange::Bounded(start..range.end)),
            ..GetOptions::default()
        };
        options.if_match = self.identity().and_then(Identity::condition);
        options.extensions.insert(trace.clone());
        let answer = self.address.objects.get_opts(&self.address.path, options).await;
        let answer = answer.map_err(|error| self.failure(&error, &trace, range))?;
        self.check(&answer.meta)?;
        let end = answer.range.end;
        if self.identity.get().is_some_and(|known| range.end <= known.length) && end != range.end {
            let what = format!(
                "{}: asked for bytes up to {}, got them up to {end}",
                self.name(),
                range.end
            );
            return Err(Failure::Final(Fault::new(ErrorKind::InvalidData, what)));
        }
        self.receive(answer, start..end, bytes).await
    }

    /// Takes the bytes of an answer.
    async fn receive(
        &self,
        answer: GetResult,
        range: Range<u64>,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let expected = (range.end - range.start) as usize;
        bytes.try_reserve_exact(expected).map_err(|_| {
            Failure::Final(Fault::new(ErrorKind::OutOfMemory, "not enough memory for an answer"))
        })?;
        let full = bytes.len() + expected;
        let mut stream = answer.into_stream();
        let mut broken = None;
        while let Some(piece) = stream.next().await {
            match piece {
                Ok(piece) => {
                    add(&self.counts.bytes, piece.len() as u64);
                    let room = full - bytes.len();
                    bytes.extend_from_slice(&piece[..piece.len().min(room)]);
                }
                Err(error) => broken = Some(root(&error)),
            }
        }
        if bytes.len() == full {
            return Ok(());
        }
        let (missing, why) =
            (full - bytes.len(), broken.map(|why| format!(" ({why})")).unwrap_or_default());
        let what = format!("the answer was cut: {missing} of {expected} bytes are missing{why}");
        Err(Failure::Passing(Fault::new(ErrorKind::UnexpectedEof, what), None))
    }

    /// Fails if an answer is of another state of the object than the first one.
    fn check(&self, meta: &ObjectMeta) -> Result<(), Failure> {
        let now = Identity::of(meta);
        let known = self.identity.get_or_init(|| now.clone());
        match known.differs(&now) {
            Some(what) => Err(Failure::Final(self.replaced(&what))),
            None => Ok(()),
        }
    }

    fn replaced(&self, what: &str) -> Fault {
        Fault::replaced(format!("{} was replaced or changed ({what})", self.name()))
    }

    /// What a failed request means.
    fn failure(&self, error: &object_store::Error, trace: &Trace, range: &Range<u64>) -> Failure {
        let name = self.name();
        let is_http = causes(error).any(|cause| cause.is::<HttpError>());
        let last = |kind, sentence: String| Failure::Final(Fault::new(kind, sentence));
        let Some(status) = trace.status() else {
            if !trace.was_sent() && self.address.service != Service::Http {
                let what = format!(
                    "{name}: no credentials ({}): {}",
                    root(error),
                    self.address.service.credentials()
                );
                return last(ErrorKind::PermissionDenied, what);
            }
            let what = format!("no answer ({})", root(error));
            return match is_http {
                true => Failure::Passing(Fault::new(ErrorKind::NotConnected, what), None),
                false => last(ErrorKind::Other, format!("{name}: {what}")),
            };
        };
        match status {
            200 => last(
                ErrorKind::Unsupported,
                format!(
                    "{name}: the server sends the whole object where a range is asked for, so that it cannot be \
                         read in parts: download it, or put it on a server that knows HTTP ranges"
                ),
            ),
            404 | 410 if self.identity().is_some() => {
                Failure::Final(self.replaced("it was deleted"))
            }
            404 | 410 => last(
                ErrorKind::NotFound,
                format!(
                    "{name}: there is no such object ({status}{}); check the names of bucket and object",
                    code(error)
                ),
            ),
            401 | 403 => last(
                ErrorKind::PermissionDenied,
                format!(
                    "{name}: access is refused ({status}{}): {}",
                    code(error),
                    self.address.service.credentials()
                ),
            ),
            412 => Failure::Final(self.replaced("it has another ETag now")),
            416 if self.identity().is_some() => Failure::Final(self.replaced("it is shorter now")),
            416 if range.start == 0 => {
                last(ErrorKind::InvalidData, format!("{name}: the object is empty"))
            }
            408 | 429 | 500 | 502..=504 => {
                let what = format!("the server answers {status}{}", code(error));
                Failure::Passing(Fault::new(ErrorKind::TimedOut, what), trace.wait())
            }
            301 | 307 | 308 | 400 => last(
                ErrorKind::InvalidInput,
                format!(
                    "{name}: the server answers {status}{}: check the region, the endpoint and the name of the \
                         bucket",
                    code(error)
                ),
            ),
            206 => last(
                ErrorKind::InvalidData,
                format!("{name}: the answer is wrong: {}", root(error)),
            ),
            _ => last(
                ErrorKind::Other,
                format!("{name}: the server answers {status}{}", code(error)),
            ),
        }
    }
}

/// What a failure of another request than a range means.
pub(crate) fn explain(address: &Address, error: &object_store::Error) -> Fault {
    use object_store::Error;
    let (name, code) = (&address.name, code(error));
    match error {
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            let what =
                format!("{name}: access is refused{code}: {}", address.service.credentials());
            Fault::new(ErrorKind::PermissionDenied, what)
        }
        Error::NotFound { .. } => {
            Fault::new(ErrorKind::NotFound, format!("{name}: there is no such bucket{code}"))
        }
        _ => Fault::new(ErrorKind::Other, format!("{name}: {}{code}", root(error))),
    }
}

/// An error and its causes.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// The last cause of an error.
fn root(error: &(dyn Error + 'static)) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

/// The service's own word for a refusal, which stands in its answer.
fn code(error: &object_store::Error) -> String {
    let text = error.to_string();
    let word = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    match word {
        Some((word, _)) if word.len() <= 64 => format!(" {word}"),
        _ => String::new(),
    }
}
