//! Random schedules of cron, compared with a matcher that goes through every minute.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use sledge_workflow::calendar::{CatchUp, Schedule, due};

const MINUTE_MS: i64 = 60_000;
const ZONES: [&str; 8] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Africa/Casablanca",
    "America/Santiago",
    "Pacific/Chatham",
];
const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// A part of a field, by the numbers of the field. Weekdays: 0 is Sunday.
#[derive(Clone, Debug)]
enum Item {
    One(i64),
    /// From, to, step. It may run over the end.
    Range(i64, i64, i64),
    /// `*/step`.
    Every(i64),
    /// `from/step`.
    From(i64, i64),
    LastDay,
    LastWorkday,
    NearestWorkday(i64),
    LastWeekday(i64),
    NthWeekday(i64, i64),
}

/// A field with its least and greatest value. No items: `*`.
#[derive(Clone, Debug)]
struct Field {
    least: i64,
    most: i64,
    items: Vec<Item>,
}

impl Field {
    fn has(&self, value: i64) -> bool {
        self.items.is_empty() || self.items.iter().any(|item| self.item_has(item, value))
    }

    fn item_has(&self, item: &Item, value: i64) -> bool {
        match *item {
            Item::One(one) => value == one,
            Item::Range(from, to, step) => {
                // Walks as a hand on a dial.
                let mut at = from;
                let mut walked = 0;
                loop {
                    if at == value && walked % step == 0 {
                        return true;
                    }
                    if at == to {
                        return false;
                    }
                    at = if at == self.most { self.least } else { at + 1 };
                    walked += 1;
                }
            }
            Item::Every(step) => (value - self.least) % step == 0,
            Item::From(from, step) => value >= from && (value - from) % step == 0,
            _ => false,
        }
    }
}

#[derive(Clone, Debug)]
struct Expression {
    extended: bool,
    minute: Field,
    hour: Field,
    day: Field,
    month: Field,
    weekday: Field,
    /// Which day field is `?`, in the extended form.
    by_weekday: bool,
}

impl Expression {
    fn random(random: &mut fastrand::Rng) -> Self {
        let extended = random.bool();
        let mut field = |least: i64, most: i64, often: u32| {
            let mut items = Vec::new();
            if random.u32(..100) < often {
                for _ in 0..random.usize(1..3) {
                    let (one, other) = (random.i64(least..=most), random.i64(least..=most));
                    let step = random.i64(1..=(most - least + 1).min(20));
                    items.push(match random.u32(..6) {
                        0 => Item::Range(one, other, 1),
                        1 => Item::Range(one, other, step),
                        2 => Item::Every(step),
                        3 if extended => Item::From(one, step),
                        _ => Item::One(one),
                    });
                }
            }
            Field { least, most, items }
        };
        let (minute, hour) = (field(0, 59, 80), field(0, 23, 60));
        let (mut day, month, mut weekday) = (field(1, 31, 40), field(1, 12, 25), field(0, 6, 40));
        if extended && random.bool() {
            day.items.push(match random.u32(..3) {
                0 => Item::LastDay,
                1 => Item::NearestWorkday(random.i64(1..=31)),
                _ => Item::LastWorkday,
            });
            weekday.items.push(match random.u32(..2) {
                0 => Item::LastWeekday(random.i64(0..7)),
                _ => Item::NthWeekday(random.i64(0..7), random.i64(1..=5)),
            });
        }
        Self { extended, minute, hour, day, month, weekday, by_weekday: random.bool() }
    }

    fn text(&self, random: &mut fastrand::Rng) -> String {
        let mut name = |value: i64, names: &[&str], first: i64, shift: i64| match names.get((value - first) as usize) {
            Some(name) if random.bool() => (*name).to_owned(),
            _ => (value + shift).to_string(),
        };
        let mut write = |field: &Field, names: &[&str], first: i64, shift: i64| {
            if field.items.is_empty() {
                return "*".to_owned();
            }
            let mut value = |value: i64| name(value, names, first, shift);
            let items = field.items.iter().map(|item| match *item {
                Item::One(one) => value(one),
                Item::Range(from, to, 1) => format!("{}-{}", value(from), value(to)),
                Item::Range(from, to, step) => format!("{}-{}/{step}", value(from), value(to)),
                Item::Every(step) => format!("*/{step}"),
                Item::From(from, step) => format!("{}/{step}", value(from)),
                Item::LastDay => "L".to_owned(),
                Item::LastWorkday => "LW".to_owned(),
                Item::NearestWorkday(day) => format!("{day}W"),
                Item::LastWeekday(day) => format!("{}L", value(day)),
                Item::NthWeekday(day, nth) => format!("{}#{nth}", value(day)),
            });
            items.collect::<Vec<_>>().join(",")
        };
        let (minute, hour) = (write(&self.minute, &[], 0, 0), write(&self.hour, &[], 0, 0));
        let (day, month) = (write(&self.day, &[], 0, 0), write(&self.month, &MONTHS, 1, 0));
        let weekday = write(&self.weekday, &WEEKDAYS, 0, i64::from(self.extended));
        match (self.extended, self.by_weekday) {
            (false, _) => format!("{minute} {hour} {day} {month} {weekday}"),
            (true, true) => format!("cron({minute} {hour} ? {month} {weekday} *)"),
            (true, false) => format!("cron({minute} {hour} {day} {month} ? *)"),
        }
    }

