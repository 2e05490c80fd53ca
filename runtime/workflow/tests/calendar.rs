//! When schedules are due: expressions with the times that follow, around changes of daylight saving above all.
//!
//! In 2026: January 1 is a Thursday. Clocks change in Berlin on March 29 at 01:00Z (02:00 becomes 03:00) and October 25 at 01:00Z (03:00 becomes 02:00), in New York on
//! March 8 at 07:00Z and November 1 at 06:00Z, on Lord Howe by half an hour on April 4 at 15:00Z (02:00 becomes 01:30) and October 3 at 15:30Z (02:00 becomes 02:30).

use jiff::Timestamp;
use sledge_workflow::calendar::limits::CATCH_UP_MAX;
use sledge_workflow::calendar::{CatchUp, Schedule, due, due_from};

const BERLIN: &str = "Europe/Berlin";
const NEW_YORK: &str = "America/New_York";
const LORD_HOWE: &str = "Australia/Lord_Howe";
const KOLKATA: &str = "Asia/Kolkata";

fn ms(time: &str) -> i64 {
    time.parse::<Timestamp>().unwrap_or_else(|error| panic!("{time}: {error}")).as_millisecond()
}

fn read(expression: &str, zone: &str) -> Schedule {
    Schedule::parse(expression, Some(zone)).unwrap_or_else(|error| panic!("{error}"))
}

/// Each row: the expression, its zone, the time after which it is asked, and the times that follow. An empty text: there are no more.
fn check(rows: &[(&str, &str, &str, &[&str])]) {
    for (expression, zone, after, expected) in rows {
        let schedule = read(expression, zone);
        let mut at = ms(after);
        for (index, time) in expected.iter().enumerate() {
            let next = schedule.next(at);
            let shown = next.and_then(|next| Timestamp::from_millisecond(next).ok()).map(|next| next.to_string());
            if time.is_empty() {
                assert_eq!(shown, None, "{expression} {zone} after {after}, number {index}");
                break;
            }
            assert_eq!(next, Some(ms(time)), "{expression} {zone} after {after}, number {index}: {shown:?} is not {time}");
            // The same time is the last one until the next.
            assert_eq!(schedule.last_from(0, ms(time)), next, "{expression} {zone}");
            assert!(schedule.last_from(0, ms(time) - 1) < next, "{expression} {zone}");
            at = ms(time);
        }
    }
}

const A: &str = "2026-01-01T00:00:00Z";

