//! `pumice bench`: how fast the user's own file is read.
//!
//! Rows, columns and windows at random places, and all of the dataset once, with one thread and with
//! all; each with a cache of its own that starts empty.

use super::{Outcome, output};
use crate::cli::Bench;
use crate::driver;
use crate::formats::Blocks;
use crate::{locate, numbers, target};
use anyhow::{Result, ensure};
use pumice::{Context, Dataset, File, Selection};
use std::io::Write;
use std::time::{Duration, Instant};

pub(super) fn run(arguments: &Bench) -> Result<Outcome> {
    let mut out = output();
    let mut threads = vec![1];
    let all = arguments
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |count| count.get()));
    if all > 1 {
        threads.push(all);
    }
    let mut begun = false;
    for (number, threads) in threads.into_iter().enumerate() {
        let context = Context::builder().threads(threads).build()?;
        // One thread leaves a trace that is the same each time.
        if let Some(path) = arguments.trace.as_ref().filter(|_| number == 0) {
            context.start_trace(target::stream(path, &[&arguments.file.file], arguments.force)?)?;
        }
        let file = driver::open_with(File::options().context(&context), &arguments.file.file)?;
        let wanted =
            |dataset: &Dataset| !dataset.shape().is_empty() && !dataset.datatype().has_references();
        let name = arguments.file.object(arguments.dataset.as_deref());
        let dataset = locate::dataset(&file, name.as_deref(), "datasets", wanted)?;
        if !begun {
            head(&mut out, &dataset)?;
            begun = true;
        }
        for kind in [Kind::Row, Kind::Column, Kind::Window, Kind::Whole] {
            let limit = Duration::from_secs_f64(arguments.seconds);
            let Some(score) = measure(&dataset, kind, limit)? else { continue };
            score.print(&mut out, kind, threads)?;
        }
        out.flush()?;
        context.stop_trace()?;
    }
    Ok(Outcome::Complete)
}

fn head(out: &mut impl Write, dataset: &Dataset) -> Result<()> {
    let sparse = if dataset.is_sparse() { ", sparse" } else { "" };
    let (shape, size) = (dataset.shape(), dataset.datatype().size());
    ensure!(!shape.contains(&0), "{}: it has no cells", dataset.path());
    writeln!(
        out,
        "{}: {}, {size} bytes per element{sparse}",
        dataset.path(),
        numbers::shape(&shape)
    )?;
    let [what, threads, reads, each, rate] = ["read", "threads", "reads", "each", "rate"];
    writeln!(out, "{what:<10} {threads:>7} {reads:>9} {each:>12} {rate:>14}")?;
    Ok(())
}

/// The unit of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Row,
    Column,
    Window,
    Whole,
}

/// Cells of the largest piece that is read at once.
const PIECE: u64 = 1 << 22;
/// Cells along each axis of a window.
const SIDE: u64 = 256;

struct Score {
    reads: u64,
    cells: u64,
    bytes: u64,
    took: Duration,
}

impl Score {
    fn print(&self, out: &mut impl Write, kind: Kind, threads: usize) -> Result<()> {
        let seconds = self.took.as_secs_f64().max(1e-9);
        let each = self.took.as_secs_f64() / self.reads.max(1) as f64;
        let each = match each {
            each if each >= 1.0 => format!("{each:.2} s"),
            each if each >= 1e-3 => format!("{:.2} ms", each * 1e3),
            each => format!("{:.1} µs", each * 1e6),
        };
        let rate = numbers::bytes((self.bytes as f64 / seconds) as u64);
        let name = format!("{kind:?}").to_lowercase();
        writeln!(
            out,
            "{name:<10} {threads:>7} {:>9} {each:>12} {:>14}   {} cells",
            numbers::grouped(self.reads),
            format!("{rate}/s"),
            numbers::grouped(self.cells)
        )?;
        Ok(())
    }
}

fn measure(dataset: &Dataset, kind: Kind, limit: Duration) -> Result<Option<Score>> {
    let shape = dataset.shape();
    if shape.len() < 2 && kind == Kind::Column {
        return Ok(None);
    }
    let size = dataset.datatype().size() as u64;
    let mut score = Score { reads: 0, cells: 0, bytes: 0, took: Duration::ZERO };
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut blocks = Blocks::new(shape.clone(), size.max(1) as usize);
    let started = Instant::now();
    while started.elapsed() < limit || score.reads == 0 {
        let (start, count) = match kind {
            Kind::Whole => match blocks.next() {
                Some(block) => block,
                None => break,
            },
            _ => piece(&shape, kind, &mut random),
        };
        let block = Selection::block(&start, &count).map_err(pumice::Error::from)?;
        score.bytes += match dataset.datatype().has_varlen() {
            true => dataset.read_heaped(&block)?.elements.len() as u64,
            false => dataset.read_bytes(&block)?.len() as u64,
        };
        score.reads += 1;
    }
    score.took = started.elapsed();
    score.cells = score.bytes / size.max(1);
    Ok(Some(score))
}

/// A row, column or window at a random place.
fn piece(shape: &[u64], kind: Kind, random: &mut u64) -> (Vec<u64>, Vec<u64>) {
    let mut below = |end: u64| {
        // A linear congruential generator: its upper bits are good enough to choose places.
        *random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(*random) * u128::from(end.max(1))) >> 64) as u64
    };
    let last = shape.len() - 1;
    let along = match kind {
        Kind::Row => last,
        _ => last.saturating_sub(1),
    };
    let mut start = Vec::with_capacity(shape.len());
    let mut count = Vec::with_capacity(shape.len());
    for (axis, &length) in shape.iter().enumerate() {
        let here = match kind {
            Kind::Window if axis + 2 >= shape.len() => SIDE.min(length),
            Kind::Row | Kind::Column if axis == along => PIECE.min(length),
            _ => 1,
        };
        start.push(below(length - here + 1));
        count.push(here);
    }
    (start, count)
}
