//! What can be asked on the command line.

mod exchange;

pub(crate) use exchange::{Convert, Duplicates, Export, Import, Storing};

use crate::failure::Misuse;
use crate::locate::Spot;
use crate::window::{Part, Window};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;

/// HDF5 files with sparse datasets: import, export, list, dump, draw, read, check
#[derive(Debug, Parser)]
#[command(name = "pumice", version, max_term_width = 100)]
#[command(after_help = "\
Examples:
  pumice import matrix.mtx.gz matrix.h5       make a sparse dataset of a Matrix Market file
  pumice ls -rv matrix.h5                     list what is in a file
  pumice spy matrix.h5 --png matrix.png       draw where values are
  pumice check matrix.h5                      read everything, tell what is wrong
  pumice export matrix.h5 matrix.npz          for SciPy
  pumice read matrix.h5/matrix --window 0:8,-8:

FILE/PATH names an object of a file wherever a file is named.

`pumice COMMAND --help` has examples of each command.

Exit codes: 0 success, 1 failure, 2 wrong usage.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What is wrong with a command line, on one line; help and version are printed at once, and end the
/// program.
pub(crate) fn one_line(error: clap::Error, command: Option<&String>) -> anyhow::Error {
    use clap::error::ErrorKind;
    let missing = ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if !error.use_stderr() || error.kind() == missing {
        error.exit();
    }
    let text = error.to_string();
    let said = text.split("\n\nUsage:").next().unwrap_or_default();
    let said = said.split("\n\nFor more").next().unwrap_or_default();
    let words: Vec<&str> = said.trim_start_matches("error: ").split_whitespace().collect();
    let known = command.filter(|_| error.kind() != ErrorKind::InvalidSubcommand);
    let known = known
        .filter(|word| !word.starts_with('-'))
        .map_or(String::new(), |word| format!("{word} "));
    let text = format!("{}; `pumice {known}--help` tells what can be asked", words.join(" "));
    Misuse(text).into()
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Import(Import),
    Export(Export),
    Convert(Convert),
    Ls(Ls),
    Dump(Dump),
    Diff(Diff),
    Stat(Stat),
    Repack(Repack),
    Copy(Copy),
    Spy(Spy),
    Read(Read),
    Erase(Erase),
    #[command(subcommand)]
    Cache(Cache),
    Check(Check),
    Recover(Recover),
    Bench(Bench),
    Completions(Completions),
    #[command(name = "__complete", hide = true)]
    Complete(Complete),
    Man(Man),
    InstallLinks(InstallLinks),
}

/// List groups, datasets, datatypes and links, with h5ls's options
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Ls {
    /// h5ls's options and FILE[/path]; --help lists them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "OPTIONS] FILE[/PATH]"
    )]
    pub(crate) arguments: Vec<String>,
}

/// Print files or parts of them in the HDF5 data description language, with h5dump's options
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Dump {
    /// h5dump's options and files; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS] FILE")]
    pub(crate) arguments: Vec<String>,
}

/// Compare two files or two objects, with h5diff's options
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Diff {
    /// h5diff's options, two files and perhaps objects; --help lists them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "OPTIONS] FILE1 FILE2 [OBJECT1 [OBJECT2]"
    )]
    pub(crate) arguments: Vec<String>,
}

/// Count objects and tell what takes the space of a file, with h5stat's options
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Stat {
    /// h5stat's options and files; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS] FILE")]
    pub(crate) arguments: Vec<String>,
}

/// Write a file anew, with other layouts and filters, with h5repack's options
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Repack {
    /// h5repack's options and files; --help lists them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "OPTIONS] FILE1 [FILE2"
    )]
    pub(crate) arguments: Vec<String>,
}

/// Copy objects within a file or between files, with h5copy's options
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Copy {
    /// h5copy's options; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    pub(crate) arguments: Vec<String>,
}

