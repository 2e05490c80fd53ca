//! Whether a worker that has nothing to do looks for more for a while before it sleeps.
//!
//! Waking up costs tens of microseconds, looking costs processor time that others could use. So it looks only while that is worth it: after a
//! look in vain it lets one wait pass without looking, then two, four and so on, until a look finds something again.

use std::time::Duration;

/// For how long it looks; about what waking up costs.
pub const SPIN_TIME: Duration = Duration::from_micros(50);
/// Waits that pass at most without a look.
const SKIP_MAX: u32 = 1 << 10;

/// How looking went so far.
#[derive(Debug, Default)]
pub struct Spin {
    /// Waits to pass without a look after the next look in vain.
    backoff: u32,
    skip: u32,
}

impl Spin {
    /// The worker is about to wait: whether to look first.
    pub fn is_worth_it(&mut self) -> bool {
        if self.skip == 0 {
            return true;
        }
        self.skip -= 1;
        false
    }

    /// It looked; `found` says whether anything came.
    pub fn looked(&mut self, found: bool) {
        if found {
            self.backoff = 0;
        } else {
            self.backoff = (self.backoff * 2).clamp(1, SKIP_MAX);
            self.skip = self.backoff;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of so many waits, in how many it looked.
    fn looks(spin: &mut Spin, waits: usize, found: bool) -> usize {
        (0..waits)
            .filter(|_| {
                let look = spin.is_worth_it();
                if look {
                    spin.looked(found);
                }
                look
            })
            .count()
    }

    #[test]
    fn looks_in_vain_become_rare_and_one_success_brings_them_back() {
        let mut spin = Spin::default();
        assert_eq!(looks(&mut spin, 100, true), 100);
        let vain = looks(&mut spin, 10_000, false);
        assert!((10..30).contains(&vain), "{vain}");
        let until = (0..).find(|_| spin.is_worth_it()).expect("it tries again");
        assert!(until <= SKIP_MAX);
        spin.looked(true);
        assert_eq!(looks(&mut spin, 100, true), 100);
    }
}
