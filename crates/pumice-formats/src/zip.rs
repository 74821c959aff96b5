//! ZIP archives, as far as NumPy uses them: members stored or deflated, sizes of 64 bits.

use super::text_file;
use anyhow::{Context, Result, anyhow, bail, ensure};
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use libdeflater::{CompressionLvl, Compressor};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
/// A member's sizes are of 64 bits.
const EXTRA_64: u16 = 1;
/// The longest end record: a comment of 65,535 bytes and what is before it.
const END_ROOM: u64 = 22 + 65_535;
/// Members that are read, at most.
const MAX_MEMBERS: u64 = 1 << 20;

/// A file in an archive.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) name: String,
    deflated: bool,
    packed: u64,
    /// The offset of its local header.
    offset: u64,
}

/// An archive to read from.
pub(super) struct Archive {
    path: PathBuf,
    pub(super) members: Vec<Member>,
}

impl Archive {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let mut file = text_file::open_file(path)?;
        let members = directory(&mut file);
        let members = members.with_context(|| format!("{}: as a ZIP archive", path.display()))?;
        Ok(Self { path: path.to_owned(), members })
    }

    pub(super) fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }

    /// The bytes of a member, each time from its beginning.
    pub(super) fn read(&self, member: &Member) -> Result<Box<dyn Read>> {
        let mut file = text_file::open_file(&self.path)?;
        let mut header = [0; 30];
        file.seek(SeekFrom::Start(member.offset))?;
        file.read_exact(&mut header)?;
        ensure!(
            u32_at(&header, 0) == LOCAL,
            "{}: its header is not where it should be",
            member.name
        );
        let skip = u64::from(u16_at(&header, 26)) + u64::from(u16_at(&header, 28));
        file.seek(SeekFrom::Start(member.offset + 30 + skip))?;
        let bytes = BufReader::with_capacity(256 << 10, file.take(member.packed));
        Ok(match member.deflated {
            true => Box::new(DeflateDecoder::new(bytes)),
            false => Box::new(bytes),
        })
    }
}

/// The list of members at the archive's end.
fn directory(file: &mut File) -> Result<Vec<Member>> {
    let length = file.seek(SeekFrom::End(0))?;
    let start = length.saturating_sub(END_ROOM);
    file.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    file.take(END_ROOM).read_to_end(&mut tail)?;
    let end = (0..tail.len().saturating_sub(21)).rev().find(|&at| u32_at(&tail, at) == END);
    let end = end.context("it has no end record")?;
    let (mut count, mut offset) =
        (u64::from(u16_at(&tail, end + 10)), u64::from(u32_at(&tail, end + 16)));
    if let Some(at) = end.checked_sub(20).filter(|&at| u32_at(&tail, at) == LOCATOR_64) {
        let mut record = [0; 56];
        file.seek(SeekFrom::Start(u64_at(&tail, at + 8)))?;
        file.read_exact(&mut record)?;
        ensure!(u32_at(&record, 0) == END_64, "its end record is not where it should be");
        (count, offset) = (u64_at(&record, 32), u64_at(&record, 48));
    }
    ensure!(count <= MAX_MEMBERS && offset <= length, "its end record makes no sense");
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = BufReader::new(file.take(length - offset));
    (0..count).map(|_| entry(&mut bytes)).collect()
}

fn entry(bytes: &mut impl Read) -> Result<Member> {
    let mut header = [0; 46];
    bytes.read_exact(&mut header)?;
    ensure!(u32_at(&header, 0) == CENTRAL, "its list of members makes no sense");
    let [name, extra, comment] = [28, 30, 32].map(|at| usize::from(u16_at(&header, at)));
    let mut rest = vec![0; name + extra + comment];
    bytes.read_exact(&mut rest)?;
    let name_text = String::from_utf8_lossy(&rest[..name]).into_owned();
    let deflated = match u16_at(&header, 10) {
        0 => false,
        8 => true,
        method => bail!("{name_text}: its compression ({method}) is not known"),
    };
    let sizes = [24, 20, 42].map(|at| u64::from(u32_at(&header, at)));
    let [_, packed, offset] = wide_sizes(sizes, &rest[name..name + extra]);
    Ok(Member { name: name_text, deflated, packed, offset })
}

