//! The Zstandard filter (id 32015), as the registered plugin writes it: one frame, one parameter,
//! the level.
//!
//! Each thread keeps the compressors of the levels that it used last, and a decompressor. Frames that do not record their content
//! size, and several frames in a row, are accepted on reading.
//!
//! Two things help numbers that went through shuffle before, and leave the frame an ordinary one.
//! Blocks end where a plane of bytes ends, so that each plane gets codes of its own; the lengths behind
//! the text of a heap are such a plane, too. And where
//! looking for repetitions does not pay, which a sample of each plane tells ([`promise`]), it is left out: noise in
//! the low bytes of numbers repeats only by chance, and chance repetitions cost more than they save. Rows or labels
//! that come again far behind are not seen in a sample, so a few phrases are looked for everywhere ([`far`]).

mod far;
mod promise;

use crate::{DatasetFacts, Filter, FilterError, registry, scratch};
use far::Sampled;
use promise::Promise;
use pumice_wide::widely;
use std::cell::RefCell;
use std::io;
use std::ops::Range;
use zstd::bulk::Decompressor;
use zstd::zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd::zstd_safe::{self, CCtx, CParameter, InBuffer, OutBuffer, ParamSwitch, ResetDirective};

const NAME: &str = "zstd";

/// Zstandard's own default.
const DEFAULT_LEVEL: u32 = 3;

/// Planes of this many bytes get blocks of their own, and shorter ones down to the least if they are few. Many short ones
/// would be mostly headers and codes.
const LONG_PLANE: usize = 512;
const LEAST_PLANE: usize = 64;
const FEW_PLANES: usize = 64;

/// Fewer bytes than this behind the last plane are no plane of their own.
const REMAINDER: usize = 512;

/// The levels for which a thread keeps compressors: sections of one chunk may differ.
const LEVELS: usize = 2;

/// A block of a frame has at least 4 bytes and at most 128 KiB of content.
const BLOCK_CONTENT: usize = 128 << 10;
const BLOCK_SIZE: usize = 4;

/// Levels above this always search for repetitions: their caller prefers to wait.
const PATIENT_LEVEL: i32 = 6;

/// Frames that are made plane by plane are collected in a buffer as large as the window. One that the
/// whole input fits into is never reused within a frame, which is quicker; up to this, it is made.
const WIDE_WINDOW: u32 = 21;

/// The window that Zstandard chooses for large inputs at its fastest level.
const FASTEST_WINDOW: u32 = 19;

/// The fastest level, and the size of its table for text in front of numbers, such as a heap and its lengths: half of
/// what it would be, so that it stays in the nearest cache. A million strings of 5 to 40 bytes are written in 6 % less
/// time, and take 2.6 % more bytes.
const FASTEST_LEVEL: i32 = 1;
const TEXT_TABLE: u32 = 13;

/// The level at which repetitions are hardly looked for.
const NO_MATCHES: i32 = -131_072;

/// The part of a plane that is sampled, within these bounds.
const SAMPLE_SHARE: usize = 16;
const SAMPLE_BYTES: (usize, usize) = (1 << 10, 4 << 10);

/// The most planes of which samples are taken.
const SAMPLED_PLANES: usize = 32;

/// Zstandard's code for a buffer without room.
const TOO_SMALL: usize = 70usize.wrapping_neg();

