//! ZIP archives, as far as NumPy uses them: members stored or deflated, sizes of 64 bits.

use anyhow::{Context, Result, bail, ensure};
use flate2::read::DeflateDecoder;
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
    /// Where its local header is.
    offset: u64,
}

/// An archive to read from.
pub(super) struct Archive {
    path: PathBuf,
    pub(super) members: Vec<Member>,
}

impl Archive {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let mut file = super::text_file::open_file(path)?;
        let members = directory(&mut file);
        let members = members.with_context(|| format!("{}: as a ZIP archive", path.display()))?;
        Ok(Self { path: path.to_owned(), members })
    }

    pub(super) fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }

    /// The bytes of a member, each time from its beginning.
    pub(super) fn read(&self, member: &Member) -> Result<Box<dyn Read>> {
        let mut file = super::text_file::open_file(&self.path)?;
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

/// Sizes, those from the extra field that did not fit into 32 bits.
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

/// An archive that is being written. Members are deflated.
pub(super) struct Writer {
    file: BufWriter<File>,
    /// What is written so far.
    length: u64,
    central: Vec<u8>,
    members: u64,
}

impl Writer {
    pub(super) fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("create {}", path.display()))?;
        let file = BufWriter::with_capacity(256 << 10, file);
        Ok(Self { file, length: 0, central: Vec::new(), members: 0 })
    }

    /// Adds a member, whose bytes `fill` writes.
    pub(super) fn member(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let offset = self.length;
        self.put(&local_header(name, [0; 3]))?;
        let begin = self.length;
        let (crc, packed, size) = deflate(&mut self.file, fill)?;
        self.length += packed;
        let sizes = [u64::from(crc), packed, size];
        // The header is written again, now that its numbers are known.
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(&local_header(name, sizes))?;
        self.file.seek(SeekFrom::Start(begin + packed))?;
        self.central.extend(central_header(name, sizes, offset));
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

/// Writes deflated bytes; returns their sum, and how many there are of them and before.
fn deflate(
    file: &mut BufWriter<File>,
    fill: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<(u32, u64, u64)> {
    let counted = Counted { inner: file, count: 0 };
    let encoder = flate2::write::DeflateEncoder::new(counted, flate2::Compression::default());
    let mut sums = Summed { inner: encoder, crc: flate2::Crc::new(), count: 0 };
    fill(&mut sums)?;
    let Summed { inner, crc, count } = sums;
    Ok((crc.sum(), inner.finish()?.count, count))
}

/// What headers have in common: version, flags, method, date (1 January 1980), sum; sizes are in
/// the extra field.
fn common(sizes: [u64; 3]) -> Vec<u8> {
    let mut bytes = vec![45, 0, 0, 0, 8, 0, 0, 0, 0x21, 0];
    bytes.extend((sizes[0] as u32).to_le_bytes());
    bytes.extend([0xff; 8]);
    bytes
}

fn local_header(name: &str, sizes: [u64; 3]) -> Vec<u8> {
    let mut bytes = LOCAL.to_le_bytes().to_vec();
    bytes.extend(common(sizes));
    bytes.extend((name.len() as u16).to_le_bytes());
    bytes.extend(20u16.to_le_bytes());
    bytes.extend(name.as_bytes());
    bytes.extend(EXTRA_64.to_le_bytes());
    bytes.extend(16u16.to_le_bytes());
    bytes.extend(sizes[2].to_le_bytes());
    bytes.extend(sizes[1].to_le_bytes());
    bytes
}

fn central_header(name: &str, sizes: [u64; 3], offset: u64) -> Vec<u8> {
    let mut bytes = CENTRAL.to_le_bytes().to_vec();
    bytes.extend([45, 0]);
    bytes.extend(common(sizes));
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

struct Summed<W> {
    inner: W,
    crc: flate2::Crc,
    count: u64,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.crc.update(&bytes[..written]);
        self.count += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}
