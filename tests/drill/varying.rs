//! What differs from run to run, and from machine to machine.

/// A text without it: numbers with units, times of day, digests, numbers of requests and large numbers become words in capitals. Progress is left out: of a server that compiles, or of `awsm`.
/// It is seen only where that takes more than a second.
pub(crate) fn erased(text: &str) -> String {
    let is_progress =
        |line: &&str| line.starts_with("sledge: the server compiles ") || line.contains(", after ") && line.ends_with(" s");
    text.lines()
        .filter(|line| !is_progress(line))
        .map(|line| line.split_inclusive([' ', '=', '(', '"', ',']).map(word).collect::<String>() + "\n")
        .collect()
}

/// One word, with what ends it.
fn word(word: &str) -> String {
    let core = word.trim_end_matches([' ', '=', '(', '"', ',', ':', ';', ')', '.', '\'', '`', ']', '}']);
    let rest = &word[core.len()..];
    match kind(core) {
        Some(kind) => format!("{kind}{rest}"),
        None => word.to_owned(),
    }
}

fn kind(core: &str) -> Option<&'static str> {
    const UNITS: [&str; 11] = ["ns", "us", "\u{b5}s", "ms", "s", "KB", "MB", "GB", "KiB", "MiB", "%"];
    let number = core.trim_end_matches(|c: char| !c.is_ascii_digit());
    let (digits, unit) = core.split_at(number.len());
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_time = core.len() >= 8 && core.contains(':') && core.chars().all(|c| c.is_ascii_digit() || "-:.TZ+".contains(c));
    // Sizes and offsets of code depend on the compiler's and the processor's version.
    let is_large = core.len() >= 4 && core.chars().all(|c| c.is_ascii_digit()) || core.starts_with("0x");
    let is_request =
        core.strip_prefix('#').is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    let is_digest = core.len() >= 16 && core.chars().all(|c| c.is_ascii_hexdigit());
    match () {
        () if is_time => Some("TIME"),
        () if is_digest => Some("DIGEST"),
        () if is_request => Some("REQUEST"),
        () if core.contains('.') && core.parse::<f64>().is_ok() => Some("QUANTITY"),
        () if is_large => Some("QUANTITY"),
        () if is_number && UNITS.contains(&unit) => Some("QUANTITY"),
        () => None,
    }
}

#[test]
fn numbers_without_a_unit_count() {
    assert_eq!(
        erased("2026-11-22T10:11:12.5Z took=1.5ms 0.2 s counter 3"),
        erased("2026-11-23T00:11:12.7Z took=20us 1.25 s counter 3")
    );
    assert_ne!(erased("counter 3"), erased("counter 4"));
    assert_eq!(erased("INFO v2 #7 sent"), erased("INFO v2 #19 sent"));
    assert_ne!(erased("INFO v2 #7 sent"), erased("INFO v3 #7 sent"));
}

#[test]
fn progress_does_not_count() {
    assert_eq!(erased("sledge: the server compiles counter, 1 s\nreplaced counter\n"), erased("replaced counter\n"));
    assert_eq!(
        erased("generate, 5 of 9 functions, after 12 s\nlink, after 13 s\na.so: 9.5 KiB in 14.2 s\n"),
        erased("a.so: 9.4 KiB in 1.3 s\n")
    );
}