#[test]
fn the_form_of_eventbridge() {
    check(&[
        ("cron(0 12 ? * MON-FRI *)", "UTC", A, &["2026-01-01T12:00:00Z", "2026-01-02T12:00:00Z", "2026-01-05T12:00:00Z"]),
        ("cron(0 10 * * ? *)", "UTC", A, &["2026-01-01T10:00:00Z", "2026-01-02T10:00:00Z"]),
        ("cron(15 12 * * ? *)", "UTC", "2026-01-01T12:15:00Z", &["2026-01-02T12:15:00Z"]),
        ("cron(0 18 ? * MON-FRI *)", "UTC", "2026-01-02T18:00:00Z", &["2026-01-05T18:00:00Z"]),
        ("cron(0 8 1 * ? *)", "UTC", A, &["2026-01-01T08:00:00Z", "2026-02-01T08:00:00Z", "2026-03-01T08:00:00Z"]),
        ("cron(0/15 * * * ? *)", "UTC", A, &["2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"]),
        ("cron(1/10 * * * ? *)", "UTC", A, &["2026-01-01T00:01:00Z", "2026-01-01T00:11:00Z"]),
        (
            "cron(*/20 3 * * ? *)",
            "UTC",
            A,
            &["2026-01-01T03:00:00Z", "2026-01-01T03:20:00Z", "2026-01-01T03:40:00Z", "2026-01-02T03:00:00Z"],
        ),
        ("cron(0/5 8-17 ? * MON-FRI *)", "UTC", "2026-01-02T17:54:00Z", &["2026-01-02T17:55:00Z", "2026-01-05T08:00:00Z"]),
        ("cron(0/30 20-2 ? * MON-FRI *)", "UTC", "2026-01-02T02:29:59Z", &["2026-01-02T02:30:00Z", "2026-01-02T20:00:00Z"]),
        ("cron(0 9 ? * 2#1 *)", "UTC", A, &["2026-01-05T09:00:00Z", "2026-02-02T09:00:00Z", "2026-03-02T09:00:00Z"]),
        ("cron(0 9 ? * TUE#5 *)", "UTC", A, &["2026-03-31T09:00:00Z", "2026-06-30T09:00:00Z"]),
        ("cron(0 0 L * ? *)", "UTC", A, &["2026-01-31T00:00:00Z", "2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"]),
        ("cron(0 0 L 2 ? *)", "UTC", A, &["2026-02-28T00:00:00Z", "2027-02-28T00:00:00Z", "2028-02-29T00:00:00Z"]),
        ("cron(0 0 LW * ? *)", "UTC", A, &["2026-01-30T00:00:00Z", "2026-02-27T00:00:00Z", "2026-03-31T00:00:00Z"]),
        ("cron(0 0 15W * ? *)", "UTC", A, &["2026-01-15T00:00:00Z", "2026-02-16T00:00:00Z", "2026-03-16T00:00:00Z"]),
        ("cron(0 0 1W 8 ? *)", "UTC", A, &["2026-08-03T00:00:00Z", "2027-08-02T00:00:00Z"]),
        ("cron(0 0 31W * ? *)", "UTC", A, &["2026-01-30T00:00:00Z", "2026-03-31T00:00:00Z", "2026-05-29T00:00:00Z"]),
        ("cron(0 0 3W,L * ? *)", "UTC", A, &["2026-01-02T00:00:00Z", "2026-01-31T00:00:00Z", "2026-02-03T00:00:00Z"]),
        ("cron(0 0 ? * 6L *)", "UTC", A, &["2026-01-30T00:00:00Z", "2026-02-27T00:00:00Z"]),
        ("cron(0 0 ? * FRIL *)", "UTC", A, &["2026-01-30T00:00:00Z", "2026-02-27T00:00:00Z"]),
        ("cron(0 0 ? * L *)", "UTC", A, &["2026-01-03T00:00:00Z", "2026-01-10T00:00:00Z"]),
        ("cron(0 0 ? * 1 *)", "UTC", A, &["2026-01-04T00:00:00Z", "2026-01-11T00:00:00Z"]),
        (
            "cron(0 0 ? * SAT-MON *)",
            "UTC",
            A,
            &["2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z", "2026-01-05T00:00:00Z", "2026-01-10T00:00:00Z"],
        ),
        (
            "cron(0 22-1 * * ? *)",
            "UTC",
            A,
            &["2026-01-01T01:00:00Z", "2026-01-01T22:00:00Z", "2026-01-01T23:00:00Z", "2026-01-02T00:00:00Z"],
        ),
        ("cron(50-10/10 0 * * ? *)", "UTC", A, &["2026-01-01T00:10:00Z", "2026-01-01T00:50:00Z", "2026-01-02T00:00:00Z"]),
        ("cron(0 0 1 JAN,jul ? *)", "UTC", A, &["2026-07-01T00:00:00Z", "2027-01-01T00:00:00Z"]),
        (
            "cron(0 0 1 NOV-FEB ? *)",
            "UTC",
            A,
            &["2026-02-01T00:00:00Z", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"],
        ),
        ("cron(0 0 1 */6 ? *)", "UTC", A, &["2026-07-01T00:00:00Z", "2027-01-01T00:00:00Z"]),
        ("cron(0 0 1 1 ? 2030)", "UTC", A, &["2030-01-01T00:00:00Z", ""]),
        ("cron(0 0 1 1 ? 2026-2028)", "UTC", A, &["2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z", ""]),
        ("cron(0 0 1 1 ? 2025/2)", "UTC", A, &["2027-01-01T00:00:00Z", "2029-01-01T00:00:00Z"]),
        ("cron(0 0 29 2 ? *)", "UTC", A, &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]),
        ("cron(0 0 29 2 ? *)", "UTC", "2096-03-01T00:00:00Z", &["2104-02-29T00:00:00Z"]),
        ("cron(0 0 31 * ? *)", "UTC", A, &["2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z"]),
        ("cron(59 23 31 12 ? 2199)", "UTC", A, &["2199-12-31T23:59:00Z", ""]),
        ("cron(0 0 1 1 ? 2020)", "UTC", A, &[""]),
        (" cron( 0\t12  * * ? * ) ", "UTC", A, &["2026-01-01T12:00:00Z"]),
    ]);
}

