//! DDL: names and layout, and the datatypes in real outputs of h5dump read and written again.

use std::fs;
use std::path::{Path, PathBuf};

use pumice_types::{
    Bitfield, ByteOrder, CharacterSet, Complex, Compound, Datatype, Enumeration, FixedString,
    Float, Integer, MantissaNormalization, Member, Reference, ReferenceKind, StringPadding, Time,
    VarLen, ddl,
};

#[test]
fn numbers_have_their_standard_names() {
    let names = [
        (Datatype::i8(), "H5T_STD_I8LE"),
        (Datatype::u16_be(), "H5T_STD_U16BE"),
        (Datatype::i32_le(), "H5T_STD_I32LE"),
        (Datatype::u64_le(), "H5T_STD_U64LE"),
        (Datatype::f16_be(), "H5T_IEEE_F16BE"),
        (Datatype::f32_le(), "H5T_IEEE_F32LE"),
        (Datatype::f64_be(), "H5T_IEEE_F64BE"),
        (Datatype::bf16_le(), "H5T_FLOAT_BFLOAT16LE"),
        (narrow(8, 4, 3), "H5T_FLOAT_F8E4M3"),
        (narrow(8, 5, 2), "H5T_FLOAT_F8E5M2"),
        (narrow(6, 2, 3), "H5T_FLOAT_F6E2M3"),
        (narrow(6, 3, 2), "H5T_FLOAT_F6E3M2"),
        (narrow(4, 2, 1), "H5T_FLOAT_F4E2M1"),
        (Bitfield::new(8, ByteOrder::Big).into(), "H5T_STD_B64BE"),
        (Complex { base: Float::single(ByteOrder::Little) }.into(), "H5T_COMPLEX_IEEE_F32LE"),
        (
            Time { size: 4, order: ByteOrder::Little, precision: 32 }.into(),
            "H5T_TIME: not yet implemented",
        ),
    ];
    for (datatype, name) in names {
        assert_eq!(datatype.to_string(), name);
    }
}

/// A float of a few bits of a byte, as HDF5 2.0 has them.
fn narrow(precision: u16, exponent: u8, mantissa: u8) -> Datatype {
    Float { precision, ..Float::ieee(1, ByteOrder::Little, exponent, mantissa) }.into()
}

#[test]
fn vax_floats_have_their_names() {
    let vax = |base: Float, exponent_bias| Datatype::Float(Float { exponent_bias, ..base });
    assert_eq!(vax(Float::single(ByteOrder::Vax), 0x81).to_string(), "H5T_VAX_F32");
    assert_eq!(vax(Float::double(ByteOrder::Vax), 0x401).to_string(), "H5T_VAX_F64");
}

#[test]
fn odd_numbers_are_described() {
    let short = Integer { precision: 17, ..Integer::new(4, ByteOrder::Little, true) };
    assert_eq!(Datatype::from(short).to_string(), "32-bit little-endian integer 17-bit precision");
    let byte = Integer { precision: 3, ..Integer::new(1, ByteOrder::Big, false) };
    assert_eq!(Datatype::from(byte).to_string(), "8-bit unsigned integer 3-bit precision");
    let extended = Float {
        precision: 80,
        normalization: MantissaNormalization::None,
        ..Float::ieee(16, ByteOrder::Little, 15, 64)
    };
    let words = "128-bit little-endian floating-point 80-bit precision";
    assert_eq!(Datatype::from(extended).to_string(), words);
    let bits = Bitfield { precision: 3, ..Bitfield::new(2, ByteOrder::Big) };
    assert_eq!(Datatype::from(bits).to_string(), "undefined bitfield");
}

#[test]
fn references_have_their_names() {
    let named = |kind| Datatype::Reference(Reference { size: 8, kind }).to_string();
    assert_eq!(named(ReferenceKind::Object), "H5T_REFERENCE { H5T_STD_REF_OBJECT }");
    assert_eq!(named(ReferenceKind::Region), "H5T_REFERENCE { H5T_STD_REF_DSETREG }");
    assert_eq!(named(ReferenceKind::Object2 { version: 1 }), "H5T_REFERENCE { H5T_STD_REF }");
}

