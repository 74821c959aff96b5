//! `pumice-interop`: the Rust side of the interoperability tests in `tests/python/`.
//!
//! Carries out a list of operations on a new file, or describes everything in a file, with raw
//! data in files beside it. The protocol is described in `tests/python/README.md`.

mod chunks;
mod convert;
mod cuts;
mod datatype;
mod lines;
mod objects;
mod packed;
mod pairs;
mod read;
mod references;
mod scales;
mod swmr;
mod types;
mod write;

use anyhow::{Result, bail};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pumice-interop: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    match arguments {
        [command, spec, out] if command == "write" => write::run(spec.as_ref(), out.as_ref()),
        [command, spec, file] if command == "edit" => write::edit(spec.as_ref(), file.as_ref()),
        [command, file, out] if command == "read" => read::run(file.as_ref(), out.as_ref()),
        [command, file, out] if command == "lines" => lines::run(file.as_ref(), out.as_ref()),
        [command, file, out] if command == "chunks" => chunks::run(file.as_ref(), out.as_ref()),
        [command, file] if command == "hold" => {
            let _open = pumice::File::open(file)?;
            write::hold()
        }
        [command, file] if command == "write-types" => types::write(file.as_ref()),
        [command, file] if command == "read-types" => types::read(file.as_ref()),
        [command, file] if command == "write-scales" => scales::write(file.as_ref()),
        [command, file] if command == "read-scales" => scales::read(file.as_ref()),
        [command, file] if command == "read-netcdf-scales" => scales::read_netcdf(file.as_ref()),
        [command, kind, out] if command == "cuts" => cuts::run(kind, out.as_ref()),
        [command, file, path, out] if command == "bytes" => {
            std::fs::write(out, pumice::File::open(file)?.dataset(path)?.read_bytes(..)?)?;
            Ok(())
        }
        [command, file, path, out] if command == "references" => {
            references::run(file.as_ref(), path, out.as_ref())
        }
        [command, file, paths, times, rows, how] if command == "append" => {
            swmr::append(file.as_ref(), paths, times.parse()?, rows.parse()?, how)
        }
        [command, file, path, last, how] if command == "follow" => {
            swmr::follow(file.as_ref(), path, last.parse()?, how)
        }
        [command, file, list, out] if command == "as" => {
            convert::run(file.as_ref(), list.as_ref(), out.as_ref())
        }
        _ => bail!(
            "usage: pumice-interop write SPEC.jsonl OUT.h5 | edit SPEC.jsonl FILE.h5 | \
             read FILE.h5 OUTDIR | \
             read FOLDER OUTDIR | lines FILE.h5 OUTDIR | chunks FILE.h5 OUTDIR | \
             hold FILE.h5 | cuts KIND OUTDIR | bytes FILE.h5 PATH OUT | references FILE.h5 PATH OUT | \
             append FILE.h5 PATH,... TIMES ROWS swmr|plain[-wide][-slow] | follow FILE.h5 PATH ROWS swmr|plain[-file] | \
             write-types OUT.h5 | read-types FILE.h5 | \
             write-scales OUT.h5 | read-scales FILE.h5 | read-netcdf-scales FILE.nc"
        ),
    }
}
