//! A percentile that is followed, value by value.

use sledge_schedule::percentile::follow;

#[test]
fn the_first_value_is_where_it_begins() {
    assert_eq!([follow(0, 0, 0.9), follow(0, 77, 0.9), follow(77, 77, 0.9)], [0, 77, 77]);
    assert_eq!(follow(u64::MAX, u64::MAX, 0.9), u64::MAX);
}

/// A twentieth in all: of the ninetieth percentile nine tenths of that for a value above and one for a value below.
#[test]
fn a_value_above_moves_it_further_than_one_below() {
    for (part, up, down) in [(0.9, 45_000, 5_000), (0.5, 25_000, 25_000), (0.1, 5_000, 45_000)] {
        let (above, below) = (follow(1_000_000, 2_000_000, part), follow(1_000_000, 1, part));
        assert!(above.abs_diff(1_000_000 + up) <= 1 && below.abs_diff(1_000_000 - down) <= 1, "{part}: {above}, {below}");
    }
}

#[test]
fn it_goes_no_further_than_the_value_and_at_least_one_up() {
    assert_eq!((follow(1_000, 1_001, 0.9), follow(1_000, 999, 0.1)), (1_001, 999));
    assert_eq!((follow(3, 100, 0.5), follow(4, 1, 0.5)), (4, 3));
}