/// Sizes, from the extra field where 32 bits were too few.
fn wide_sizes(mut sizes: [u64; 3], mut extra: &[u8]) -> [u64; 3] {
    while extra.len() >= 4 {
        let (id, length) = (u16_at(extra, 0), usize::from(u16_at(extra, 2)));
        let body = extra.get(4..4 + length).unwrap_or_default();
        if id == EXTRA_64 {
            let mut numbers = body.chunks_exact(8);
            for size in sizes.iter_mut().filter(|size| **size == u64::from(u32::MAX)) {
                *size = numbers.next().map_or(*size, |number| u64_at(number, 0));
            }
        }
        extra = extra.get(4 + length..).unwrap_or_default();
    }
    sizes
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let mut number = [0; 2];
    if let Some(bytes) = bytes.get(at..at + 2) {
        number.copy_from_slice(bytes);
    }
    u16::from_le_bytes(number)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// An archive that is being written.
pub(super) struct Writer {
    file: BufWriter<File>,
    path: PathBuf,
    /// Whether members are deflated.
    deflates: bool,
    /// Bytes written so far.
    length: u64,
    central: Vec<u8>,
    members: u64,
    /// The number of members begun in temporary files.
    aside: u64,
}

impl Writer {
    pub(super) fn create(path: &Path, deflates: bool) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("create {}", path.display()))?;
        let file = BufWriter::with_capacity(256 << 10, file);
        let (length, central, path) = (0, Vec::new(), path.to_owned());
        Ok(Self { file, path, deflates, length, central, members: 0, aside: 0 })
    }

    /// Adds a member whose bytes `fill` writes.
    pub(super) fn member(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let mut member = self.aside(name)?;
        fill(&mut member)?;
        self.append(member)
    }

    /// Begins a member that is written to a temporary file, perhaps together with others, until it
    /// is appended.
    pub(super) fn aside(&mut self, name: &str) -> Result<NewMember> {
        self.aside += 1;
        let path = self.path.with_extension(format!("member{}", self.aside));
        let action = || format!("write a temporary file {}", path.display());
        let file = crate::nameless(&path).with_context(action)?;
        let counted = Counted { inner: BufWriter::with_capacity(256 << 10, file), count: 0 };
        let packer = match self.deflates {
            true => Packer::Held(Vec::new(), counted),
            false => Packer::Stored(counted),
        };
        Ok(NewMember { name: name.to_owned(), packer, crc: flate2::Crc::new(), count: 0 })
    }

    /// Adds a member that is complete.
    pub(super) fn append(&mut self, member: NewMember) -> Result<()> {
        let NewMember { name, packer, crc, count } = member;
        let packed = match packer {
            Packer::Held(bytes, mut out) => {
                out.write_all(&deflated(&bytes)?)?;
                out
            }
            Packer::Deflated(encoder) => encoder.finish()?,
            Packer::Stored(out) => out,
            Packer::Broken => bail!("{name}: a part of it was not written"),
        };
        let sizes = [u64::from(crc.sum()), packed.count, count];
        let offset = self.length;
        self.put(&local_header(&name, self.deflates, sizes))?;
        let mut file = packed.inner.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.rewind()?;
        self.file.flush()?;
        // From file to file, which the system does by itself.
        let copied = std::io::copy(&mut file, self.file.get_mut())?;
        ensure!(copied == packed.count, "{name}: expected {} bytes, found {copied}", packed.count);
        self.length += copied;
        self.central.extend(central_header(&name, self.deflates, sizes, offset));
        self.members += 1;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.length += bytes.len() as u64;
        Ok(self.file.write_all(bytes)?)
    }

    pub(super) fn finish(mut self) -> Result<()> {
        let (start, length) = (self.length, self.central.len() as u64);
        let central = std::mem::take(&mut self.central);
        self.put(&central)?;
        let end = self.length;
        let mut tail = Vec::new();
        tail.extend(END_64.to_le_bytes());
        tail.extend(44u64.to_le_bytes());
        tail.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        for number in [self.members, self.members, length, start] {
            tail.extend(number.to_le_bytes());
        }
        tail.extend(LOCATOR_64.to_le_bytes());
        tail.extend(0u32.to_le_bytes());
        tail.extend(end.to_le_bytes());
        tail.extend(1u32.to_le_bytes());
        tail.extend(END.to_le_bytes());
        let members = u16::try_from(self.members).unwrap_or(u16::MAX);
        tail.extend([0; 4]);
        tail.extend(members.to_le_bytes());
        tail.extend(members.to_le_bytes());
        tail.extend(u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
        tail.extend(u32::try_from(start).unwrap_or(u32::MAX).to_le_bytes());
        tail.extend([0; 2]);
        self.put(&tail)?;
        Ok(self.file.flush()?)
    }
}

