//! Things in the order in which they were last used: the oldest is found, and any one added or taken out, at the same cost however many there are.
//!
//! A list through a vector, whose places are used again: nothing is allocated once it has had its size.

/// Where something is, until it is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

/// No place: an end of the list.
const NONE: u32 = u32::MAX;

/// Things from the one that was used least recently to the one that was used last.
#[derive(Debug)]
pub(crate) struct Recency<T> {
    entries: Vec<Entry<T>>,
    oldest: u32,
    newest: u32,
    /// The first free place; they are linked by `newer`.
    free: u32,
    count: usize,
}

#[derive(Debug)]
struct Entry<T> {
    /// None while the place is free.
    thing: Option<T>,
    older: u32,
    newer: u32,
}

impl<T> Default for Recency<T> {
    fn default() -> Recency<T> {
        Recency { entries: Vec::new(), oldest: NONE, newest: NONE, free: NONE, count: 0 }
    }
}

impl<T> Recency<T> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Adds what was used just now.
    pub(crate) fn add(&mut self, thing: T) -> Place {
        let entry = Entry { thing: Some(thing), older: self.newest, newer: NONE };
        let place = self.free;
        let place = if let Some(free) = self.entries.get_mut(place as usize) {
            self.free = free.newer;
            *free = entry;
            place
        } else {
            self.entries.push(entry);
            self.entries.len() as u32 - 1
        };
        match self.entries.get_mut(self.newest as usize) {
            Some(newest) => newest.newer = place,
            None => self.oldest = place,
        }
        self.newest = place;
        self.count += 1;
        Place(place)
    }

    /// What was used least recently.
    pub(crate) fn oldest(&self) -> Option<(Place, &T)> {
        let entry = self.entries.get(self.oldest as usize)?;
        Some((Place(self.oldest), entry.thing.as_ref()?))
    }

    /// Takes out what is there; none if it was taken out already.
    pub(crate) fn take(&mut self, place: Place) -> Option<T> {
        let Place(place) = place;
        let free = self.free;
        let entry = self.entries.get_mut(place as usize)?;
        let thing = entry.thing.take()?;
        let (older, newer) = (entry.older, entry.newer);
        entry.newer = free;
        self.free = place;
        self.count -= 1;
        match self.entries.get_mut(older as usize) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
        match self.entries.get_mut(newer as usize) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
        Some(thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_a_list_that_is_searched() {
        const SEED: u64 = 14;
        let mut random = SEED;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % below
        };
        let (mut recency, mut model) = (Recency::default(), Vec::new());
        for step in 0..20_000 {
            // Grows and shrinks in turns.
            let wanted = if step / 500 % 2 == 0 { 3 } else { 1 };
            if next(4) < wanted {
                model.push((recency.add(step), step));
            } else if !model.is_empty() {
                let at = if next(3) == 0 { 0 } else { next(model.len()) };
                let (place, thing) = model.remove(at);
                assert_eq!(recency.take(place), Some(thing), "seed {SEED}, step {step}");
                assert_eq!(recency.take(place), None, "it is gone");
            }
            assert_eq!(recency.len(), model.len());
            assert_eq!(recency.oldest(), model.first().map(|(place, thing)| (*place, thing)), "seed {SEED}, step {step}");
        }
        assert!(recency.entries.len() < 2_000, "places are used again");
    }
}
