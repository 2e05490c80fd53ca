//! How long runs would take one after the other, branches and iterations at the same time.

use std::collections::BTreeMap;

/// Where a run is in the order of everything, and how long it takes.
type Timed<'p> = (&'p [u32], u64);

/// How long all runs take.
pub(super) fn time(runs: &[Timed<'_>]) -> u64 {
    // The last number of a path is the attempt: attempts follow each other.
    let places: Vec<Timed<'_>> =
        runs.iter().map(|(path, time)| (path.split_last().map_or(&[][..], |(_, place)| place), *time)).collect();
    of_machine(&places)
}

/// Of a machine: the paths begin with the number of a state that it has entered.
fn of_machine(runs: &[Timed<'_>]) -> u64 {
    groups(runs).into_values().map(|group| group.own + of_branches(&group.inner)).sum()
}

/// Of a state with branches or iterations: the paths begin with their numbers.
fn of_branches(runs: &[Timed<'_>]) -> u64 {
    groups(runs).into_values().map(|group| group.own + of_machine(&group.inner)).max().unwrap_or(0)
}

/// Runs whose paths begin with the same number.
#[derive(Default)]
struct Group<'p> {
    /// Those whose paths go on, without that number.
    inner: Vec<Timed<'p>>,
    /// How long those take whose paths end there.
    own: u64,
}

fn groups<'p>(runs: &[Timed<'p>]) -> BTreeMap<u32, Group<'p>> {
    let mut groups: BTreeMap<u32, Group<'p>> = BTreeMap::new();
    for (path, time) in runs {
        let Some((first, rest)) = path.split_first() else { continue };
        let group = groups.entry(*first).or_default();
        if rest.is_empty() {
            group.own += time;
        } else {
            group.inner.push((rest, *time));
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_follow_each_other_and_branches_run_at_the_same_time() {
        assert_eq!(time(&[]), 0);
        // Two states, the second one with two attempts.
        assert_eq!(time(&[(&[0, 0], 5), (&[1, 0], 7), (&[1, 1], 11)]), 23);
        // Between two states two branches, the first one of two states, in the second of which are two iterations.
        let runs: [(&[u32], u64); 7] = [
            (&[0, 0], 1),
            (&[1, 0, 0, 0], 10),
            (&[1, 0, 1, 0, 0, 0], 100),
            (&[1, 0, 1, 1, 0, 0], 200),
            (&[1, 1, 0, 0], 50),
            (&[1, 1, 1, 0], 40),
            (&[2, 0], 1_000),
        ];
        assert_eq!(time(&runs), 1 + (10 + 200) + 1_000);
    }
}