#[test]
fn strings_and_opaque_types_take_lines() {
    let text = concat!(
        "H5T_STRING {\n",
        "   STRSIZE 5;\n",
        "   STRPAD H5T_STR_NULLPAD;\n",
        "   CSET H5T_CSET_ASCII;\n",
        "   CTYPE H5T_C_S1;\n",
        "}",
    );
    assert_eq!(Datatype::fixed_string(5).to_string(), text);
    let inner = concat!(
        "H5T_STRING {\n",
        "      STRSIZE H5T_VARIABLE;\n",
        "      STRPAD H5T_STR_NULLTERM;\n",
        "      CSET H5T_CSET_UTF8;\n",
        "      CTYPE H5T_C_S1;\n",
        "   }",
    );
    assert_eq!(ddl::indented(&Datatype::varlen_string(16), 3).to_string(), inner);
    assert_eq!(Datatype::opaque(2, "tag").to_string(), "H5T_OPAQUE {\n   OPAQUE_TAG \"tag\";\n}");
}

#[test]
fn enumerations_align_short_names() {
    let base = Integer::new(2, ByteOrder::Big, true);
    let colors =
        Enumeration::new(base).with("RED", &[0, 1]).with("A_NAME_OF_20_LETTERS", &[0xFF, 0xFE]);
    let text = concat!(
        "H5T_ENUM {\n",
        "   H5T_STD_I16BE;\n",
        "   \"RED\"              1;\n",
        "   \"A_NAME_OF_20_LETTERS\" -2;\n",
        "}",
    );
    assert_eq!(Datatype::from(colors).to_string(), text);
}

#[test]
fn arrays_and_sequences_open_in_their_line() {
    let pair = Datatype::compound([
        ("i", Datatype::i32_le()),
        ("f", Datatype::array(Datatype::f32_le(), [4])),
    ]);
    let nested = Datatype::varlen(Datatype::array(pair, [2, 3]), 16);
    let text = concat!(
        "H5T_VLEN { H5T_ARRAY { [2][3] H5T_COMPOUND {\n",
        "   H5T_STD_I32LE \"i\";\n",
        "   H5T_ARRAY { [4] H5T_IEEE_F32LE } \"f\";\n",
        "} } }",
    );
    assert_eq!(nested.to_string(), text);
    let line = concat!(
        "H5T_VLEN { H5T_ARRAY { [2][3] H5T_COMPOUND { H5T_STD_I32LE \"i\"; ",
        "H5T_ARRAY { [4] H5T_IEEE_F32LE } \"f\"; } } }",
    );
    assert_eq!(ddl::inline(&nested).to_string(), line);
}

#[test]
fn real_outputs_are_read_and_written_alike() {
    let root = std::env::var_os("PUMICE_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora"),
        PathBuf::from,
    );
    if !root.is_dir() {
        eprintln!("skipped: no corpus at {}", root.display());
        return;
    }
    let mut checked = 0;
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if is_dump(&path) {
                checked += check_dump(&path, &fs::read(&path).unwrap());
            }
        }
    }
    eprintln!("{checked} datatypes agree");
}

fn is_dump(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.ends_with(".ddl") || (name.starts_with("h5dump") && name.ends_with(".txt"))
}

/// Reads every datatype of a dump that is spelled out and compares what is written for it.
fn check_dump(path: &Path, bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let mut checked = 0;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        if let Some(rest) = line.trim_start().strip_prefix("DATATYPE  ")
            && !rest.starts_with('"')
        {
            let mut parser = Parser { rest: &text[start + line.len() - rest.len()..] };
            let before = parser.rest.len();
            if let Some(datatype) = parser.datatype() {
                let used = before - parser.rest.len();
                let at = start + line.len() - rest.len();
                let expected = &text[at..at + used];
                assert_eq!(
                    ddl::indented(&datatype, indent).to_string(),
                    expected,
                    "{}",
                    path.display()
                );
                checked += 1;
            }
        }
        start += line.len();
    }
    checked
}

