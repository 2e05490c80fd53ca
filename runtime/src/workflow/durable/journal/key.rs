//! Keys of the journal's rows.

use std::ops::Bound;

use sledge_workflow::machine::Status;

use super::summary::{Place, Summary};

pub(super) const SUMMARIES: u8 = b'E';
pub(super) const CHECKPOINTS: u8 = b'C';
pub(super) const HISTORIES: u8 = b'H';
pub(super) const LISTED: u8 = b'L';
pub(super) const BY_STATUS: u8 = b'S';
pub(super) const EXPIRIES: u8 = b'F';
pub(super) const DEFINITIONS: u8 = b'D';
pub(super) const SCHEDULES: u8 = b'T';
pub(super) const PAUSED: u8 = b'P';
pub(super) const PINS: u8 = b'V';

/// What a key is for, as far as its bytes count as an execution's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Part {
    History,
    Summary,
    Checkpoint,
    Other,
}

impl Part {
    pub(in super::super) const fn of(key: &[u8]) -> Part {
        match key.first() {
            Some(&HISTORIES) => Part::History,
            Some(&SUMMARIES) => Part::Summary,
            Some(&CHECKPOINTS) => Part::Checkpoint,
            _ => Part::Other,
        }
    }
}

/// Builds a key.
pub(super) struct Key(pub(super) Vec<u8>);

impl Key {
    pub(super) fn new(kind: u8) -> Key {
        Key(vec![kind])
    }

    pub(super) fn name(mut self, name: &str) -> Key {
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(0);
        self
    }

    pub(super) fn number(mut self, number: u64) -> Key {
        self.0.extend_from_slice(&number.to_be_bytes());
        self
    }

    pub(super) fn status(mut self, status: Status) -> Key {
        self.0.push(status as u8);
        self
    }

    /// A time and a number, the latest and largest first.
    pub(super) fn falling(self, ms: i64, id: u64) -> Key {
        self.number(!ms.cast_unsigned()).number(!id)
    }

    pub(super) fn time(self, ms: i64) -> Key {
        self.number(ms.max(0).cast_unsigned())
    }

    /// The first key behind all that begin so. A scan without that bound copies what lies there and was not folded into the tree yet.
    pub(super) fn behind(&self) -> Bound<Vec<u8>> {
        let mut behind = self.0.clone();
        while let Some(last) = behind.pop() {
            if let Some(next) = last.checked_add(1) {
                behind.push(next);
                return Bound::Excluded(behind);
            }
        }
        Bound::Unbounded
    }
}

impl From<Key> for Box<[u8]> {
    fn from(key: Key) -> Box<[u8]> {
        key.0.into()
    }
}

pub(super) fn checkpoint_key(id: u64) -> Key {
    Key::new(CHECKPOINTS).number(id)
}

pub(super) fn summary_key(place: &Place) -> Key {
    Key::new(SUMMARIES).name(&place.tenant).name(&place.workflow).name(&place.name)
}

pub(super) fn of_workflow(kind: u8, tenant: &str, workflow: &str) -> Key {
    Key::new(kind).name(tenant).name(workflow)
}

pub(super) fn listed_key(place: &Place, summary: &Summary) -> Key {
    of_workflow(LISTED, &place.tenant, &place.workflow).falling(summary.started_ms, summary.id)
}

pub(super) fn status_key(place: &Place, summary: &Summary, status: Status) -> Key {
    of_workflow(BY_STATUS, &place.tenant, &place.workflow).status(status).falling(summary.started_ms, summary.id)
}

/// The number at the end of a key.
pub(super) fn last_number(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(*key.last_chunk::<8>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys that begin otherwise are neither listed nor removed: no scan looks at what it finds there.
    #[test]
    fn a_bound_lies_right_behind_all_that_begin_alike() {
        let behind = |bytes: &[u8]| Key(bytes.to_vec()).behind();
        assert_eq!(behind(b"La"), Bound::Excluded(b"Lb".to_vec()));
        assert_eq!(behind(b"L\xff\xff"), Bound::Excluded(b"M".to_vec()));
        assert_eq!(behind(b"\xff"), Bound::Unbounded);
        for seed in 0..1_000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut bytes =
                |max: usize| -> Vec<u8> { (0..random.usize(0..=max)).map(|_| [0, 1, 0xfe, 0xff][random.usize(0..4)]).collect() };
            let (prefix, key) = ([vec![b'L'], bytes(3)].concat(), [vec![b'L'], bytes(6)].concat());
            let Bound::Excluded(end) = behind(&prefix) else { panic!("seed {seed}") };
            assert_eq!(key >= prefix && key < end, key.starts_with(&prefix), "seed {seed}: {prefix:?} {key:?}");
        }
    }
}