#[test]
fn the_form_of_crontabs() {
    check(&[
        ("*/5 * * * *", "UTC", A, &["2026-01-01T00:05:00Z", "2026-01-01T00:10:00Z"]),
        ("* * * * *", "UTC", "2026-12-31T23:59:00Z", &["2027-01-01T00:00:00Z"]),
        ("* * * * *", "UTC", "2026-01-01T00:00:59.999Z", &["2026-01-01T00:01:00Z"]),
        (
            "0 9-17/4 * * *",
            "UTC",
            A,
            &["2026-01-01T09:00:00Z", "2026-01-01T13:00:00Z", "2026-01-01T17:00:00Z", "2026-01-02T09:00:00Z"],
        ),
        ("0 0 * * 0", "UTC", A, &["2026-01-04T00:00:00Z"]),
        ("0 0 * * 7", "UTC", A, &["2026-01-04T00:00:00Z"]),
        (
            "0 0 * * 5-7",
            "UTC",
            A,
            &["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z", "2026-01-09T00:00:00Z"],
        ),
        (
            "0 0 * * fri-sun",
            "UTC",
            A,
            &["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z", "2026-01-09T00:00:00Z"],
        ),
        ("0 0 * * 1", "UTC", A, &["2026-01-05T00:00:00Z"]),
        // Either day field suffices: the 13th, and Fridays.
        (
            "0 0 13 * 5",
            "UTC",
            A,
            &["2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z", "2026-01-16T00:00:00Z"],
        ),
        // One of them has a `*`: odd days that are Mondays.
        ("0 0 */2 * MON", "UTC", A, &["2026-01-05T00:00:00Z", "2026-01-19T00:00:00Z", "2026-02-09T00:00:00Z"]),
        ("30 4 1,15 * *", "UTC", A, &["2026-01-01T04:30:00Z", "2026-01-15T04:30:00Z", "2026-02-01T04:30:00Z"]),
        ("05 08 * * *", "UTC", A, &["2026-01-01T08:05:00Z"]),
        ("0 0 1 jan,JUL *", "UTC", A, &["2026-07-01T00:00:00Z"]),
    ]);
}

#[test]
fn rates_and_single_times() {
    check(&[
        ("rate(5 minutes)", BERLIN, A, &["2026-01-01T00:05:00Z", "2026-01-01T00:10:00Z"]),
        ("rate(1 second)", "UTC", "2026-01-01T00:00:00.001Z", &["2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"]),
        ("rate(1 hour)", "UTC", "2026-01-01T00:59:59.999Z", &["2026-01-01T01:00:00Z"]),
        ("rate(1 day)", BERLIN, "2026-03-28T12:00:00Z", &["2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z"]),
        ("at(2026-12-24T18:00:00)", "UTC", A, &["2026-12-24T18:00:00Z", ""]),
        ("at(2026-12-24T18:00:00)", BERLIN, A, &["2026-12-24T17:00:00Z", ""]),
        ("at(2026-12-24T18:00:00)", KOLKATA, A, &["2026-12-24T12:30:00Z", ""]),
        // In a gap: at its end. Twice: the first.
        ("at(2026-03-29T02:30:00)", BERLIN, A, &["2026-03-29T01:00:00Z", ""]),
        ("at(2026-10-25T02:30:00)", BERLIN, A, &["2026-10-25T00:30:00Z", ""]),
        // Samoa left out a day.
        ("at(2011-12-30T12:00:00)", "Pacific/Apia", "2011-01-01T00:00:00Z", &["2011-12-30T10:00:00Z", ""]),
    ]);
    let anchor = ms("2026-01-01T00:00:07Z");
    let rate = read("rate(10 minutes)", "UTC");
    assert_eq!(rate.next_from(anchor, anchor), Some(anchor + 600_000));
    assert_eq!(rate.next_from(anchor, anchor - 1), Some(anchor));
    assert_eq!(rate.next_from(anchor, i64::MIN), Some(anchor));
    assert_eq!(rate.next_from(anchor, anchor + 600_000), Some(anchor + 1_200_000));
    assert_eq!(rate.last_from(anchor, anchor + 1_199_999), Some(anchor + 600_000));
    assert_eq!(rate.last_from(anchor, anchor - 1), None);
    assert_eq!(rate.next_from(i64::MAX - 1, i64::MAX), None);
    assert_eq!(rate.next_from(i64::MIN, i64::MAX - 600_000), Some(i64::MAX - (u64::MAX % 600_000) as i64));
}

