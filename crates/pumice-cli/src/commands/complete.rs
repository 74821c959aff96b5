//! Completion in the shell: `pumice completions SHELL` prints a script that asks `pumice
//! __complete` for the next word: commands, options, values, and paths of objects inside files.

use super::{Outcome, output, tool_flags};
use crate::cli::{Arguments, Complete, Completions, Shell};
use crate::driver;
use crate::{formats, locate};
use anyhow::Result;
use clap::{Arg, Command, CommandFactory};
use pumice::{Group, MemberKind};
use std::io::Write;
use std::path::Path;

const BASH: &str = r#"_pumice() {
    local IFS=$'\n'
    COMPREPLY=($(pumice __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
    [[ "${COMPREPLY[0]}" == */ ]] && compopt -o nospace
}
complete -o default -F _pumice pumice
"#;

const ZSH: &str = r#"#compdef pumice
_pumice() {
    local -a found
    found=("${(@f)$(pumice __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null | cut -f1)}")
    if [[ -n "${found[1]}" ]]; then
        compadd -S '' -- "${found[@]}"
    else
        _files
    fi
}
compdef _pumice pumice
"#;

const FISH: &str = r#"function __pumice_complete
    set -l words (commandline -opc)
    set -e words[1]
    set -l current (commandline -ct)
    set -l found (pumice __complete -- $words "$current" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete -c pumice -f -a '(__pumice_complete)'
"#;

/// Prints the script of a shell.
pub(super) fn completions(arguments: &Completions) -> Result<Outcome> {
    let mut out = output();
    out.write_all(match arguments.shell {
        Shell::Bash => BASH.as_bytes(),
        Shell::Zsh => ZSH.as_bytes(),
        Shell::Fish => FISH.as_bytes(),
    })?;
    out.flush()?;
    Ok(Outcome::Complete)
}

/// Prints the possible next words, one a line, with a short description behind a tab.
pub(super) fn run(arguments: &Complete) -> Result<Outcome> {
    let mut out = output();
    for (word, help) in candidates(&arguments.words) {
        let help = help.lines().next().unwrap_or_default();
        match help.is_empty() {
            true => writeln!(out, "{word}")?,
            false => writeln!(out, "{word}\t{help}")?,
        }
    }
    out.flush()?;
    Ok(Outcome::Complete)
}

/// The possible completions of the last word.
fn candidates(words: &[String]) -> Vec<(String, String)> {
    let mut command = Arguments::command();
    command.build();
    let (current, before) = match words.split_last() {
        Some((current, before)) => (current.as_str(), before),
        None => ("", words),
    };
    let mut command = &command;
    let mut given = Vec::new();
    for word in before {
        match command.find_subcommand(word).filter(|_| given.is_empty()) {
            Some(below) => command = below,
            None => given.push(word.as_str()),
        }
    }
    if command.has_subcommands() && given.is_empty() {
        return subcommands(command, current);
    }
    if current.starts_with('-') {
        return options(command, current);
    }
    if let Some(values) = given.last().and_then(|word| values(command, word, current, &given)) {
        return values;
    }
    paths(&given, current)
}

fn subcommands(command: &Command, current: &str) -> Vec<(String, String)> {
    let known = command.get_subcommands().filter(|below| !below.is_hide_set());
    let fits = known.filter(|below| below.get_name().starts_with(current));
    let about = |below: &Command| below.get_about().map_or(String::new(), ToString::to_string);
    fits.map(|below| (below.get_name().to_owned(), about(below))).collect()
}

/// Options of the command line's own commands, and of those with a table of flags.
fn options(command: &Command, current: &str) -> Vec<(String, String)> {
    let own = command.get_arguments().filter_map(|argument| {
        let help = argument.get_help().map_or(String::new(), ToString::to_string);
        Some((format!("--{}", argument.get_long()?), help))
    });
    let table = tool_flags(command.get_name()).unwrap_or_default().iter();
    let table = table.map(|flag| (format!("--{}", flag.long), flag.help.to_owned()));
    let mut found: Vec<_> =
        own.chain(table).filter(|(name, _)| name.starts_with(current)).collect();
    found.sort();
    found.dedup();
    found
}

/// The values of an option that stands before the word; `None` if none does.
fn values(
    command: &Command,
    option: &str,
    current: &str,
    given: &[&str],
) -> Option<Vec<(String, String)>> {
    let takes_object = match option.strip_prefix("--") {
        Some(long) => {
            let argument = command.get_arguments().find(|known| known.get_long() == Some(long));
            if let Some(argument) = argument.filter(|argument| takes_value(argument)) {
                if matches!(long, "from" | "to") {
                    let names =
                        formats::ALL.iter().map(|f| (f.name().to_owned(), f.title().to_owned()));
                    return Some(names.filter(|(name, _)| name.starts_with(current)).collect());
                }
                let values = argument.get_possible_values();
                if !values.is_empty() {
                    let names =
                        values.iter().map(|value| (value.get_name().to_owned(), String::new()));
                    return Some(names.filter(|(name, _)| name.starts_with(current)).collect());
                }
            }
            matches!(long, "dataset" | "object" | "dense" | "group" | "attribute")
        }
        None => matches!(option, "-d" | "-g" | "-a"),
    };
    takes_object.then(|| inside(given, current))
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}

/// Paths inside a file that was named before, or behind the name of a file: `FILE/path`. Where there
/// is neither, the shell completes names of files.
fn paths(given: &[&str], current: &str) -> Vec<(String, String)> {
    let (file, path) = locate::split_target(current);
    if !path.is_empty() && Path::new(file).is_file() {
        let prefix = path.strip_prefix('/').unwrap_or(path);
        let members = members(file, prefix);
        return members.into_iter().map(|(name, help)| (format!("{file}/{name}"), help)).collect();
    }
    inside(given, current)
}

/// Paths inside the first file among the words.
fn inside(given: &[&str], current: &str) -> Vec<(String, String)> {
    let files = given.iter().filter(|word| !word.starts_with('-') && Path::new(word).is_file());
    let Some(file) = files.copied().next() else { return Vec::new() };
    let absolute = current.starts_with('/');
    let members = members(file, current.trim_start_matches('/'));
    let path = |name: String| if absolute { format!("/{name}") } else { name };
    members.into_iter().map(|(name, help)| (path(name), help)).collect()
}

/// Members of the group that a path is in, by whole paths; groups end in a slash.
fn members(file: &str, prefix: &str) -> Vec<(String, String)> {
    let Ok(file) = driver::open(file) else { return Vec::new() };
    let (folder, name) = prefix.rsplit_once('/').unwrap_or(("", prefix));
    let group = match folder {
        "" => Group::clone(&file),
        folder => match file.group(folder) {
            Ok(group) => group,
            Err(_) => return Vec::new(),
        },
    };
    let before = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let members = group.members().unwrap_or_default().into_iter();
    let fits = members.filter(|member| member.name.starts_with(name));
    fits.map(|member| match member.kind {
        MemberKind::Group => (format!("{before}{}/", member.name), "group".to_owned()),
        MemberKind::Dataset => (format!("{before}{}", member.name), "dataset".to_owned()),
        _ => (format!("{before}{}", member.name), String::new()),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumice::File;

    fn words(line: &str) -> Vec<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        candidates(&words).into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn commands_options_and_values_are_completed() {
        assert_eq!(words("imp"), ["import"]);
        assert!(words("").contains(&"spy".to_owned()));
        assert!(!words("").iter().any(|word| word.starts_with("__")));
        assert_eq!(words("import --dup"), ["--duplicates"]);
        assert_eq!(words("import x --duplicates s"), ["sum"]);
        assert_eq!(words("import x --from np"), ["npy", "npz"]);
        assert_eq!(words("ls --js"), ["--json"]);
    }

    #[test]
    fn objects_inside_files_are_completed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.h5");
        let file = File::create(&path).unwrap();
        file.new_dataset::<f32>().shape([2, 2]).create("runs/first").unwrap();
        file.new_dataset::<f32>().shape([2, 2]).create("runs/second").unwrap();
        file.close().unwrap();
        let path = path.to_str().unwrap();
        assert_eq!(words(&format!("spy {path} r")), ["runs/"]);
        assert_eq!(words(&format!("spy {path} /runs/f")), ["/runs/first"]);
        assert_eq!(words(&format!("ls {path}/runs/s")), [format!("{path}/runs/second")]);
        assert_eq!(words(&format!("dump {path} -d runs/")), ["runs/first", "runs/second"]);
        assert_eq!(words("spy missing.h5 r"), [""; 0]);
    }
}
