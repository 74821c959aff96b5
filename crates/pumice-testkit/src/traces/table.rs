//! The results of each policy on the ten traces, as one table.
//!
//! *Regret* is the number of hits in a hundred accesses by which a policy is below the clairvoyant
//! optimum. *Equal memory*: the cache holds as many chunks as HDF5's private caches together hold
//! at their peak on that trace.

use std::fmt;

use pumice_cache::PolicyKind;
use pumice_trace::simulate::{PrivateCaches, Score, optimum, replay};

use super::{CHUNK, Sample};

/// The sizes of caches in quarters of the named size.
pub const SIZES: [u64; 4] = [1, 2, 4, 6];

/// All figures.
#[derive(Debug)]
pub struct Table {
    /// The policies, in the order of the columns.
    pub policies: Vec<PolicyKind>,
    /// A row for each trace and size.
    pub rows: Vec<Row>,
    /// An entry for each trace.
    pub equal: Vec<Equal>,
}

/// A trace at one size of cache.
#[derive(Debug)]
pub struct Row {
    /// The trace.
    pub name: &'static str,
    /// The number of chunks that the cache holds.
    pub cache: u64,
    /// The optimum's score.
    pub optimum: Score,
    /// The score of each policy.
    pub scores: Vec<Score>,
}

/// A trace at the peak of HDF5's private caches.
#[derive(Debug)]
pub struct Equal {
    /// The trace.
    pub name: &'static str,
    /// The use case of the trace.
    pub title: &'static str,
    /// HDF5.
    pub private: Score,
    /// The score of each policy.
    pub scores: Vec<Score>,
}

impl Table {
    /// Replays all samples with all policies, at the sizes given in quarters.
    pub fn new(samples: &[Sample], policies: &[PolicyKind], sizes: &[u64]) -> Self {
        let mut table = Table { policies: policies.to_vec(), rows: vec![], equal: vec![] };
        for Sample { name, title, cache, trace } in samples {
            let scores = |chunks: u64| {
                policies.iter().map(|&kind| replay(trace, kind, chunks * CHUNK)).collect()
            };
            for cache in sizes.iter().map(|quarters| cache * quarters / 4) {
                let optimum = optimum(trace, cache * CHUNK);
                table.rows.push(Row { name, cache, optimum, scores: scores(cache) });
            }
            let private = PrivateCaches::default().replay(trace);
            let scores = scores(private.peak_chunks);
            table.equal.push(Equal { name, title, private, scores });
        }
        table
    }

    /// The mean regret of the policy in a column.
    pub fn regret(&self, column: usize) -> f64 {
        self.mean(|row| row.optimum.hit_percentage() - row.scores[column].hit_percentage())
    }

    /// The average of a policy's misses divided by the optimum's.
    pub fn misses(&self, column: usize) -> f64 {
        self.mean(|row| row.scores[column].misses as f64 / row.optimum.misses.max(1) as f64)
    }

    fn mean(&self, value: impl Fn(&Row) -> f64) -> f64 {
        self.rows.iter().map(value).sum::<f64>() / self.rows.len().max(1) as f64
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Hits per hundred accesses, and the cache's size in chunks\n")?;
        self.write_head(f, "| trace | cache | optimum |")?;
        for row in &self.rows {
            write!(f, "| {} | {} | {:.1} |", row.name, row.cache, row.optimum.hit_percentage())?;
            write_scores(f, &row.scores)?;
        }
        write!(f, "| **regret** | | 0 |")?;
        (0..self.policies.len()).try_for_each(|i| write!(f, " {:.2} |", self.regret(i)))?;
        write!(f, "\n| **misses / optimum** | | 1 |")?;
        (0..self.policies.len()).try_for_each(|i| write!(f, " {:.2} |", self.misses(i)))?;
        writeln!(f, "\n\nAt equal memory with HDF5 2.0's private caches\n")?;
        self.write_head(f, "| trace | cache | HDF5 |")?;
        for row in &self.equal {
            let Score { peak_chunks, .. } = row.private;
            let hits = row.private.hit_percentage();
            write!(f, "| {} {} | {peak_chunks} | {hits:.2} |", row.name, row.title)?;
            row.scores
                .iter()
                .try_for_each(|score| write!(f, " {:.2} |", score.hit_percentage()))?;
            writeln!(f)?;
        }
        Ok(())
    }
}

impl Table {
    fn write_head(&self, f: &mut fmt::Formatter<'_>, first: &str) -> fmt::Result {
        write!(f, "{first}")?;
        self.policies.iter().try_for_each(|kind| write!(f, " {kind} |"))?;
        write!(f, "\n|---|---|---|")?;
        self.policies.iter().try_for_each(|_| write!(f, "---|"))?;
        writeln!(f)
    }
}

fn write_scores(f: &mut fmt::Formatter<'_>, scores: &[Score]) -> fmt::Result {
    scores.iter().try_for_each(|score| write!(f, " {:.1} |", score.hit_percentage()))?;
    writeln!(f)
}
