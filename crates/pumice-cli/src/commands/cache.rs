//! `pumice cache replay`: a recorded trace under other policies and sizes.

mod chart;

use super::{Outcome, output};
use crate::cli::{Cache, Replay};
use crate::{numbers, target};
use anyhow::{Context, Result, anyhow};
use pumice::PolicyKind;
use pumice::simulate::{PrivateCaches, Score, optimum, replay};
use pumice::trace::Trace;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Sizes in a chart, from one to the other end.
const CHART_SIZES: u64 = 24;

pub(super) fn run(arguments: &Cache) -> Result<Outcome> {
    match arguments {
        Cache::Replay(arguments) => run_replay(arguments),
    }
}

fn run_replay(arguments: &Replay) -> Result<Outcome> {
    let path = &arguments.trace;
    if let Some(png) = &arguments.png {
        target::may_stream(png, &[path], arguments.force)?;
    }
    let at_path = || path.display().to_string();
    target::regular(path).with_context(at_path)?;
    let file = File::open(path).with_context(at_path)?;
    let trace = Trace::read(file);
    let trace = trace.map_err(|error| anyhow!("{error}; `pumice bench --trace` records a trace"));
    let trace = trace.with_context(at_path)?;
    let footprint = footprint(&trace);

    let mut out = output();
    let (accesses, chunks) = (trace.len() as u64, trace.chunks() as u64);
    let writes = trace.accesses().iter().filter(|access| access.write).count() as u64;
    writeln!(
        out,
        "{}: {} accesses ({} writes) to {} chunks of {} in all",
        path.display(),
        numbers::grouped(accesses),
        numbers::grouped(writes),
        numbers::grouped(chunks),
        numbers::bytes(footprint)
    )?;
    let head = ["cache", "policy", "hits", "misses", "hit %", "loaded"];
    let [cache, policy, hits, misses, rate, loaded] = head;
    writeln!(out, "{cache:>10}  {policy:<16} {hits:>12} {misses:>12} {rate:>7} {loaded:>11}")?;
    let sizes = match arguments.sizes.as_slice() {
        [] => [8, 4, 2, 1].map(|part| footprint.div_ceil(part)).to_vec(),
        sizes => sizes.iter().map(|size| size.0).collect(),
    };
    for size in sizes {
        write_score(&mut out, size, "optimum", optimum(&trace, size))?;
        for kind in PolicyKind::ALL {
            write_score(&mut out, size, &kind.to_string(), replay(&trace, kind, size))?;
        }
    }
    let private = PrivateCaches::default().replay(&trace);
    write_score(&mut out, private.peak_bytes, "HDF5 2.0", private)?;
    out.flush()?;
    if let Some(png) = &arguments.png {
        write_chart(arguments, png, &trace, footprint)?;
    }
    Ok(Outcome::Complete)
}

fn write_score(out: &mut impl Write, size: u64, name: &str, score: Score) -> Result<()> {
    writeln!(
        out,
        "{:>10}  {name:<16} {:>12} {:>12} {:>7.2} {:>11}",
        numbers::bytes(size),
        numbers::grouped(score.hits),
        numbers::grouped(score.misses),
        score.hit_percentage(),
        numbers::bytes(score.bytes_missed)
    )?;
    Ok(())
}

/// The bytes of all chunks at their last size.
fn footprint(trace: &Trace) -> u64 {
    let mut sizes = vec![0; trace.chunks()];
    trace.accesses().iter().for_each(|access| sizes[access.chunk as usize] = access.bytes);
    sizes.into_iter().fold(0, u64::saturating_add)
}

fn write_chart(arguments: &Replay, path: &Path, trace: &Trace, footprint: u64) -> Result<()> {
    let sizes: Vec<u64> =
        (1..=CHART_SIZES).map(|step| footprint.div_ceil(CHART_SIZES).max(1) * step).collect();
    let largest = sizes.last().copied().unwrap_or(1).max(1) as f64;
    // A cache of no bytes misses always.
    let line = |score: &dyn Fn(u64) -> Score| {
        let points = sizes
            .iter()
            .map(|&size| (size as f64 / largest, 1.0 - score(size).hit_percentage() / 100.0));
        std::iter::once((0.0, 1.0)).chain(points).collect::<Vec<_>>()
    };
    let mut lines = vec![("optimum".to_owned(), line(&|size| optimum(trace, size)))];
    for kind in PolicyKind::ALL {
        lines.push((kind.to_string(), line(&|size| replay(trace, kind, size))));
    }
    let names: Vec<String> = lines.iter().map(|line| line.0.clone()).collect();
    let below = (0..=4).map(|quarter| numbers::bytes(footprint / 4 * quarter)).collect();
    let (across, upwards) = ("size of the cache".to_owned(), "misses".to_owned());
    let png = target::stream(path, &[&arguments.trace], arguments.force)?;
    let chart = chart::Chart { lines, below, across, upwards };
    chart.write_png(BufWriter::new(png)).with_context(|| path.display().to_string())?;
    let mut out = output();
    let colours =
        names.into_iter().zip(chart::COLOURS).map(|(name, (colour, _))| format!("{name} {colour}"));
    writeln!(
        out,
        "{}: misses (0 to 100 % upwards) by size (to {}): {}",
        path.display(),
        numbers::bytes(footprint),
        colours.collect::<Vec<_>>().join(", ")
    )?;
    Ok(out.flush()?)
}
