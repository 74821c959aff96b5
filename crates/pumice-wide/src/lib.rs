//! Loops compiled a second time, for processors with wide registers.
//!
//! The library is built for every processor of its architecture. A few inner loops run faster with
//! newer instructions, without a changed line: the code that [`widely`] runs is compiled twice, and
//! the processor at hand decides which form is used.

/// Does some work, in wide registers if the processor has them.
///
/// Functions that `work` calls are compiled for them only if they are inlined into it.
///
/// ```
/// let sum: u32 = pumice_wide::widely(|| (0..100).sum());
/// assert_eq!(sum, 4950);
/// ```
#[inline]
pub fn widely<R>(work: impl FnOnce() -> R) -> R {
    run_widely(Call(work))
}

/// Work that is more than a loop: a closure of many lines would not be inlined.
pub trait Work {
    /// The result.
    type Output;

    /// Does it; to be marked `#[inline(always)]`, as must be all that it calls and shall be wide.
    fn run(self) -> Self::Output;
}

struct Call<F>(F);

impl<R, F: FnOnce() -> R> Work for Call<F> {
    type Output = R;

    #[inline(always)]
    fn run(self) -> R {
        (self.0)()
    }
}

/// [`widely`] for work of many lines.
#[inline]
pub fn run_widely<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if Wide::detect().is_some() {
        // SAFETY: the processor has what `in_wide_registers` is compiled for.
        return unsafe { in_wide_registers(work) };
    }
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn in_wide_registers<W: Work>(work: W) -> W::Output {
    work.run()
}

/// Proof that the processor has AVX2 and the instructions that came with it; [`Wide::detect`] alone
/// makes one.
///
/// ```
/// use pumice_wide::Wide;
///
/// // Nobody has one whose processor lacks a part of it.
/// #[cfg(target_arch = "x86_64")]
/// assert!(Wide::detect().is_none() || is_x86_feature_detected!("avx2"));
/// #[cfg(not(target_arch = "x86_64"))]
/// assert!(Wide::detect().is_none());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Wide(());

impl Wide {
    /// A `Wide` if the processor has all of it.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Self(()))
    }

    /// `None`: there are no such loops for this architecture.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn detect() -> Option<Self> {
        None
    }
}