    fn fits_date(&self, date: Date) -> bool {
        let day = i64::from(date.day());
        let weekday = i64::from(date.weekday().to_sunday_zero_offset());
        let last = i64::from(date.days_in_month());
        let weekday_of = |other: i64| (weekday + (other - day)).rem_euclid(7);
        let workday = |other: &i64| (1..=5).contains(&weekday_of(*other));
        let special_day = self.day.items.iter().any(|item| match item {
            Item::LastDay => day == last,
            Item::LastWorkday => (1..=last).rev().find(workday) == Some(day),
            Item::NearestWorkday(wanted) => {
                *wanted <= last && (1..=last).filter(workday).min_by_key(|other| (other - wanted).abs()) == Some(day)
            }
            _ => false,
        });
        let special_weekday = self.weekday.items.iter().any(|item| match item {
            Item::LastWeekday(wanted) => weekday == *wanted && day + 7 > last,
            Item::NthWeekday(wanted, nth) => weekday == *wanted && (day - 1) / 7 + 1 == *nth,
            _ => false,
        });
        let (by_day, by_weekday) = (self.day.has(day) || special_day, self.weekday.has(weekday) || special_weekday);
        let starred = |field: &Field| field.items.is_empty() || field.items.iter().any(|item| matches!(item, Item::Every(_)));
        self.month.has(i64::from(date.month()))
            && match (self.extended, self.by_weekday) {
                (true, true) => by_weekday,
                (true, false) => by_day,
                (false, _) if starred(&self.day) || starred(&self.weekday) => by_day && by_weekday,
                (false, _) => by_day || by_weekday,
            }
    }

    fn fits(&self, wall: DateTime) -> bool {
        self.minute.has(i64::from(wall.minute())) && self.hour.has(i64::from(wall.hour())) && self.fits_date(wall.date())
    }
}

/// All times after `from` up to `to`, both whole minutes: each minute looks at the wall times that the zone's clock has come to since the highest one so far.
fn slow(expression: &Expression, zone: &TimeZone, from: i64, to: i64) -> Vec<i64> {
    let wall = |at_ms: i64| zone.to_datetime(Timestamp::from_millisecond(at_ms).expect("it is within range"));
    // A day before: the fold in which `from` may lie has begun since.
    let mut highest = wall(from - 1_440 * MINUTE_MS);
    let mut times = Vec::new();
    let mut at_ms = from - 1_439 * MINUTE_MS;
    while at_ms <= to {
        let now = wall(at_ms);
        let mut fits = false;
        while highest < now {
            highest = highest.checked_add(jiff::SignedDuration::from_mins(1)).expect("it is within range");
            fits |= expression.fits(highest);
        }
        if fits && at_ms > from {
            times.push(at_ms);
        }
        at_ms += MINUTE_MS;
    }
    times
}

/// A minute near a change of the zone's clock, or anywhere in a few decades.
fn begin(random: &mut fastrand::Rng, zone: &TimeZone) -> i64 {
    let anywhere = random.i64(16_000_000..60_000_000) * MINUTE_MS;
    let after = Timestamp::from_millisecond(anywhere).expect("it is within range");
    match zone.following(after).next() {
        Some(change) if random.u32(..4) > 0 => {
            let near = change.timestamp().as_millisecond();
            near - near.rem_euclid(MINUTE_MS) - random.i64(0..2_000) * MINUTE_MS
        }
        _ => anywhere,
    }
}

fn compare(random: &mut fastrand::Rng, days: i64) -> usize {
    let name = ZONES[random.usize(..ZONES.len())];
    let zone = TimeZone::get(name).expect("the zone exists");
    let expression = Expression::random(random);
    let text = expression.text(random);
    let from = begin(random, &zone);
    let to = from + days * 1_440 * MINUTE_MS;
    let expected = slow(&expression, &zone, from, to);
    let schedule = match Schedule::parse(&text, Some(name)) {
        Ok(schedule) => schedule,
        Err(error) => {
            assert!(error.to_string().contains("no date fits") || error.to_string().contains("L and LW"), "{error}");
            assert!(error.to_string().contains("L and LW") || expected.is_empty(), "{error}: {expected:?}");
            return 0;
        }
    };
    let mut at = from;
    for (index, time) in expected.iter().enumerate().take(400) {
        assert_eq!(schedule.next(at), Some(*time), "{text} {name} after {at}, number {index}");
        // Not only from the time before.
        let between = random.i64(at..*time);
        assert_eq!(schedule.next(between), Some(*time), "{text} {name} after {between}");
        let last = schedule.last_from(0, between);
        assert!(
            if index == 0 { last.is_none_or(|last| last <= between) } else { last == Some(at) },
            "{text} {name} until {between}: {last:?}"
        );
        at = *time;
    }
    let newest: Vec<i64> = expected.iter().rev().take(50).rev().copied().collect();
    assert_eq!(due(&schedule, from, to, CatchUp::All { max: 50 }), newest, "{text} {name} from {from} to {to}");
    if expected.len() < 400 {
        let next = schedule.next(at);
        assert!(next.is_none_or(|next| next > to), "{text} {name} after {at}: {next:?}, and nothing is due until {to}");
    }
    expected.len()
}

fn run(seed: u64, cases: usize, days: i64) {
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let busy = (0..cases).filter(|_| compare(&mut random, days) > 0).count();
    assert!(busy * 3 > cases, "only {busy} of {cases} schedules were due at all");
}

#[test]
fn a_few_days_around_changes_of_clocks() {
    run(1, 600, 4);
}

#[test]
fn months() {
    run(2, 15, 60);
}
