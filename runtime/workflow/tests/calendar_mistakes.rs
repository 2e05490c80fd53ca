//! What is said of schedules that are refused; and that no text makes reading or searching fail otherwise.

use std::time::{Duration, Instant};

use sledge_workflow::calendar::{CatchUp, Schedule, ScheduleError, due};

/// The message for an expression.
fn refused(expression: &str) -> String {
    Schedule::parse(expression, None).expect_err(expression).to_string()
}

#[test]
fn an_error_says_where_what_and_what_to_write() {
    assert_eq!(
        refused("cron(0 25 * * ? *)"),
        "schedule \"cron(0 25 * * ? *)\", column 8: hours: \"25\" is no value; write a number from 0 to 23"
    );
    // The column counts characters, and each row holds: expression, column, what is wrong, what to write.
    for (expression, column, message, help) in [
        ("", 1, "expected five fields, found 0", "rate(5 minutes)"),
        ("  ", 1, "expected five fields, found 0", "0 12 * * MON-FRI"),
        ("0 12 * * ? *", 1, "expected five fields, found 6", "cron(0 12 ? * MON-FRI *)"),
        ("every 5 minutes", 1, "expected five fields, found 3", "rate(5 minutes)"),
        ("@daily", 1, "expected five fields, found 1", "five fields"),
        ("Rate(5 minutes)", 1, "form of the schedule is unknown", "rate(5 minutes)"),
        ("cron(0 12 * * ? *", 18, "closing parenthesis is missing", "cron(...)"),
        ("cron(0 12 * * ?)", 6, "cron() has 5 fields, and needs 6", "add the year"),
        ("cron(0 0 12 * * ? *)", 6, "cron() has 7 fields, and needs 6", "minutes, hours"),
        ("cron(60 12 * * ? *)", 6, "minutes: \"60\" is no value", "from 0 to 59"),
        ("cron(0 12 0 * ? *)", 11, "day-of-month: \"0\" is no value", "from 1 to 31"),
        ("cron(0 12 * 13 ? *)", 13, "month: \"13\" is no value", "from 1 to 12 or JAN to DEC"),
        ("cron(0 12 ? * 0 *)", 15, "day-of-week: \"0\" is no value", "from 1 to 7 or SUN to SAT"),
        ("cron(0 12 ? * MO *)", 15, "day-of-week: \"MO\" is no value", "SUN to SAT"),
        ("cron(0 12 ? * MON,TUX *)", 19, "\"TUX\" is no value", "SUN to SAT"),
        ("cron(0 12 ? * MON-TUX *)", 19, "\"TUX\" is no value", "SUN to SAT"),
        ("cron(0 12 * * ? 1969)", 17, "year: \"1969\" is no value", "from 1970 to 2199"),
        ("cron(0 12 * * ? 2030-2028)", 17, "ends before it begins", "2028-2030"),
        ("cron(0 12 * * MON *)", 15, "both day fields name days", "write ? in the other one"),
        ("cron(0 12 ? * ? *)", 15, "both day fields are ?", "write * in one of them"),
        ("cron(? 12 * * ? *)", 6, "? stands alone in a day field", "write *"),
        ("cron(0 12 1,? * ? *)", 13, "? stands alone", "write ? alone"),
        ("cron(*/90 * * * ? *)", 8, "minutes: \"90\" is no step", "rate(90 minutes)"),
        ("cron(*/0 * * * ? *)", 8, "minutes: \"0\" is no step", "from 1 to 60"),
        ("cron(*/ * * * ? *)", 8, "minutes: \"\" is no step", "from 1 to 60"),
        ("cron(1,,2 * * * ? *)", 8, "minutes: a value is missing", "from 0 to 59"),
        ("cron(-5 * * * ? *)", 6, "minutes: a value is missing", "from 0 to 59"),
        ("cron(1-2-3 * * * ? *)", 8, "\"2-3\" is no value", "from 0 to 59"),
        ("cron(0 0 L-3 * ? *)", 10, "\"L\" is no value", "from 1 to 31"),
        ("cron(0 0 32W * ? *)", 10, "\"32\" is no value", "from 1 to 31"),
        ("cron(0 0 L,LW * ? *)", 10, "L and LW stand in one list", "write one of them"),
        ("cron(0 0 2#1 * ? *)", 10, "does not belong into this field", "MON#2 in day-of-week"),
        ("cron(0L 0 ? * 1 *)", 6, "does not belong into this field", "FRIL"),
        ("cron(0 0 ? * MON#6 *)", 18, "after # stands a number from 1 to 5", "MON#2"),
        ("cron(0 0 ? * 8L *)", 14, "\"8\" is no value", "SUN to SAT"),
        ("cron(0 0 ? * 15W *)", 14, "does not belong into this field", "day-of-month"),
        ("0 0 L * *", 5, "\"L\" is not known in five fields", "six fields"),
        ("0 0 ? * 1", 5, "? stands alone", "write *"),
        ("0/5 * * * *", 1, "a step needs a range or *", "0-59/"),
        ("0 0 * * 8", 9, "day-of-week: \"8\" is no value", "from 0 to 7"),
        ("é 0 * * x", 1, "minutes: \"é\" is no value", "from 0 to 59"),
        ("0 é 0 é é", 3, "hours: \"é\" is no value", "from 0 to 23"),
        ("cron(0 0 31 2 ? *)", 6, "no date fits all fields", "check days, months and years"),
        ("cron(0 0 29 2 ? 2027)", 6, "no date fits all fields", "check days, months and years"),
        ("cron(0 0 31W 4,6,9,11 ? *)", 6, "no date fits all fields", "check days, months and years"),
        ("0 0 30 2 *", 1, "no date fits all fields", "check days, months and years"),
        ("rate(5)", 6, "a rate is a number and a unit", "rate(5 minutes)"),
        ("rate()", 6, "a rate is a number and a unit", "rate(5 minutes)"),
        ("rate(five minutes)", 6, "not a whole number", "rate(5 minutes)"),
        ("rate(+5 minutes)", 6, "not a whole number", "rate(5 minutes)"),
        ("rate(-5 minutes)", 6, "not a whole number", "rate(5 minutes)"),
        ("rate(1.5 hours)", 6, "not a whole number", "rate(5 minutes)"),
        ("rate(0 minutes)", 6, "the rate is zero", "rate(1 second)"),
        ("rate(5 weeks)", 8, "unit is unknown", "days"),
        ("rate(99999999999999999999 days)", 6, "not a whole number", "rate(5 minutes)"),
        ("rate(18446744073709551615 days)", 6, "longer than 100 years", "at(...)"),
        ("at(2026-12-24)", 4, "not a date with a time of day", "at(2026-12-24T18:00:00)"),
        ("at( 2026-12-24T18:00:00Z)", 5, "not a date with a time of day", "without a zone"),
        ("at(2026-02-29T00:00:00)", 4, "no such date", "calendar"),
        ("at(2026-02-28T24:00:00)", 4, "no such date", "calendar"),
        ("at(2026-12-31T23:59:60)", 4, "no such date", "calendar"),
        ("at(1969-12-31T00:00:00)", 4, "not between 1970 and 2199", "write a year"),
    ] {
        let error = Schedule::parse(expression, Some("Europe/Berlin")).expect_err(expression);
        let ScheduleError::Expression { column: at, message: wrong, help: write, .. } = &error else { panic!("{error}") };
        assert_eq!(*at, column, "{error}");
        assert!(wrong.contains(message), "{error}: not {message}");
        assert!(write.contains(help), "{error}: not {help}");
    }
}

