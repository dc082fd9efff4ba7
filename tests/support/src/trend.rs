//! Decides whether a sampled quantity grows.
//!
//! A process's memory rises and falls with its work, while a leak stays. So the series is cut into windows, and the minimum of each window
//! counts: the level to which the quantity returns. The first quarter is left out, because a process grows at its start. The series grows
//! if two tests hold for the other windows. First, their order is not random (the Mann-Kendall test at a significance of 1 in 10,000).
//! Second, the rise from the first to the last window (by the Theil-Sen slope) is above the allowed one. A series with high variance may
//! rise far, but not in order. For memory, the largest rises between two windows are ignored: an allocator keeps the memory of a peak, and
//! a leak is visible in all the other windows as well.

/// The result for a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// The median of the first quarter's samples.
    pub first: f64,
    /// The median of the last quarter's samples.
    pub last: f64,
    /// The rise of the level over the last three quarters.
    pub rise: f64,
    /// The Mann-Kendall statistic in standard deviations.
    pub order: f64,
    /// Whether the series grows.
    pub grows: bool,
}

/// The number of windows in the last three quarters.
const WINDOWS: usize = 30;

/// The quantile for a significance of 1 in 10,000.
const SURE: f64 = 3.72;

impl Trend {
    /// Judges samples at equal distances. For a meaningful result each window needs at least four.
    #[must_use]
    pub fn of(samples: &[f64], allowed: f64, forgiven: usize) -> Self {
        let quarter = samples.len() / 4;
        assert!(quarter > 0, "a series has samples");
        let judged = &samples[quarter..];
        let size = judged.len().div_ceil(WINDOWS).max(1);
        let levels: Vec<f64> =
            judged.chunks(size).map(|window| window.iter().copied().fold(f64::INFINITY, f64::min)).collect();
        let levels = without_jumps(&levels, forgiven);
        let order = order(&levels);
        #[expect(clippy::cast_precision_loss, reason = "a few windows")]
        let rise = slope(&levels) * levels.len().saturating_sub(1) as f64;
        Self {
            first: median(samples[..quarter].to_vec()),
            last: median(samples[samples.len() - quarter..].to_vec()),
            rise,
            order,
            grows: order > SURE && rise > allowed,
        }
    }
}

/// The levels with the largest jumps removed.
fn without_jumps(levels: &[f64], forgiven: usize) -> Vec<f64> {
    let rise = |window: usize| levels[window] - levels[window - 1];
    let mut jumps: Vec<usize> = (1..levels.len()).filter(|window| rise(*window) > 0.0).collect();
    jumps.sort_by(|one, other| rise(*other).total_cmp(&rise(*one)));
    jumps.truncate(forgiven);
    let before = |window: usize| jumps.iter().filter(|jump| **jump <= window).map(|jump| rise(*jump)).sum::<f64>();
    levels.iter().enumerate().map(|(window, level)| level - before(window)).collect()
}

/// The Mann-Kendall statistic: rising pairs minus falling pairs, in standard deviations of a random order; ties don't count.
fn order(levels: &[f64]) -> f64 {
    let surplus: f64 = pairs(levels).map(|(_, rise)| if rise > 0.0 { 1.0 } else { -f64::from(rise < 0.0) }).sum();
    #[expect(clippy::cast_precision_loss, reason = "a few windows")]
    let spread = |n: usize| (n * n.saturating_sub(1) * (2 * n + 5)) as f64 / 18.0;
    let mut sorted = levels.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(|one, next| one.total_cmp(next).is_eq()).map(|tie| spread(tie.len())).sum();
    let deviation = (spread(levels.len()) - ties).sqrt();
    // The continuity correction.
    if deviation == 0.0 { 0.0 } else { (surplus - surplus.signum()) / deviation }
}

/// The median of all pairs' slopes, per window (Theil-Sen).
fn slope(levels: &[f64]) -> f64 {
    let slopes: Vec<f64> = pairs(levels).map(|(distance, rise)| rise / distance).collect();
    if slopes.is_empty() { 0.0 } else { median(slopes) }
}

/// The distance and the rise of every pair, with the earlier one first.
fn pairs(levels: &[f64]) -> impl Iterator<Item = (f64, f64)> {
    levels.iter().enumerate().flat_map(|(index, earlier)| {
        #[expect(clippy::cast_precision_loss, reason = "a few windows")]
        let of = move |(distance, later): (usize, &f64)| ((distance + 1) as f64, later - earlier);
        levels[index + 1..].iter().enumerate().map(of)
    })
}

/// The median.
fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    let middle = samples.len() / 2;
    if samples.len() % 2 == 1 { samples[middle] } else { f64::midpoint(samples[middle - 1], samples[middle]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half an hour with a sample every five seconds.
    const SAMPLES: u32 = 360;

    /// Pseudo-random numbers from 0 to 1.
    fn noise() -> impl Iterator<Item = f64> {
        let mut state = 1_u32;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state >> 8) / f64::from(1 << 24)
        })
    }

    fn series(value: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        (0..SAMPLES).zip(noise()).map(|(index, noise)| value(f64::from(index) / f64::from(SAMPLES), noise)).collect()
    }

    #[test]
    fn a_leak_is_found_although_the_quantity_varies() {
        // Five descriptors leak in half an hour, while the number in use varies by ten.
        let leak = series(|at, noise| 40.0 + (5.0 * at).floor() + if noise > 0.6 { 10.0 } else { 0.0 });
        let trend = Trend::of(&leak, 0.5, 0);
        assert!(trend.grows && trend.rise > 2.0, "{trend:?}");
        // A kilobyte leaks per second, with a noise of as much as leaks in a minute.
        let leak = series(|at, noise| 8e6 + 1.8e6 * at + 60e3 * noise);
        assert!(Trend::of(&leak, 100e3, 2).grows);
    }

    #[test]
    fn a_series_that_varies_or_falls_does_not_grow() {
        assert!(!Trend::of(&series(|_, noise| 40.0 + (10.0 * noise).floor()), 0.5, 0).grows);
        assert!(!Trend::of(&series(|_, _| 12.0), 0.5, 0).grows);
        assert!(!Trend::of(&series(|at, noise| 40.0 - 5.0 * at + noise), 0.5, 0).grows);
    }

    #[test]
    fn a_warm_up_and_ignored_steps_do_not_grow() {
        assert!(!Trend::of(&series(|at, _| 8e6 + 4e6 * at.min(0.2)), 100e3, 2).grows);
        let steps = series(|at, noise| {
            let steps = f64::from(at > 0.5) + f64::from(at > 0.7);
            8e6 + 600e3 * steps + 20e3 * noise
        });
        assert!(!Trend::of(&steps, 100e3, 2).grows);
        assert!(Trend::of(&steps, 100e3, 0).grows, "no step is ignored");
    }

    #[test]
    fn random_series_rarely_count_as_growing() {
        let mut noise = noise();
        let wrong = (0..300).filter(|_| Trend::of(&noise.by_ref().take(360).collect::<Vec<_>>(), 0.0, 0).grows).count();
        assert!(wrong <= 1, "{wrong} of 300");
    }
}
