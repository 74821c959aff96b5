//! The hexadecimal dumps of `docs/format/structured-chunk.md`.

/// The bytes of the dump that is called `name`: a code block that begins with "```hex name". Each
/// line has an offset, bytes, and after a semicolon what they are.
pub(crate) fn bytes(name: &str) -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format/structured-chunk.md");
    let text = std::fs::read_to_string(path).unwrap();
    let opening = format!("```hex {name}");
    let lines = text.lines().skip_while(|line| *line != opening).skip(1);
    let mut bytes = Vec::new();
    for line in lines.take_while(|line| *line != "```") {
        let (dump, _) = line.split_once(';').unwrap_or((line, ""));
        let mut words = dump.split_whitespace();
        let offset = words.next().map(|offset| usize::from_str_radix(offset, 16).unwrap());
        assert_eq!(offset, Some(bytes.len()), "{name}: {line}");
        bytes.extend(words.map(|byte| u8::from_str_radix(byte, 16).unwrap()));
    }
    assert!(!bytes.is_empty(), "no dump is called {name}");
    bytes
}