#[test]
fn zones_are_names_of_iana() {
    let error = |zone: &str| Schedule::parse("* * * * *", Some(zone)).expect_err(zone).to_string();
    assert_eq!(error("Europe/Berln"), "there is no time zone \"Europe/Berln\"; did you mean \"Europe/Berlin\"?");
    for zone in ["", "+02:00", "CEST-2", "Etc/Unknown", "../../etc/passwd", "\u{0}", "Europe/Berlin "] {
        assert!(error(zone).starts_with("there is no time zone"), "{zone}");
    }
    let long = error(&"é".repeat(1_000));
    assert!(long.len() < 300 && long.ends_with("such as Europe/Berlin or UTC"), "{long}");
    let schedule = Schedule::parse(" 0 0 * * * ", Some("europe/BERLIN")).expect("names are taken in any case");
    assert_eq!((schedule.zone(), schedule.expression()), ("Europe/Berlin", "0 0 * * *"));
    assert_eq!(schedule.to_string(), "0 0 * * * Europe/Berlin");
    assert_eq!(Schedule::parse("0 0 * * *", None).expect("UTC").zone(), "UTC");
}

#[test]
fn long_expressions_are_refused() {
    let list = |values: usize| format!("cron({} 0 * * ? *)", vec!["59"; values].join(","));
    let fits = format!("{} ", list(80));
    assert_eq!(fits.len(), 256);
    assert!(Schedule::parse(&fits, None).is_ok());
    let error = Schedule::parse(&format!("{fits} "), None).expect_err("257 bytes");
    assert_eq!(error, ScheduleError::TooLong { bytes: 257 });
    assert!(error.to_string().contains("at most 256 are allowed"), "{error}");
}