/// Draw where a dataset has values.
///
/// On a terminal the picture is made of half blocks, coloured by density; elsewhere, where NO_COLOR is
/// set, or with --braille, of Braille dots, more of them where more cells are defined. Of a sparse
/// dataset, defined cells are drawn; of a dense one, cells that differ from the fill value.
///
/// Of a dataset with more than two axes, the two longest are drawn unless --axes names others, and cells
/// are counted along the rest; --slice takes a part of an axis. The line below the picture says so.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pumice spy matrix.h5
  pumice spy matrix.h5/runs/first --width 120
  pumice spy matrix.h5 --ascii > matrix.txt
  pumice spy movie.h5/frames --slice 0=-1                the last frame
  pumice spy movie.h5/frames --axes 0,2 --slice 1=100:200
  pumice spy matrix.h5 --chunks                  how full chunks are
  pumice spy matrix.h5 --png matrix.png --size 2000")]
pub(crate) struct Spy {
    /// HDF5 file, perhaps with the path of what is meant: FILE/PATH
    #[arg(value_name = "FILE[/PATH]", value_hint = ValueHint::FilePath)]
    pub(crate) file: Spot,
    /// Dataset; needed unless the file, or the group behind it, has only one to draw
    pub(crate) dataset: Option<String>,
    /// Columns of the terminal picture
    #[arg(long, value_name = "N", default_value_t = 72,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) width: u32,
    /// Use plain ASCII characters
    #[arg(long)]
    pub(crate) ascii: bool,
    /// Use Braille dots without colours
    #[arg(long)]
    pub(crate) braille: bool,
    /// The axes that run down and across
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1)]
    pub(crate) axes: Option<Vec<usize>>,
    /// A part of an axis, as in Python: 0=-1, 0=5:9, 0=::2; may be repeated
    #[arg(long, value_name = "AXIS=FROM:TO:STEP")]
    pub(crate) slice: Vec<Slice>,
    /// Tell how full the chunks are
    #[arg(long)]
    pub(crate) chunks: bool,
    /// Write a picture, coloured by density
    #[arg(long, value_name = "OUT.png")]
    pub(crate) png: Option<PathBuf>,
    /// Replace OUT.png if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
    /// Pixels of the picture's longer side
    #[arg(long, value_name = "PIXELS", default_value_t = 1024,
          value_parser = clap::value_parser!(u32).range(1..=8192))]
    pub(crate) size: u32,
}

/// Print a window of a dataset as a table, or its defined cells as a list.
///
/// A window has a range or an index for each axis, as in Python: numbers below 0 count from the end, and
/// axes that are not named are taken whole. Without one, the first rows and columns are shown.
///
/// Of sparse datasets, a table shows undefined cells as a dot; where fewer than one cell in ten is defined,
/// the defined cells are listed instead, with their coordinates. --defined and --table ask for one of the two.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pumice read matrix.h5                             the only dataset, its first cells
  pumice read matrix.h5/run1/hits --window 0:8,0:8  rows 0 to 7, columns 0 to 7
  pumice read matrix.h5 run1/hits --window 5,:100   row 5, columns 0 to 99
  pumice read matrix.h5/matrix --window=-10:,3      the last ten rows of column 3
  pumice read matrix.h5/matrix --window ::1000,-1   every thousandth row of the last column
  pumice read matrix.h5/matrix --defined            coordinates and values of all defined cells")]
pub(crate) struct Read {
    /// HDF5 file, perhaps with the path of what is meant: FILE/PATH
    #[arg(value_name = "FILE[/PATH]", value_hint = ValueHint::FilePath)]
    pub(crate) file: Spot,
    /// Dataset; needed only if the file, or the group behind it, has several
    pub(crate) dataset: Option<String>,
    /// A range FROM:TO:STEP or an index for each axis; TO is not part of it
    #[arg(long, value_name = "RANGES", allow_hyphen_values = true)]
    pub(crate) window: Option<Window>,
    /// List coordinates and values of all defined cells
    #[arg(long, conflicts_with = "table")]
    pub(crate) defined: bool,
    /// Print a table, with a dot for each undefined cell
    #[arg(long)]
    pub(crate) table: bool,
}

/// Make the cells of a window undefined.
///
/// Prints how many cells were defined before and after, and how many bytes that gave back. The
/// cells of a dense dataset get the fill value.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pumice erase matrix.h5/matrix --window 100:200,100:200
  pumice erase matrix.h5/matrix --window :,7            column 7
  pumice erase matrix.h5/matrix --window=-1             the last row")]
