//! `pumice man`: manual pages of all commands, made of the definitions that the help is made of.

use super::{Outcome, output, tool_flags};
use crate::cli::{Arguments, Man};
use crate::target;
use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use std::fmt::Write as _;
use std::fs;
use std::io::Write;

pub(super) fn run(arguments: &Man) -> Result<Outcome> {
    let folder = &arguments.folder;
    let action = || format!("write into {}", folder.display());
    fs::create_dir_all(folder).with_context(action)?;
    let mut command = Arguments::command();
    command.build();
    let mut pages = vec![("pumice".to_owned(), page(&mut command.clone(), "pumice"))];
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        let name = format!("pumice-{}", below.get_name());
        if below.get_name() != "help" {
            pages.push((name.clone(), page(&mut below.clone(), &name)));
        }
    }
    let pages = pages.into_iter().map(|(name, text)| (folder.join(format!("{name}.1")), text));
    let pages: Vec<_> = pages.collect();
    // All or nothing.
    for (path, _) in &pages {
        target::may_stream(path, &[], arguments.force)?;
    }
    let mut out = output();
    for (path, text) in pages {
        let mut page = target::stream(&path, &[], arguments.force)?;
        page.write_all(text.as_bytes()).with_context(action)?;
        writeln!(out, "{}", path.display())?;
    }
    out.flush()?;
    Ok(Outcome::Complete)
}

/// A page in the language of man. Writing into a string does not fail.
fn page(command: &mut Command, name: &str) -> String {
    let about = command.get_about().map_or(String::new(), ToString::to_string);
    let mut text = format!(
        ".TH \"{}\" 1 \"\" \"pumice {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n",
        name.to_uppercase(),
        env!("CARGO_PKG_VERSION"),
        escaped(name),
        escaped(about.trim_end_matches('.'))
    );
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let _ = writeln!(text, ".SH SYNOPSIS\n{}", escaped(usage));
    let long = command.get_long_about().map_or(about, ToString::to_string);
    let _ = writeln!(text, ".SH DESCRIPTION\n{}", paragraphs(&long));
    options(command, &mut text);
    let below: Vec<_> = command.get_subcommands().filter(|below| !below.is_hide_set()).collect();
    if !below.is_empty() {
        text.push_str(".SH COMMANDS\n");
        for below in below {
            let about = below.get_about().map_or(String::new(), ToString::to_string);
            let _ = writeln!(text, ".TP\n.B {}\n{}", escaped(below.get_name()), escaped(&about));
        }
    }
    if let Some(help) = command.get_after_help() {
        let _ = writeln!(text, ".SH EXAMPLES\n.nf\n{}\n.fi", escaped(&examples(&help.to_string())));
    }
    text.push_str(".SH EXIT STATUS\n0 success, 1 failure or differences, 2 wrong usage.\n");
    text
}

fn options(command: &Command, text: &mut String) {
    text.push_str(".SH OPTIONS\n");
    for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
        let name = match (argument.get_short(), argument.get_long()) {
            (Some(short), Some(long)) => format!("-{short}, --{long}"),
            (None, Some(long)) => format!("--{long}"),
            (Some(short), None) => format!("-{short}"),
            (None, None) => String::new(),
        };
        let value = match (argument.get_action().takes_values(), argument.get_value_names()) {
            (true, Some(names)) => names.iter().map(|name| format!(" {name}")).collect(),
            _ => String::new(),
        };
        let help = argument.get_long_help().or(argument.get_help());
        let help = help.map_or(String::new(), ToString::to_string);
        let heading = format!("{name}{value}");
        let _ = writeln!(text, ".TP\n.B {}\n{}", escaped(heading.trim()), escaped(&help));
    }
    for flag in tool_flags(command.get_name()).unwrap_or_default() {
        let letter = match flag.letter.is_alphabetic() {
            true => format!("-{}, ", flag.letter),
            false => String::new(),
        };
        let heading = format!("{letter}--{}", flag.long);
        let _ = writeln!(text, ".TP\n.B {}\n{}", escaped(&heading), escaped(flag.help));
    }
}

/// Text without the word that the section's title says already.
fn examples(help: &str) -> String {
    help.trim_start_matches("Examples:").trim_start_matches('\n').to_owned()
}

fn paragraphs(text: &str) -> String {
    escaped(text).replace("\n\n", "\n.PP\n")
}

/// Text without commands of man.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let lines = text.lines().map(|line| match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}
