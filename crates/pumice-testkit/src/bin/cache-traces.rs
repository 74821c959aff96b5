//! `cache-traces [SEED]`: the table of replacement policies on ten traces of array access.

use std::process::ExitCode;

use pumice_cache::PolicyKind;
use pumice_testkit::traces::{all, table};

fn main() -> ExitCode {
    let seed = std::env::args().nth(1).map_or(Ok(1), |argument| argument.parse());
    let Ok(seed) = seed else {
        eprintln!("usage: cache-traces [SEED]");
        return ExitCode::FAILURE;
    };
    let table = table::Table::new(&all(seed), &PolicyKind::ALL, &table::SIZES);
    print!("{table}");
    ExitCode::SUCCESS
}