#[test]
fn clocks_that_are_put_forward() {
    check(&[
        // 02:30 does not exist on March 29: 03:00, the first instant after the gap.
        (
            "cron(30 2 * * ? *)",
            BERLIN,
            "2026-03-27T12:00:00Z",
            &["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"],
        ),
        ("30 2 * * *", NEW_YORK, "2026-03-07T12:00:00Z", &["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]),
        // Times at both ends of the gap.
        ("cron(0 2 * * ? *)", BERLIN, "2026-03-28T12:00:00Z", &["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"]),
        ("cron(0 3 * * ? *)", BERLIN, "2026-03-28T12:00:00Z", &["2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z"]),
        ("cron(59 1 * * ? *)", BERLIN, "2026-03-28T12:00:00Z", &["2026-03-29T00:59:00Z", "2026-03-29T23:59:00Z"]),
        // Several times of one gap, and its end, are due once.
        ("cron(0/15 * * * ? *)", BERLIN, "2026-03-29T00:45:00Z", &["2026-03-29T01:00:00Z", "2026-03-29T01:15:00Z"]),
        (
            "cron(10,20 2,3 * * ? *)",
            BERLIN,
            "2026-03-28T12:00:00Z",
            &["2026-03-29T01:00:00Z", "2026-03-29T01:10:00Z", "2026-03-29T01:20:00Z", "2026-03-30T00:10:00Z"],
        ),
        // Half an hour: 02:15 becomes 02:30.
        ("cron(15 2 * * ? *)", LORD_HOWE, "2026-10-03T00:00:00Z", &["2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"]),
        ("cron(45 1 * * ? *)", LORD_HOWE, "2026-10-03T00:00:00Z", &["2026-10-03T15:15:00Z", "2026-10-04T14:45:00Z"]),
        // The day that Samoa left out: all of it at the start of the next one.
        (
            "cron(0 6 * * ? *)",
            "Pacific/Apia",
            "2011-12-29T17:00:00Z",
            &["2011-12-30T10:00:00Z", "2011-12-30T16:00:00Z", "2011-12-31T16:00:00Z"],
        ),
        // By the rule that holds for all years to come: March 31.
        ("cron(30 2 * * ? *)", BERLIN, "2150-03-29T00:00:00Z", &["2150-03-29T01:00:00Z", "2150-03-30T00:30:00Z"]),
    ]);
}

#[test]
fn clocks_that_are_put_back() {
    check(&[
        // 02:30 exists twice on October 25: the first, by summer time.
        ("cron(30 2 * * ? *)", BERLIN, "2026-10-24T12:00:00Z", &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]),
        ("30 1 * * *", NEW_YORK, "2026-10-31T12:00:00Z", &["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]),
        ("cron(0 2 * * ? *)", BERLIN, "2026-10-24T12:00:00Z", &["2026-10-25T00:00:00Z", "2026-10-26T01:00:00Z"]),
        ("cron(0 3 * * ? *)", BERLIN, "2026-10-24T12:00:00Z", &["2026-10-25T02:00:00Z", "2026-10-26T02:00:00Z"]),
        // Asked within the second hour, and at its ends.
        ("cron(30 2 * * ? *)", BERLIN, "2026-10-25T00:30:00Z", &["2026-10-26T01:30:00Z"]),
        ("cron(30 2 * * ? *)", BERLIN, "2026-10-25T01:00:00Z", &["2026-10-26T01:30:00Z"]),
        ("cron(30 2 * * ? *)", BERLIN, "2026-10-25T01:15:00Z", &["2026-10-26T01:30:00Z"]),
        (
            "cron(0/30 * * * ? *)",
            BERLIN,
            "2026-10-25T00:00:00Z",
            &["2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z", "2026-10-25T02:30:00Z"],
        ),
        ("*/20 * * * *", NEW_YORK, "2026-11-01T05:20:00Z", &["2026-11-01T05:40:00Z", "2026-11-01T07:00:00Z"]),
        // Half an hour: 01:30 to 02:00 exist twice.
        ("cron(45 1 * * ? *)", LORD_HOWE, "2026-04-04T00:00:00Z", &["2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"]),
        (
            "cron(0/10 1-2 * * ? *)",
            LORD_HOWE,
            "2026-04-04T14:40:00Z",
            &["2026-04-04T14:50:00Z", "2026-04-04T15:30:00Z", "2026-04-04T15:40:00Z"],
        ),
        ("cron(0 0 * * ? *)", KOLKATA, A, &["2026-01-01T18:30:00Z", "2026-01-02T18:30:00Z"]),
        ("cron(15 9 ? * MON *)", KOLKATA, A, &["2026-01-05T03:45:00Z"]),
        ("cron(0 0 1 * ? *)", NEW_YORK, "2026-10-15T00:00:00Z", &["2026-11-01T04:00:00Z", "2026-12-01T05:00:00Z"]),
    ]);
}

#[test]
fn the_ends_of_time() {
    for (expression, first, last) in [
        ("* * * * *", "1970-01-01T00:00:00Z", "2199-12-31T23:59:00Z"),
        ("cron(0 0 1 1 ? *)", "1970-01-01T00:00:00Z", "2199-01-01T00:00:00Z"),
        ("at(2026-01-01T00:00:00)", A, A),
    ] {
        let schedule = read(expression, "UTC");
        assert_eq!(schedule.next(i64::MIN), Some(ms(first)), "{expression}");
        assert_eq!(schedule.next(i64::MAX), None, "{expression}");
        assert_eq!(schedule.next(ms(last)), None, "{expression}");
        assert_eq!(schedule.last_from(0, i64::MAX), Some(ms(last)), "{expression}");
        assert_eq!(schedule.last_from(0, ms(first)), Some(ms(first)), "{expression}");
        assert_eq!(schedule.last_from(0, ms(first) - 1), None, "{expression}");
        assert_eq!(schedule.last_from(0, i64::MIN), None, "{expression}");
    }
    // The first and last days of zones that are ahead of UTC and behind it.
    assert_eq!(read("* * * * *", "Pacific/Kiritimati").next(i64::MIN), Some(ms("1970-01-01T10:40:00Z")));
    assert_eq!(read("* * * * *", "Asia/Tokyo").next(i64::MIN), Some(ms("1969-12-31T15:00:00Z")));
    assert_eq!(read("* * * * *", "Pacific/Pago_Pago").last_from(0, i64::MAX), Some(ms("2200-01-01T10:59:00Z")));
}

#[test]
fn what_was_missed_is_made_up_for_by_the_policy() {
    let hourly = read("cron(0 * * * ? *)", "UTC");
    let (last, now) = (ms("2026-01-01T00:00:00Z"), ms("2026-01-01T05:30:00Z"));
    let hour = |hour: i64| last + hour * 3_600_000;
    assert_eq!(due(&hourly, last, now, CatchUp::Skip), [0; 0]);
    assert_eq!(due(&hourly, last, now, CatchUp::Last), [hour(5)]);
    assert_eq!(due(&hourly, last, now, CatchUp::All { max: 100 }), [hour(1), hour(2), hour(3), hour(4), hour(5)]);
    assert_eq!(due(&hourly, last, now, CatchUp::All { max: 2 }), [hour(4), hour(5)]);
    assert_eq!(due(&hourly, last, now, CatchUp::All { max: 0 }), [0; 0]);
    // What is due now is given, what was taken care of is not.
    assert_eq!(due(&hourly, hour(4), hour(5), CatchUp::All { max: 9 }), [hour(5)]);
    assert_eq!(due(&hourly, hour(5), hour(5), CatchUp::Last), [0; 0]);
    assert_eq!(due(&hourly, hour(6), hour(5), CatchUp::Last), [0; 0]);
    // Rates count from their anchor.
    let rate = read("rate(2 hours)", "UTC");
    assert_eq!(due_from(&rate, hour(1), last, now, CatchUp::All { max: 9 }), [hour(1), hour(3), hour(5)]);
    assert_eq!(due_from(&rate, hour(9), last, now, CatchUp::All { max: 9 }), [0; 0]);
    let once = read("at(2026-01-01T03:00:00)", "UTC");
    assert_eq!(due(&once, last, now, CatchUp::All { max: 9 }), [hour(3)]);
    // A repeated hour is made up for once.
    let berlin = read("cron(0/30 2 * * ? *)", BERLIN);
    let (before, after) = (ms("2026-10-24T12:00:00Z"), ms("2026-10-25T12:00:00Z"));
    let expected = [ms("2026-10-25T00:00:00Z"), ms("2026-10-25T00:30:00Z")];
    assert_eq!(due(&berlin, before, after, CatchUp::All { max: 9 }), expected);
}

#[test]
fn catching_up_is_bounded() {
    for expression in ["rate(1 second)", "* * * * *"] {
        let times = due(&read(expression, BERLIN), i64::MIN, ms(A), CatchUp::All { max: usize::MAX });
        assert_eq!((times.len(), times.last()), (CATCH_UP_MAX, Some(&ms(A))), "{expression}");
        assert!(times.is_sorted_by(|left, right| left < right));
    }
}
