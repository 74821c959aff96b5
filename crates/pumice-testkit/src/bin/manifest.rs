//! `manifest FILE`: everything in a file as JSON, with hashes instead of values.

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: manifest FILE");
        return ExitCode::FAILURE;
    };
    match pumice_testkit::manifest::of_file(path.as_ref()) {
        Ok(manifest) => {
            println!("{manifest:#}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("manifest: {error}");
            ExitCode::FAILURE
        }
    }
}
