//! Operations on a million strings of variable length, dataset `s`.

use crate::Outcome;
use pumice::{File, Strings};
use std::fs;
use std::time::Instant;

/// The strings that are written.
pub fn load(folder: &str) -> Outcome<Strings> {
    let lengths = fs::read(format!("{folder}/lengths.bin"))?;
    let mut offsets = vec![0u64];
    let mut end = 0;
    for length in lengths.as_chunks::<4>().0 {
        end += u64::from(u32::from_le_bytes(*length));
        offsets.push(end);
    }
    Ok(Strings::from_parts(offsets, fs::read(format!("{folder}/text.bin"))?)?)
}

/// Runs one operation; answers wall clock and processor seconds.
pub fn run(strings: &Strings, verb: &str, path: &str) -> Outcome<String> {
    let (start, processor) = (Instant::now(), processor_seconds()?);
    let mut read = None;
    match verb {
        "strings-write" | "strings-write-plain" => {
            let file = File::create(path)?;
            let builder = file.new_strings().shape([strings.len() as u64]).variable_length();
            let builder = if verb == "strings-write" { builder } else { builder.no_filters() };
            builder.create("s")?.write_packed_strings(.., strings)?;
            file.close()?;
        }
        "strings-overwrite" => {
            let file = File::edit(path)?;
            file.dataset("s")?.write_packed_strings(.., strings)?;
            file.close()?;
        }
        "strings-read" => read = Some(File::open(path)?.dataset("s")?.read_strings(..)?),
        _ => return Err(format!("no command {verb}").into()),
    }
    let (seconds, used) = (start.elapsed().as_secs_f64(), processor_seconds()? - processor);
    if read.is_some_and(|read| read != *strings) {
        return Err("other strings than were written".into());
    }
    Ok(format!("{seconds:.9} {used:.3}"))
}

/// Processor time of this process, all threads.
fn processor_seconds() -> Outcome<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().ok_or("no fields")?;
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(str::parse::<u64>).sum::<Result<_, _>>()?;
    Ok(ticks as f64 / 100.0)
}
