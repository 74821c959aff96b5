//! A web server on loopback with one object, for tests: it knows ranges and ETags, and can be told to misbehave.
//! It ends with the test.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the server does instead of answering properly, once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mischief {
    /// Answers with a status.
    Status(u16),
    /// Sends so many bytes of the answer and hangs up.
    Cut(usize),
    /// Hangs up without an answer.
    HangUp,
    /// Nothing wrong.
    Proper,
}

#[derive(Default)]
struct State {
    object: Option<Arc<Vec<u8>>>,
    tag: Option<String>,
    mischief: VecDeque<Mischief>,
    always: Option<Mischief>,
    ignores_ranges: bool,
    ignores_conditions: bool,
    requests: Vec<Range<u64>>,
    delay: Duration,
    most_at_once: usize,
    at_once: usize,
}

/// The server.
pub(crate) struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    ended: Arc<AtomicBool>,
}

impl Server {
    /// A server with one object, whose ETag is `"1"`.
    pub(crate) fn new(object: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state =
            State { object: Some(object.into()), tag: Some("\"1\"".into()), ..State::default() };
        let (state, ended) = (Arc::new(Mutex::new(state)), Arc::new(AtomicBool::new(false)));
        let server = Self { address, state, ended };
        let (state, ended) = (server.state.clone(), server.ended.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let state = state.clone();
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/file.h5", self.address)
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }

    pub(crate) fn replace(&self, object: Vec<u8>, tag: Option<&str>) {
        self.set(|state| (state.object, state.tag) = (Some(object.into()), tag.map(Into::into)));
    }

    pub(crate) fn delete(&self) {
        self.set(|state| state.object = None);
    }

    /// What is done wrong next, one after another.
    pub(crate) fn next(&self, mischief: impl IntoIterator<Item = Mischief>) {
        self.set(|state| state.mischief.extend(mischief));
    }

    pub(crate) fn always(&self, mischief: Mischief) {
        self.set(|state| state.always = Some(mischief));
    }

    pub(crate) fn ignore_ranges(&self) {
        self.set(|state| state.ignores_ranges = true);
    }

    pub(crate) fn ignore_conditions(&self) {
        self.set(|state| state.ignores_conditions = true);
    }

    pub(crate) fn delay(&self, delay: Duration) {
        self.set(|state| state.delay = delay);
    }

    /// The requests since the last call.
    pub(crate) fn requests(&self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.state.lock().unwrap().requests)
    }

    /// How many requests were there at once at most.
    pub(crate) fn most_at_once(&self) -> usize {
        self.state.lock().unwrap().most_at_once
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

struct Request {
    range: Option<Range<u64>>,
    condition: Option<String>,
}

fn read_request(reader: &mut impl BufRead) -> Option<Request> {
    let mut request = Request { range: None, condition: None };
    let mut line = String::new();
    let mut any = false;
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let text = line.trim_end();
        if text.is_empty() && any {
            return Some(request);
        }
        any = true;
        let Some((name, value)) = text.split_once(": ") else { continue };
        match name.to_ascii_lowercase().as_str() {
            "range" => {
                let (start, end) = value.strip_prefix("bytes=")?.split_once('-')?;
                request.range = Some(start.parse().ok()?..end.parse::<u64>().ok()? + 1);
            }
            "if-match" => request.condition = Some(value.to_owned()),
            _ => {}
        }
    }
}

fn serve(stream: TcpStream, state: &Mutex<State>) {
    let _ = stream.set_nodelay(true);
    let Ok(mut writer) = stream.try_clone() else { return };
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader) {
        let (delay, mischief) = {
            let mut state = state.lock().unwrap();
            state.requests.extend(request.range.clone());
            state.at_once += 1;
            state.most_at_once = state.most_at_once.max(state.at_once);
            let next = state.mischief.pop_front().or(state.always);
            (state.delay, next.unwrap_or(Mischief::Proper))
        };
        std::thread::sleep(delay);
        let goes_on = answer(&mut writer, &request, mischief, state);
        state.lock().unwrap().at_once -= 1;
        if goes_on.is_none() {
            return;
        }
    }
}

/// Answers a request; `None` ends the connection.
fn answer(
    out: &mut TcpStream,
    request: &Request,
    mischief: Mischief,
    state: &Mutex<State>,
) -> Option<()> {
    let (object, tag, ranges, conditions) = {
        let state = state.lock().unwrap();
        (state.object.clone(), state.tag.clone(), !state.ignores_ranges, !state.ignores_conditions)
    };
    let status = |out: &mut TcpStream, code: u16| {
        let head = format!("HTTP/1.1 {code} x\r\nContent-Length: 0\r\n\r\n");
        out.write_all(head.as_bytes()).ok()
    };
    match mischief {
        Mischief::Status(code) => return status(out, code),
        Mischief::HangUp => return None,
        Mischief::Cut(_) | Mischief::Proper => {}
    }
    let Some(object) = object else { return status(out, 404) };
    if conditions && request.condition.is_some() && request.condition != tag {
        return status(out, 412);
    }
    let length = object.len() as u64;
    let range = request.range.clone().filter(|_| ranges);
    let part = range.clone().unwrap_or(0..length);
    if part.start >= length {
        return status(out, 416);
    }
    let part = part.start..part.end.min(length);
    let mut head = format!("Content-Length: {}\r\n", part.end - part.start);
    if let Some(tag) = tag {
        head += &format!("ETag: {tag}\r\n");
    }
    let first = match range {
        Some(_) => {
            head += &format!("Content-Range: bytes {}-{}/{length}\r\n", part.start, part.end - 1);
            "HTTP/1.1 206 Partial Content"
        }
        None => "HTTP/1.1 200 OK",
    };
    let bytes = &object[part.start as usize..part.end as usize];
    out.write_all(format!("{first}\r\n{head}\r\n").as_bytes()).ok()?;
    if let Mischief::Cut(after) = mischief {
        let _ = out.write_all(&bytes[..after.min(bytes.len())]);
        return None;
    }
    out.write_all(bytes).ok()
}