pub(crate) struct Erase {
    /// HDF5 file, perhaps with the path of what is meant: FILE/PATH
    #[arg(value_name = "FILE[/PATH]", value_hint = ValueHint::FilePath)]
    pub(crate) file: Spot,
    /// Dataset; needed only if the file, or the group behind it, has several
    pub(crate) dataset: Option<String>,
    /// A range FROM:TO:STEP or an index for each axis, as in Python; TO is not part of it
    #[arg(long, value_name = "RANGES", allow_hyphen_values = true)]
    pub(crate) window: Window,
}

/// Read all of a file and tell what is wrong with it.
///
/// Every header, link, attribute, index and heap is decoded with its checksum, every chunk is read
/// through its filters, and every byte of the file is accounted for: structures that overlap each other
/// or free space, or lie beyond the end, are problems. These are told with the paths and addresses of
/// what has them. Bytes that nothing refers to are listed; they harm nobody.
///
/// Of FILE/PATH, that object is read, and everything below it; bytes are not accounted for.
///
/// With --repair, what is damaged stays behind: datasets whose elements cannot all be read, links to
/// them, attributes and objects that cannot be decoded. All else is copied, into a new file like the old
/// one.
///
/// What only a newer program can know is told apart from problems, and not read.
///
/// Exit codes: 0 if the files are sound, 1 if there are problems or something newer, 2 if a file cannot be opened.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pumice check run.h5
  pumice check *.h5 && echo all sound
  pumice check run.h5/events                    one group and what is in it
  pumice check broken.h5 --repair whole.h5      copy what is sound into a new file")]