#[test]
fn impossible_dates_are_found_quickly() {
    let begin = Instant::now();
    for expression in ["cron(0 0 31 2 ? *)", "cron(0 0 31 2,4,6,9,11 ? *)", "0 0 30 2 *", "cron(0 0 29 2 ? 2100)", "* * 31 4 *"] {
        assert!(refused(expression).contains("no date fits"), "{expression}");
    }
    // Some milliseconds each in an optimised build.
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}

/// Whatever is written: it is refused with a message, or searched without failing.
#[test]
fn mutated_expressions_never_panic() {
    const SEEDS: [&str; 10] = [
        "cron(0/15 8-17 ? JAN-MAR,jul MON#2 2026/3)",
        "cron(0 0 LW,15W * ? 2020-2100)",
        "cron(*/5 22-2 ? * FRIL,2#1 *)",
        "cron(0 0 L * ? *)",
        "*/5 0-23/2 1,15 jan-DEC 0-7",
        "0 0 13 * 5",
        "rate(5 minutes)",
        "rate(1 day)",
        "at(2026-12-24T18:00:00)",
        " cron( 30\t2 * * ? * ) ",
    ];
    const PIECES: [&str; 30] = [
        "",
        "0",
        "9",
        "99",
        "-",
        "/",
        ",",
        "*",
        "?",
        "L",
        "W",
        "#",
        "LW",
        " ",
        "\t",
        "(",
        ")",
        "é",
        "\u{0}",
        "65535",
        "65536",
        "18446744073709551616",
        "MON",
        "Jan",
        "+",
        "@",
        "cron(",
        "rate(",
        "at(",
        "T",
    ];
    let seed: u64 = 20_260_101;
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut read = 0;
    for _ in 0..20_000 {
        let mut text: Vec<char> = SEEDS[random.usize(..SEEDS.len())].chars().collect();
        for _ in 0..random.usize(1..3) {
            let from = random.usize(..=text.len());
            let to = (from + random.usize(..3)).min(text.len());
            text.splice(from..to, PIECES[random.usize(..PIECES.len())].chars());
        }
        let text: String = text.into_iter().collect();
        match Schedule::parse(&text, Some("Australia/Lord_Howe")) {
            Err(error) => {
                assert!(!error.to_string().contains("report this as a bug"), "{error}");
                let ScheduleError::Expression { column, .. } = &error else { panic!("{error}") };
                assert!(*column <= text.chars().count() + 1, "{error}");
            }
            Ok(schedule) => {
                read += 1;
                let after = random.i64(..);
                for after in [after, after >> 20, 1_700_000_000_000] {
                    let next = schedule.next(after);
                    assert!(next.is_none_or(|next| next > after), "{text} after {after}: {next:?}");
                    let times = due(&schedule, after, after.saturating_add(1 << 40), CatchUp::All { max: 3 });
                    assert!(times.is_sorted() && times.len() <= 3, "{text}");
                }
            }
        }
    }
    assert!(read > 500, "{read} were read");
}
