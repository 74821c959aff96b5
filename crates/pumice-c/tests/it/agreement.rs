//! The header and the functions agree: names, arguments and their types, constants and structures.

use crate::support::crate_folder;
use std::collections::BTreeMap;
use std::fs;

/// A function: its result, and the name and the type of each argument.
type Signature = (String, Vec<(String, String)>);

/// Text without comments, with one space between words.
fn words(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("/*") {
        plain.push_str(&rest[..at]);
        rest = &rest[at..][rest[at..].find("*/").expect("a comment ends") + 2..];
    }
    plain.push_str(rest);
    let lines = plain.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

/// Splits `const char *path` into name and type.
fn argument_of_c(text: &str) -> (String, String) {
    let text = text.trim();
    let name = text.rsplit([' ', '*']).next().expect("an argument has a name");
    let kind = text[..text.len() - name.len()].replace(" *", "*");
    (name.to_owned(), kind.trim().to_owned())
}

fn header() -> String {
    fs::read_to_string(crate_folder().join("include/pumice.h")).expect("the header is there")
}

/// What the header declares.
fn declared() -> BTreeMap<String, Signature> {
    let header = words(&header());
    let mut found = BTreeMap::new();
    for statement in header.split(';') {
        let Some((before, after)) = statement.split_once('(') else { continue };
        let (name, result) = argument_of_c(before.rsplit(['}', '{', '"']).next().unwrap_or(before));
        if !name.starts_with("pumice_") {
            continue;
        }
        let arguments = after.trim_end().trim_end_matches(')');
        let arguments: Vec<_> =
            arguments.split(',').filter(|one| one.trim() != "void").map(argument_of_c).collect();
        found.insert(name, (result, arguments));
    }
    found
}

/// A Rust type as C spells it.
fn in_c(rust: &str) -> String {
    if let Some(pointed) = rust.strip_prefix("*const ") {
        return match pointed.strip_prefix("*") {
            Some(_) => format!("{}*", in_c(pointed)),
            None => format!("const {}*", in_c(pointed)),
        };
    }
    if let Some(pointed) = rust.strip_prefix("*mut ") {
        return format!("{}*", in_c(pointed));
    }
    let name = match rust {
        "Status" => "pumice_status",
        "TypeNumber" => "pumice_type",
        "FileHandle" => "pumice_file",
        "DatasetHandle" => "pumice_dataset",
        "Window" => "pumice_window",
        "Options" => "pumice_options",
        "Names" => "pumice_names",
        "Cells" => "pumice_cells",
        "Csr" => "pumice_csr",
        "c_char" => "char",
        "c_void" => "void",
        "u64" => "uint64_t",
        "usize" => "size_t",
        "bool" => "bool",
        "" => "void",
        other => panic!("no type of the header: {other}"),
    };
    name.to_owned()
}

/// What the crate exports.
fn exported() -> BTreeMap<String, Signature> {
    let mut found = BTreeMap::new();
    for file in fs::read_dir(crate_folder().join("src")).expect("the sources are there") {
        let text = fs::read_to_string(file.expect("readable").path()).expect("UTF-8");
        for part in text.split("#[unsafe(no_mangle)]").skip(1) {
            let part = words(part);
            let head = &part[..part.find('{').expect("a function has a body")];
            let (_, head) = head.split_once(" fn ").expect("it is a function");
            let (name, rest) = head.split_once('(').expect("a function has arguments");
            let (arguments, result) = rest.rsplit_once(')').expect("they end");
            let name = name.to_owned();
            let result = result.trim().trim_start_matches("->").trim();
            let result = if result == "c_int" { "pumice_kind".into() } else { in_c(result) };
            let arguments = arguments.split(',').filter_map(|one| one.trim().split_once(": "));
            let arguments = arguments.map(|(name, kind)| match (name, kind) {
                ("mode", "c_int") => (name.to_owned(), "pumice_mode".to_owned()),
                // Words of C's that Rust has other names for.
                ("number", _) => ("type".to_owned(), in_c(kind)),
                ("value", _) => ("text".to_owned(), in_c(kind)),
                _ => (name.to_owned(), in_c(kind)),
            });
            found.insert(name, (result, arguments.collect()));
        }
    }
    found
}

#[test]
fn the_header_declares_what_the_library_has() {
    let (declared, exported) = (declared(), exported());
    assert!(exported.len() > 45, "{} functions", exported.len());
    for (name, signature) in &exported {
        assert_eq!(declared.get(name), Some(signature), "{name}");
    }
    let unknown: Vec<_> = declared.keys().filter(|name| !exported.contains_key(*name)).collect();
    assert!(unknown.is_empty(), "declared, but not there: {unknown:?}");
}

#[test]
fn every_function_is_used_by_an_example() {
    let mut text = String::new();
    for file in fs::read_dir(crate_folder().join("c-examples")).expect("there are examples") {
        text += &fs::read_to_string(file.expect("readable").path()).expect("UTF-8");
    }
    let unused: Vec<_> =
        declared().into_keys().filter(|name| !text.contains(&format!("{name}("))).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

/// Members of a structure, or constants of an enumeration, of the header.
fn parts(of: &str) -> Vec<String> {
    let header = words(&header());
    let (_, body) = header.split_once(&format!("{of} {{")).unwrap_or_else(|| panic!("no {of}"));
    let body = &body[..body.find('}').expect("it ends")];
    let parts = body.split([',', ';']).map(|part| part.trim().to_owned());
    parts.filter(|part| !part.is_empty()).collect()
}

/// Fields of a structure of the crate, as C has them.
fn fields(file: &str, of: &str) -> Vec<String> {
    let text = words(&fs::read_to_string(crate_folder().join("src").join(file)).expect("UTF-8"));
    let (_, body) = text.split_once(&format!("struct {of} {{")).expect("the structure is there");
    let fields = body[..body.find('}').expect("it ends")].split(',');
    let fields = fields.filter_map(|field| field.trim().split_once(": "));
    let spelled = |kind: &str| if kind == "u32" { "uint32_t".into() } else { in_c(kind) };
    fields.map(|(name, kind)| format!("{} {name}", spelled(kind)).replace("* ", " *")).collect()
}

#[test]
fn structures_have_the_same_members() {
    assert_eq!(parts("struct pumice_window"), fields("window.rs", "Window"));
    assert_eq!(parts("struct pumice_options"), fields("dataset.rs", "Options"));
}

#[test]
fn constants_are_numbered_in_their_order() {
    for name in ["pumice_status", "pumice_type", "pumice_mode", "pumice_kind"] {
        for (number, constant) in parts(&format!("enum {name}")).into_iter().enumerate() {
            assert!(constant.ends_with(&format!(" = {number}")), "{name}: {constant}");
        }
    }
    let status: Vec<_> = parts("enum pumice_status");
    let text = fs::read_to_string(crate_folder().join("src/fault.rs")).expect("UTF-8");
    for (number, constant) in status.iter().enumerate().skip(1) {
        let words = constant.trim_start_matches("PUMICE_").split(" = ").next().unwrap_or_default();
        let camel: String = words.split('_').map(capitalized).collect();
        let number = if camel == "Internal" { "INTERNAL".into() } else { number.to_string() };
        assert!(text.contains(&format!("(ErrorKind::{camel}, {number}, ")), "{constant}");
    }
}

fn capitalized(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_owned() + &rest.to_lowercase()
}