pub(crate) struct Check {
    /// HDF5 files, perhaps with the path of what is meant: FILE/PATH
    #[arg(required = true, value_name = "FILE[/PATH]", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<Spot>,
    /// Copy every object without problems into a new file; the old one stays as it is
    #[arg(long, value_name = "NEW.h5", value_hint = ValueHint::FilePath)]
    pub(crate) repair: Option<PathBuf>,
    /// Replace NEW.h5 if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
    /// List bytes by kind of structure, and every piece that nothing refers to
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Complete what an interrupted writer had begun.
///
/// A commit that was cut short leaves its journal at the end of the file; it is applied. A file
/// without a journal is as its last commit left it, and is not touched. A program that wrote beside
/// readers (SWMR) and was killed leaves a mark, because of which others do not open the file; it is
/// removed by --clear, as `h5clear -s` does. It must not have the file open any more.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pumice recover run.h5
  pumice recover --clear run.h5    # written by a program that was killed")]
pub(crate) struct Recover {
    /// Remove the mark of a file that is open for writing; no program may have it open
    #[arg(long)]
    pub(crate) clear: bool,
    /// HDF5 file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

/// Measure how fast rows, columns and windows of your own file are read.
///
/// Each kind of piece is read at random places for a while, then all of the dataset from its
/// beginning, with one thread and with all; the cache starts empty each time, the system's does not.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pumice bench matrix.h5
  pumice bench run.h5/events/energy --seconds 5 --threads 8
  pumice bench run.h5 --trace run.trace && pumice cache replay run.trace --png misses.png")]
pub(crate) struct Bench {
    /// HDF5 file, perhaps with the path of what is meant: FILE/PATH
    #[arg(value_name = "FILE[/PATH]", value_hint = ValueHint::FilePath)]
    pub(crate) file: Spot,
    /// Dataset; needed only if the file, or the group behind it, has several
    pub(crate) dataset: Option<String>,
    /// How long each kind of piece is read
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    pub(crate) seconds: f64,
    /// Threads beside one; by default as many as there are processors
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Record what the chunk cache is asked for, for `pumice cache replay`
    #[arg(long, value_name = "OUT.trace", value_hint = ValueHint::FilePath)]
    pub(crate) trace: Option<PathBuf>,
    /// Replace OUT.trace if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Print the script that completes commands, options and objects inside files in a shell.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pumice completions bash > ~/.local/share/bash-completion/completions/pumice
  pumice completions zsh > ~/.zfunc/_pumice
  pumice completions fish > ~/.config/fish/completions/pumice.fish")]
pub(crate) struct Completions {
    /// Shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// A shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Print what may come next on a command line; for shells.
#[derive(Args, Debug)]
pub(crate) struct Complete {
    /// The words behind `pumice`, the last of which is being typed
    #[arg(last = true)]
    pub(crate) words: Vec<String>,
}

/// Write manual pages of all commands into a folder.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pumice man ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Folder for the pages
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    /// Replace pages that are there
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Make links by which this program takes the place of HDF5 tools.
///
/// Called as h5dump, it takes h5dump's options and prints what h5dump prints.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pumice install-links ~/bin")]
pub(crate) struct InstallLinks {
    /// Folder for the links
    pub(crate) folder: PathBuf,
    /// Replace what is there
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Study what the chunk cache did.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  pumice cache replay run.trace
  pumice cache replay run.trace --png misses.png       misses by size, a line for each policy")]
pub(crate) enum Cache {
    Replay(Replay),
}

/// Replay a recorded trace with every policy, and with knowledge of the future.
///
/// A program records a trace with `Context::start_trace`. For each size of the cache and each
/// policy, hits, misses and the bytes loaded are printed. The optimum is Belady's; where chunks
/// differ in size it is a yardstick, not a bound. HDF5 2.0 is what its caches of 8 MiB for each
/// dataset would have done; its size is the most that they held together.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pumice cache replay run.trace
  pumice cache replay run.trace --sizes 64MiB,256MiB,1GiB
  pumice cache replay run.trace --png misses.png       misses by size, a line for each policy")]
pub(crate) struct Replay {
    /// Trace, as the cache recorded it
    pub(crate) trace: PathBuf,
    /// Sizes of the cache; by default from an eighth of all chunks to all of them
    #[arg(long, value_name = "SIZES", value_delimiter = ',', num_args = 1)]
    pub(crate) sizes: Vec<ByteSize>,
    /// Write a picture of the miss ratios
    #[arg(long, value_name = "OUT.png")]
    pub(crate) png: Option<PathBuf>,
    /// Replace OUT.png if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// A part of an axis, as `2=5`, `2=-1` or `2=5:9:2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) axis: usize,
    pub(crate) part: Part,
}

impl std::str::FromStr for Slice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a part of an axis such as 2=5 or 2=5:9");
        let (axis, part) = text.split_once('=').ok_or_else(wrong)?;
        Ok(Slice { axis: axis.parse().map_err(|_| wrong())?, part: part.parse()? })
    }
}

/// A number of bytes, as `1000`, `64KiB`, `64MiB` or `1.5GiB`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ByteSize(pub(crate) u64);

impl std::str::FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a size such as 1000, 64KiB, 64MiB or 1.5GiB");
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match &text[digits.len()..] {
            "" | "B" => 1.0,
            "K" | "KiB" => 1024.0,
            "M" | "MiB" => 1_048_576.0,
            "G" | "GiB" => 1_073_741_824.0,
            "T" | "TiB" => 1_099_511_627_776.0,
            _ => return Err(wrong()),
        };
        let number: f64 = digits.parse().map_err(|_| wrong())?;
        let bytes = number * unit;
        if !(1.0..1e18).contains(&bytes) {
            return Err(wrong());
        }
        Ok(ByteSize(bytes as u64))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Arguments::command().debug_assert();
    }

    #[test]
    fn wrong_usage_is_told_on_one_line() {
        use clap::Parser;
        let told = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let error = super::Arguments::try_parse_from(&words).unwrap_err();
            super::one_line(error, words.get(1)).to_string()
        };
        assert_eq!(
            told("pumice spy"),
            "the following required arguments were not provided: <FILE[/PATH]>; `pumice spy --help` tells what can be asked"
        );
        let text = told("pumice bogus");
        assert!(text.starts_with("unrecognized subcommand 'bogus'"), "{text}");
        assert!(text.ends_with("; `pumice --help` tells what can be asked"), "{text}");
        let text = told("pumice spy a.h5 --width 0");
        assert!(text.contains("'0' for '--width <N>'") && !text.contains('\n'), "{text}");
    }

    #[test]
    fn sizes_are_read_with_and_without_units() {
        let size = |text: &str| text.parse().map(|size: super::ByteSize| size.0);
        assert_eq!(size("1000"), Ok(1000));
        assert_eq!(size("1.5GiB"), Ok(3 << 29));
        assert_eq!(size("64K"), Ok(65_536));
        for wrong in ["", "MiB", "0", "-1", "1XB", "nan", "1e300", "\u{e9}"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