/// A member on its way into an archive.
pub(super) struct NewMember {
    name: String,
    packer: Packer<Counted<BufWriter<File>>>,
    crc: flate2::Crc,
    count: u64,
}

/// Bytes of a member that are buffered: a compressor that gets all of them at once is much faster.
const HELD: usize = 64 << 20;
/// The compression levels of buffered members, and of longer ones.
const LEVEL: i32 = 6;
const STREAM_LEVEL: u32 = 3;

/// Bytes as they are stored.
enum Packer<W: Write> {
    /// Bytes that are deflated at once, unless there are too many.
    Held(Vec<u8>, W),
    Deflated(DeflateEncoder<W>),
    Stored(W),
    /// A write failed.
    Broken,
}

impl<W: Write> Packer<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Held(held, _) if held.len().saturating_add(bytes.len()) <= HELD => {
                held.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            Self::Held(..) => {
                let Self::Held(held, out) = std::mem::replace(self, Self::Broken) else {
                    return Err(std::io::ErrorKind::Other.into());
                };
                let level = flate2::Compression::new(STREAM_LEVEL);
                let mut encoder = DeflateEncoder::new(out, level);
                encoder.write_all(&held)?;
                *self = Self::Deflated(encoder);
                self.write(bytes)
            }
            Self::Deflated(encoder) => encoder.write(bytes),
            Self::Stored(out) => out.write(bytes),
            Self::Broken => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// Bytes, deflated at once.
fn deflated(bytes: &[u8]) -> Result<Vec<u8>> {
    let level = CompressionLvl::new(LEVEL).map_err(|_| anyhow!("no level {LEVEL} of deflate"))?;
    let mut compressor = Compressor::new(level);
    let mut packed = vec![0; compressor.deflate_compress_bound(bytes.len())];
    let length = compressor.deflate_compress(bytes, &mut packed);
    packed.truncate(length.map_err(|error| anyhow!("deflate: {error}"))?);
    Ok(packed)
}

impl Write for NewMember {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.packer.write(bytes)?;
        self.crc.update(&bytes[..written]);
        self.count += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        // The output is complete when the member is.
        Ok(())
    }
}

/// Common fields of headers: version, flags, method, date (1 January 1980), sum; sizes are in the
/// extra field.
fn common(deflated: bool, sizes: [u64; 3]) -> Vec<u8> {
    let method = if deflated { 8 } else { 0 };
    let mut bytes = vec![45, 0, 0, 0, method, 0, 0, 0, 0x21, 0];
    bytes.extend((sizes[0] as u32).to_le_bytes());
    bytes.extend([0xff; 8]);
    bytes
}

fn local_header(name: &str, deflated: bool, sizes: [u64; 3]) -> Vec<u8> {
    let mut bytes = LOCAL.to_le_bytes().to_vec();
    bytes.extend(common(deflated, sizes));
    bytes.extend((name.len() as u16).to_le_bytes());
    bytes.extend(20u16.to_le_bytes());
    bytes.extend(name.as_bytes());
    bytes.extend(EXTRA_64.to_le_bytes());
    bytes.extend(16u16.to_le_bytes());
    bytes.extend(sizes[2].to_le_bytes());
    bytes.extend(sizes[1].to_le_bytes());
    bytes
}

fn central_header(name: &str, deflated: bool, sizes: [u64; 3], offset: u64) -> Vec<u8> {
    let mut bytes = CENTRAL.to_le_bytes().to_vec();
    bytes.extend([45, 0]);
    bytes.extend(common(deflated, sizes));
    bytes.extend((name.len() as u16).to_le_bytes());
    bytes.extend(28u16.to_le_bytes());
    bytes.extend([0; 10]);
    bytes.extend([0xff; 4]);
    bytes.extend(name.as_bytes());
    bytes.extend(EXTRA_64.to_le_bytes());
    bytes.extend(24u16.to_le_bytes());
    for number in [sizes[2], sizes[1], offset] {
        bytes.extend(number.to_le_bytes());
    }
    bytes
}

struct Counted<W> {
    inner: W,
    count: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.count += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}
