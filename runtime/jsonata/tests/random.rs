//! Random expressions: whatever they are, there is no panic, and the steps end.
//!
//! `SEED` starts at another seed; a failure prints the expression, and the seed of its run is printed first.

#![allow(missing_docs)]

use serde_json::{Value, json};
use sledge_jsonata::limits::STACK_BYTES;
use sledge_jsonata::{Dialect, Environment, Expression, Limits};

const MUTATIONS: usize = 10_000;
const STEPS: u64 = 20_000;

/// Expressions of all kinds, which are cut, joined and changed.
const SEEDS: &[&str] = &[
    "orders.lines[price > 2].{\"a\": sku, \"b\": $sum(count)}",
    "orders@$o.lines#$i[$i = 1].{\"o\": $o.id, \"p\": %.id}",
    "orders.lines^(>price, <sku).tags{$: $count($)}",
    "($f := function($n, $acc)<nn:n>{$n = 0 ? $acc : $f($n - 1, $acc * $n)}; $f(10, 1))",
    "$map([1..20], function($x, $i, $a){$x * $i + $count($a)}) ~> $reduce(function($a, $b){$a + $b})",
    "orders ~> |lines|{\"total\": price * count}, [\"tags\", \"sku\"]|",
    "$replace(\"John Smith\", /(\\w+)\\s(?<last>\\w+)/i, \"$2, $1\")",
    "$match(\"aaabbb\", /(?=(a+))\\1b*?(?!c)[^x-z]{1,3}/).(match & groups[0])",
    "$formatNumber(-1234.5678, \"#,##0.00;(#,##0.00)\", {\"grouping-separator\": \".\"})",
    "$fromMillis(1510067557121, \"[FNn,*-3], [D1o] [MNn] [Y0001] [H01]:[m01]:[s01].[f001] [Z01:01t]\", \"-0530\")",
    "$toMillis(\"07/11/2017 3:12pm\", \"[D01]/[M01]/[Y0001] [h1]:[m01][P]\")",
    "$formatInteger(1234567, \"w;o\") & $parseInteger(\"MCMXCIX\", \"I\") & $formatBase(255, 16)",
    "$sort(orders.lines, function($l, $r){$l.price > $r.price}) ~> $distinct ~> $reverse",
    "**.name[$contains($, /A/i)] ?: missing ?? \"none\"",
    "$each(orders[0], function($v, $k){{$k: $type($v)}}) ~> $merge ~> $keys",
    "$zip([1, 2], [3, 4]).$join($string($), \"-\") & $pad(\"x\", -5, \"ab\") & $substring(\"hello\", -3, 2)",
    "($c := $trim ~> $uppercase ~> $substringBefore(?, \"B\"); $c(\" ab \"))",
    "$encodeUrl(\"a b?c=\u{e4}\u{1f600}\") & $base64encode(\"x\") & $split(\"a,b\", /,/)[1]",
    "$eval(\"[1..3].($ * 2)\") ~> $single(function($x){$x = 4})",
    "$partition($range(1, 9, 2), 2) & $hash(\"x\", \"MD5\") & $uuid() & $parse(\"[1]\") & $random(3)",
    "[[1, [2]], {\"a\": null, `b c`: true}, 'it', -1.5e-3, [1..3, 7]].*[-1][]",
    "$x := $y := 4; /* comment */ ($x in [$y]) and not(true) or 1 != 2 and 3 <= 4",
];

/// Numbers that follow from a seed (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators").
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end.max(1) as u64) as usize
    }

    fn one<'t, T: ?Sized>(&mut self, of: &[&'t T]) -> &'t T {
        of[self.below(of.len())]
    }
}

fn tokens(source: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    for char in source.chars() {
        match tokens.last_mut() {
            Some(last) if char.is_alphanumeric() && last.chars().all(|char| char.is_alphanumeric() || char == '$') => {
                last.push(char)
            }
            _ => tokens.push(String::from(char)),
        }
    }
    tokens
}

fn mutated(random: &mut Random) -> String {
    let mut all = tokens(random.one(SEEDS));
    for _ in 0..=random.below(4) {
        let other = tokens(random.one(SEEDS));
        let at = random.below(all.len());
        match random.below(6) {
            0 if !all.is_empty() => drop(all.remove(at)),
            1 => all.insert(at, other[random.below(other.len())].clone()),
            2 if !all.is_empty() => all[at] = other[random.below(other.len())].clone(),
            3 if !all.is_empty() => {
                let second = random.below(all.len());
                all.swap(at, second);
            }
            4 => {
                let start = random.below(other.len());
                let end = (start + random.below(12)).min(other.len());
                all.splice(at..at, other[start..end].iter().cloned());
            }
            _ => all.insert(
                at,
                String::from(random.one(&[
                    "(",
                    ")",
                    "[",
                    "]",
                    "{",
                    "}",
                    "$",
                    "\\",
                    "\"",
                    "/",
                    "1e308",
                    "-",
                    "?",
                    "\u{1f600}",
                    "\0",
                    "%",
                    "99999999999",
                ])),
            ),
        }
    }
    all.concat()
}

fn input(random: &mut Random) -> Value {
    let line = |random: &mut Random| match random.below(6) {
        0 => json!(null),
        1 => json!([1, [2, "x"]]),
        2 => json!({"sku": 1, "price": "much", "count": {}}),
        _ => json!({"sku": "a", "price": random.below(5), "count": 2.5, "tags": ["x", "y"], "name": "Ann"}),
    };
    let mut order =
        |id: &str| json!({"id": id, "lines": (0..random.below(4)).map(|_| line(random)).collect::<Vec<_>>(), "name": id});
    json!({"orders": [order("o1"), order("o2")], "name": "shop", "missing2": null})
}

fn run() {
    let start: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_127);
    println!("SEED={start}");
    let mut random = Random(start);
    let limits = Limits { steps: STEPS, depth: 200, bytes: 4 << 20, ..Limits::default() };
    let (mut values, mut errors) = (0, 0);
    for _ in 0..MUTATIONS {
        let source = mutated(&mut random);
        let input = input(&mut random);
        let dialect = if random.below(2) == 0 { Dialect::JsonataJs } else { Dialect::StepFunctions };
        let environment = Environment { now_ms: 1_700_000_000_000, seed: 1, limits };
        let result = std::panic::catch_unwind(|| {
            let expression = Expression::parse_dialect(&source, &limits, dialect)?;
            let _ = expression.variables();
            let first = expression.evaluate(Some(&input), &[], &environment);
            let second = expression.evaluate(Some(&input), &[], &environment);
            match (&first, &second) {
                (Ok(first), Ok(second)) => assert_eq!(first, second, "{source}"),
                (Err(first), Err(second)) => assert_eq!(first.to_string(), second.to_string(), "{source}"),
                _ => panic!("{source}: {first:?}, then {second:?}"),
            }
            first
        });
        match result {
            Ok(Ok(_)) => values += 1,
            Ok(Err(error)) => {
                assert!(!error.message().is_empty() && !error.code().is_empty(), "{source}");
                assert!(error.position().is_none_or(|position| position <= source.chars().count()), "{source}: {error}");
                errors += 1;
            }
            Err(_) => panic!("{source} panics"),
        }
    }
    println!("{values} values, {errors} errors");
    assert!(values > MUTATIONS / 50, "hardly any expression is one: {values}");
}

#[test]
fn mutated_expressions_neither_panic_nor_run_on() {
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run).expect("a thread").join().expect("no failure");
}