/// Reads DDL; gives up on what it does not know.
struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn eat(&mut self, token: &str) -> Option<()> {
        self.rest = self.rest.trim_start().strip_prefix(token)?;
        Some(())
    }

    fn word(&mut self) -> Option<&'a str> {
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_-+".contains(c)))?;
        self.rest = &rest[end..];
        Some(&rest[..end])
    }

    fn name(&mut self, end: &str) -> Option<&'a str> {
        self.eat("\"")?;
        let (name, _) = self.rest.split_once(end)?;
        self.rest = &self.rest[name.len() + 1..];
        Some(name)
    }

    fn datatype(&mut self) -> Option<Datatype> {
        let word = self.word()?;
        match word {
            "H5T_STRING" => self.string(),
            "H5T_COMPOUND" => self.compound(),
            "H5T_ENUM" => self.enumeration(),
            "H5T_ARRAY" => self.array(),
            "H5T_OPAQUE" => {
                self.eat("{")?;
                self.eat("OPAQUE_TAG")?;
                let tag = self.name("\";")?;
                self.eat(";")?;
                self.eat("}")?;
                Some(Datatype::opaque(1, tag))
            }
            "H5T_VLEN" => {
                self.eat("{")?;
                let base = self.datatype()?;
                self.eat("}")?;
                Some(Datatype::varlen(base, 16))
            }
            "H5T_REFERENCE" => {
                self.eat("{")?;
                let kind = match self.word()? {
                    "H5T_STD_REF_OBJECT" => ReferenceKind::Object,
                    "H5T_STD_REF_DSETREG" => ReferenceKind::Region,
                    "H5T_STD_REF" => ReferenceKind::Object2 { version: 1 },
                    _ => return None,
                };
                self.eat("}")?;
                Some(Datatype::Reference(Reference { size: 8, kind }))
            }
            _ => number(word),
        }
    }

    fn string(&mut self) -> Option<Datatype> {
        self.eat("{")?;
        self.eat("STRSIZE")?;
        let size = self.word()?;
        self.eat(";")?;
        self.eat("STRPAD")?;
        let padding = match self.word()? {
            "H5T_STR_NULLTERM" => StringPadding::NullTerminate,
            "H5T_STR_NULLPAD" => StringPadding::NullPad,
            _ => StringPadding::SpacePad,
        };
        self.eat(";")?;
        self.eat("CSET")?;
        let charset =
            if self.word()? == "H5T_CSET_UTF8" { CharacterSet::Utf8 } else { CharacterSet::Ascii };
        self.eat(";")?;
        self.eat("CTYPE H5T_C_S1;")?;
        self.eat("}")?;
        Some(match size.parse() {
            Ok(size) => Datatype::String(FixedString { size, padding, charset }),
            Err(_) => Datatype::VarLen(VarLen::string(16, padding, charset)),
        })
    }

    fn compound(&mut self) -> Option<Datatype> {
        self.eat("{")?;
        let mut members = Vec::new();
        while self.eat("}").is_none() {
            let datatype = self.datatype()?;
            let name = self.name("\";")?.to_owned();
            self.eat(";")?;
            members.push(Member { name, offset: 0, datatype });
        }
        Some(Datatype::Compound(Compound { size: 1, members }))
    }

    fn enumeration(&mut self) -> Option<Datatype> {
        self.eat("{")?;
        let Datatype::Integer(base) = self.datatype()? else { return None };
        self.eat(";")?;
        let mut enumeration = Enumeration::new(base.clone());
        while self.eat("}").is_none() {
            let name = self.name("\"")?;
            let value: i128 = self.word()?.parse().ok()?;
            self.eat(";")?;
            let mut bytes = value.to_le_bytes()[..base.size as usize].to_vec();
            if base.order == ByteOrder::Big {
                bytes.reverse();
            }
            enumeration = enumeration.with(name, &bytes);
        }
        Some(Datatype::Enum(enumeration))
    }

    fn array(&mut self) -> Option<Datatype> {
        self.eat("{")?;
        let mut dims = Vec::new();
        while self.eat("[").is_some() {
            dims.push(self.word()?.parse().ok()?);
            self.eat("]")?;
        }
        let base = self.datatype()?;
        self.eat("}")?;
        Some(Datatype::array(base, dims))
    }
}

fn number(word: &str) -> Option<Datatype> {
    let (name, order) = match word.strip_suffix("LE") {
        Some(name) => (name, ByteOrder::Little),
        None => (word.strip_suffix("BE")?, ByteOrder::Big),
    };
    let kind = name.strip_prefix("H5T_STD_").or_else(|| name.strip_prefix("H5T_IEEE_"))?;
    let size = kind.get(1..)?.parse::<u32>().ok()? / 8;
    Some(match (kind.chars().next()?, size) {
        ('I', size) => Integer::new(size, order, true).into(),
        ('U', size) => Integer::new(size, order, false).into(),
        ('B', size) => Bitfield::new(size, order).into(),
        (_, 2) => Float::half(order).into(),
        (_, 4) => Float::single(order).into(),
        _ => Float::double(order).into(),
    })
}