thread_local! {
    /// The one that was used last comes first.
    static COMPRESSORS: RefCell<Vec<Compressor>> = const { RefCell::new(Vec::new()) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

pub(crate) struct Zstandard;

impl Filter for Zstandard {
    fn id(&self) -> u16 {
        registry::ZSTD
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn parameters_for(
        &self,
        parameters: &[u32],
        _dataset: &DatasetFacts<'_>,
    ) -> Result<Vec<u32>, FilterError> {
        level(parameters)?;
        Ok(parameters.to_vec())
    }

    fn encode(
        &self,
        parameters: &[u32],
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        self.encode_planes(parameters, input, input.len(), out)
    }

    fn encode_planes(
        &self,
        parameters: &[u32],
        input: &[u8],
        plane: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let (level, plane) = (level(parameters)?, plane.max(1));
        // Every block but the last may be cut short, and has a header.
        let blocks = if plane >= LEAST_PLANE { input.len() / plane + 1 } else { 1 };
        let most = zstd_safe::compress_bound(input.len()).saturating_add(16 * blocks);
        scratch::room(NAME, out, most)?;
        let encoded = COMPRESSORS.with_borrow_mut(|kept| {
            let compressor = match kept.iter().position(|kept| kept.level == level) {
                Some(place) => kept.remove(place),
                None => Compressor::new(level)?,
            };
            kept.truncate(LEVELS - 1);
            kept.insert(0, compressor);
            kept[0].compress(input, plane, out)
        });
        encoded.map_err(|error| FilterError::encode(NAME, zstd_safe::get_error_name(error)))
    }

    fn decode(
        &self,
        _parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let most = most_content(input, limit)?;
        // Initialised bytes are used if there are enough, else spare capacity.
        if out.len() < most {
            out.clear();
            out.try_reserve_exact(most)
                .map_err(|_| FilterError::Memory { filter: NAME, bytes: most })?;
        }
        let decoded = DECOMPRESSOR.with_borrow_mut(|kept| {
            let decompressor = match kept {
                Some(decompressor) => decompressor,
                None => kept.insert(Decompressor::new()?),
            };
            decompress(decompressor, input, most, out)
        });
        match decoded {
            Ok(()) if out.len() <= limit => Ok(()),
            Ok(()) => Err(FilterError::too_large(NAME, limit, out.len())),
            Err(error) => Err(FilterError::corrupt(
                NAME,
                format!("Zstandard frames of at most {limit} byte(s) of content"),
                error,
            )),
        }
    }

    fn decoded_bound(&self, len: usize) -> usize {
        (len / BLOCK_SIZE + 1).saturating_mul(BLOCK_CONTENT)
    }

    fn is_gain(&self, input: &[u8], encoded: &[u8]) -> bool {
        encoded.len() < input.len()
    }
}

/// Compresses at one level, with repetitions or without.
struct Compressor {
    level: i32,
    matches: CCtx<'static>,
    codes: CCtx<'static>,
    sample: Vec<u8>,
}

impl Compressor {
    fn new(level: i32) -> Result<Self, usize> {
        let mut matches = CCtx::create();
        matches.set_parameter(CParameter::CompressionLevel(level))?;
        let mut codes = CCtx::create();
        codes.set_parameter(CParameter::CompressionLevel(NO_MATCHES))?;
        // The output stays where it is until a frame is done: it need not be copied there.
        for context in [&mut matches, &mut codes] {
            context.set_parameter(CParameter::StableOutBuffer(true))?;
        }
        codes.set_parameter(CParameter::LiteralCompressionMode(ParamSwitch::Enable))?;
        Ok(Self { level, matches, codes, sample: Vec::new() })
    }

    /// Fills `out`, which is empty and has room, with one frame with a block border at every multiple of `plane`, unless
    /// that is too short.
    fn compress(&mut self, input: &[u8], plane: usize, out: &mut Vec<u8>) -> Result<(), usize> {
        let few = plane >= LEAST_PLANE && input.len() / plane <= FEW_PLANES;
        let plane = if plane >= LONG_PLANE || few { plane } else { input.len().max(1) };
        let matches = self.level > PATIENT_LEVEL || self.repeats(input, plane)?;
        let context = if matches { &mut self.matches } else { &mut self.codes };
        context.reset(ResetDirective::SessionOnly)?;
        if plane >= input.len() {
            set_sizes(context, 0, 0)?;
            return context.compress2(out, input).map(drop);
        }
        let window = input.len().next_power_of_two().ilog2();
        let wide = (FASTEST_WINDOW..=WIDE_WINDOW).contains(&window) && self.level <= PATIENT_LEVEL;
        // Shuffled numbers have planes of the same length, two at least.
        let text = plane > input.len() - plane && self.level == FASTEST_LEVEL;
        set_sizes(context, if wide { window } else { 0 }, if text { TEXT_TABLE } else { 0 })?;
        context.set_pledged_src_size(Some(input.len() as u64))?;
        let mut place = OutBuffer::around(out);
        let mut done = 0;
        loop {
            // A few bytes that do not fill a plane go with the last one.
            let rest = input.len() - done;
            let last = rest <= plane || (rest < 2 * plane && rest - plane < REMAINDER);
            let border = if last { input.len() } else { done + plane };
            let end =
                if last { ZSTD_EndDirective::ZSTD_e_end } else { ZSTD_EndDirective::ZSTD_e_flush };
            let mut from = InBuffer::around(&input[done..border]);
            let mut written = place.pos();
            while context.compress_stream2(&mut place, &mut from, end)? > 0 {
                if std::mem::replace(&mut written, place.pos()) == place.pos() {
                    return Err(TOO_SMALL);
                }
            }
            if last {
                return Ok(());
            }
            done = border;
        }
    }

    /// Whether searching for repetitions makes samples of the planes shorter, or finds repetitions
    /// beyond a sample.
    fn repeats(&mut self, input: &[u8], plane: usize) -> Result<bool, usize> {
        // No multiple of 2 or 3: numbers have bytes of a kind at every second, fourth or eighth plane, triples of them at
        // every third of these.
        let step = input.len().div_ceil(plane).div_ceil(SAMPLED_PLANES).max(1) | 1;
        let step = if step.is_multiple_of(3) { step + 2 } else { step };
        let planes = input.chunks(plane).step_by(step);
        let samples = planes.clone().map(|plane| &plane[sample_of(plane)]);
        let (mut promise, mut sampled) = (Promise::default(), [Sampled::default(); SAMPLED_PLANES]);
        for ((plane, sample), to) in planes.zip(samples.clone()).zip(&mut sampled) {
            let bits = promise.add(sample);
            *to = Sampled { plane, sample: sample.len(), bits };
        }
        if promise.is_good() && self.try_samples(samples)? {
            return Ok(true);
        }
        Ok(widely(|| far::repeats(&sampled)))
    }

    /// Whether looking for repetitions makes these samples shorter.
    fn try_samples<'a>(&mut self, samples: impl Iterator<Item = &'a [u8]>) -> Result<bool, usize> {
        let (mut with, mut without) = (0, 0);
        for context in [&mut self.matches, &mut self.codes] {
            set_sizes(context, 0, 0)?;
        }
        for sample in samples {
            self.sample.reserve(zstd_safe::compress_bound(sample.len()));
            with += self.matches.compress2(&mut self.sample, sample)?;
            without += self.codes.compress2(&mut self.sample, sample)?;
        }
        Ok(with + with / 64 < without)
    }
}

/// Sets the sizes of window and table, as powers of two or as the level has them (0), for the frames from here on: what
/// others were made with stays otherwise, and the same input would not always give the same bytes.
fn set_sizes(context: &mut CCtx<'_>, window: u32, table: u32) -> Result<(), usize> {
    context.set_parameter(CParameter::WindowLog(window))?;
    context.set_parameter(CParameter::HashLog(table)).map(drop)
}

/// The part of a plane that is tried: in its middle.
fn sample_of(plane: &[u8]) -> Range<usize> {
    let (least, most) = SAMPLE_BYTES;
    let len = (plane.len() / SAMPLE_SHARE).clamp(least, most).min(plane.len());
    let start = (plane.len() - len) / 2;
    start..start + len
}

/// The room to reserve: the length that the frames announce, otherwise the most that they could
/// hold.
fn most_content(input: &[u8], limit: usize) -> Result<usize, FilterError> {
    let possible = Zstandard.decoded_bound(input.len());
    let announced = zstd_safe::get_frame_content_size(input).ok().flatten();
    if let Some(announced) = announced.filter(|announced| *announced > limit as u64) {
        return Err(FilterError::too_large(NAME, limit, announced));
    }
    // Exact if all frames announce their content.
    let most = Decompressor::upper_bound(input).unwrap_or(limit);
    Ok(most.min(possible).min(limit))
}

/// Into initialised bytes of `out` if there are enough, else into its spare capacity, of which there is as much.
fn decompress(
    decompressor: &mut Decompressor<'_>,
    input: &[u8],
    most: usize,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    if let Some(ready) = out.get_mut(..most) {
        let len = decompressor.decompress_to_buffer(input, ready)?;
        out.truncate(len);
        return Ok(());
    }
    out.clear();
    decompressor.decompress_to_buffer(input, out).map(drop)
}

fn level(parameters: &[u32]) -> Result<i32, FilterError> {
    // The plugin stores negative (faster) levels as two's complement.
    let level = parameters.first().copied().unwrap_or(DEFAULT_LEVEL) as i32;
    if zstd::compression_level_range().contains(&level) {
        return Ok(level);
    }
    Err(FilterError::Parameters {
        filter: NAME,
        expected: "a level of at most 22",
        found: level.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(input: &[u8], limit: usize) -> Result<Vec<u8>, FilterError> {
        let mut out = Vec::new();
        Zstandard.decode(&[], input, limit, &mut out).map(|()| out)
    }

    fn encode(level: u32, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Zstandard.encode(&[level], data, &mut out).unwrap();
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn planes_of_any_length_come_back_in_one_frame(
            data in proptest::collection::vec(0u8..200, 0..6000),
            plane in 0usize..7000,
            level in 1u32..9,
        ) {
            let mut out = Vec::new();
            Zstandard.encode_planes(&[level], &data, plane, &mut out).unwrap();
            let announced = zstd_safe::get_frame_content_size(&out).ok().flatten();
            prop_assert_eq!(announced, Some(data.len() as u64));
            prop_assert_eq!(decode(&out, data.len()).unwrap(), data);
        }

        #[test]
        fn data_come_back_within_any_limit_that_is_large_enough(
            data in proptest::collection::vec(0u8..9, 0..4000),
            level in prop_oneof![1u32..8, Just((-3i32) as u32)],
            slack in 0usize..3000,
            ready in 0usize..8000,
        ) {
            let encoded = encode(level, &data);
            prop_assert!(encoded.len() <= Zstandard.encoded_bound(data.len()));
            let mut out = vec![7; ready];
            Zstandard.decode(&[level], &encoded, data.len() + slack, &mut out).unwrap();
            prop_assert_eq!(&out, &data);
            if let Some(less) = data.len().checked_sub(1) {
                prop_assert!(decode(&encoded, less).is_err());
            }
        }

        #[test]
        fn frames_without_content_size_keep_the_limit(
            data in proptest::collection::vec(0u8..9, 1..4000),
        ) {
            let encoded = zstd::stream::encode_all(&data[..], 3).unwrap();
            prop_assert_eq!(zstd_safe::get_frame_content_size(&encoded).ok().flatten(), None);
            prop_assert_eq!(&decode(&encoded, data.len()).unwrap(), &data);
            prop_assert_eq!(&decode(&encoded, usize::MAX).unwrap(), &data);
            prop_assert!(decode(&encoded, data.len() - 1).is_err());
        }
    }

    /// Numbers of 12 bits in the two low planes of four, without pattern.
    fn noise(count: u32) -> Vec<u8> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u32
        };
        let numbers: Vec<u32> = (0..count).map(|_| (next() & next() & 0xFFF) << 4).collect();
        (0..4).flat_map(|byte| numbers.iter().map(move |n| n.to_le_bytes()[byte])).collect()
    }

    #[test]
    fn noise_in_planes_takes_little_more_than_its_entropy_and_repetition_is_found() {
        let data = noise(20_000);
        let mut out = Vec::new();
        Zstandard.encode_planes(&[3], &data, 20_000, &mut out).unwrap();
        // 12 bits that are one in a quarter of the cases: 0.811 bits each.
        assert!(out.len() < 20_000 * 10 / 8, "{}", out.len());
        assert!(out.len() < encode(3, &data).len());
        let phrase = noise(200);
        let repeated: Vec<u8> = phrase.iter().copied().cycle().take(80_000).collect();
        Zstandard.encode_planes(&[3], &repeated, 20_000, &mut out).unwrap();
        assert!(out.len() < 2000, "{}", out.len());
    }

    #[test]
    fn rows_that_come_again_are_stored_once() {
        // Of all lengths, none of which shows in a sample.
        for row in [noise(1_000), noise(5_000), noise(30_000)] {
            let data: Vec<u8> = row.iter().copied().cycle().take(20 * row.len()).collect();
            for plane in [data.len(), data.len() / 4] {
                let mut out = Vec::new();
                Zstandard.encode_planes(&[3], &data, plane, &mut out).unwrap();
                let most = encode(3, &row).len() + data.len() / 200;
                assert!(out.len() < most, "{} of {}: {}", plane, data.len(), out.len());
            }
        }
    }

    #[test]
    fn short_planes_have_blocks_of_their_own_if_they_are_few() {
        let data = noise(20_000);
        let planes = |data: &[u8], plane| {
            let mut out = Vec::new();
            Zstandard.encode_planes(&[3], data, plane, &mut out).unwrap();
            out
        };
        for plane in [1, 3, 100, LONG_PLANE - 1] {
            assert_eq!(planes(&data, plane), encode(3, &data));
        }
        // Two planes of noise and six of zeros, as small numbers have them.
        for count in [300, 511, 512] {
            let numbers = noise(count)[count as usize..3 * count as usize].to_vec();
            let data = [numbers, vec![0; 6 * count as usize]].concat();
            let (apart, together) = (planes(&data, count as usize), encode(3, &data));
            assert!(apart.len() <= together.len(), "{count}: {} {}", apart.len(), together.len());
        }
    }

    #[test]
    fn every_second_of_many_planes_may_repeat() {
        let (noise, row) = (noise(10_000), noise(2500));
        let planes = (0..40).flat_map(|number| match number % 2 {
            0 => noise[number * 500..][..20_000].to_vec(),
            _ => row.iter().copied().cycle().take(20_000).collect::<Vec<u8>>(),
        });
        let data: Vec<u8> = planes.collect();
        let mut out = Vec::new();
        Zstandard.encode_planes(&[3], &data, 20_000, &mut out).unwrap();
        let mut patient = Vec::new();
        Zstandard.encode_planes(&[7], &data, 20_000, &mut patient).unwrap();
        assert!(out.len() < patient.len() * 5 / 4, "{} {}", out.len(), patient.len());
    }

    #[test]
    fn several_frames_follow_each_other() {
        let frames = [encode(3, b"pumice "), encode(1, b"floats")].concat();
        assert_eq!(decode(&frames, 13).unwrap(), b"pumice floats");
        assert!(decode(&frames, 12).is_err());
    }

    #[test]
    fn a_frame_that_announces_more_than_it_can_hold_does_not_allocate_it() {
        // A single segment of 2^50 bytes in one empty block.
        let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0xE0];
        frame.extend_from_slice(&(1u64 << 50).to_le_bytes());
        frame.extend_from_slice(&[1, 0, 0]);
        let mut out = Vec::new();
        assert!(Zstandard.decode(&[], &frame, usize::MAX, &mut out).is_err());
        assert!(out.capacity() <= 1 << 20);
    }

    #[test]
    fn what_was_compressed_before_does_not_matter() {
        // Words of a few thousand, some oftener than others, so that it matters how many places are kept.
        let mut random = 1u64;
        let mut words = std::iter::repeat_with(|| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let word = ((random >> 33) % 3000).min((random >> 45) % 3000);
            (1 + word)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .to_le_bytes()
                .map(|byte| b'a' + byte % 26)
        });
        let text: Vec<u8> = words.by_ref().flatten().take(900_000).collect();
        let planes = |plane: usize| {
            let mut out = Vec::new();
            Zstandard.encode_planes(&[1], &text, plane, &mut out).unwrap();
            out
        };
        let fresh = std::thread::scope(|scope| {
            let each =
                [text.len(), 600_000, 300_000].map(|plane| scope.spawn(move || planes(plane)));
            each.map(|one| one.join().unwrap())
        });
        let [whole, long, thirds] = fresh;
        for _ in 0..2 {
            assert!(planes(600_000) == long && planes(text.len()) == whole);
            assert!(planes(300_000) == thirds && planes(text.len()) == whole);
        }
    }

    #[test]
    fn a_level_beyond_zstandards_own_is_refused() {
        assert!(Zstandard.encode(&[23], b"x", &mut Vec::new()).is_err());
        assert!(Zstandard.encode(&[22], b"x", &mut Vec::new()).is_ok());
    }
}
