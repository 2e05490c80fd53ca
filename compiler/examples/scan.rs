//! Scratch: compile all modules of .wast files
use awsm::*;
use wast::{QuoteWat, Wast, WastDirective, parser};
fn main() {
    let mut a = std::env::args().skip(1);
    let level = OptLevel::from_number(a.next().unwrap().parse().unwrap()).unwrap();
    let bounds = if a.next().unwrap() == "software" { Bounds::Software } else { Bounds::Guard };
    let cpu = if a.next().unwrap() == "baseline" { Cpu::Baseline } else { Cpu::Native };
    let options = CompileOptions { bounds, opt_level: level, cpu, emit: Emit::So };
    let (mut ok, mut rej, mut bad) = (0, 0, 0);
    for f in a {
        let text = std::fs::read_to_string(&f).unwrap();
        let mut lexer = wast::lexer::Lexer::new(&text);
        lexer.allow_confusing_unicode(true);
        let Ok(buf) = parser::ParseBuffer::new_with_lexer(lexer) else {
            println!("{f}: no buf");
            continue;
        };
        let Ok(w) = parser::parse::<Wast>(&buf) else {
            println!("{f}: parse");
            continue;
        };
        for d in w.directives {
            let span = d.span().linecol_in(&text).0 + 1;
            let (mut m, expect): (QuoteWat, bool) = match d {
                WastDirective::Module(m) => (m, true),
                WastDirective::AssertInvalid { module, .. } => (module, false),
                WastDirective::AssertMalformed { module, .. } => (module, false),
                _ => continue,
            };
            let Ok(bytes) = m.encode() else {
                if expect {
                    println!("{f}:{span} encode")
                }
                continue;
            };
            match (compile(&bytes, &options, &()), expect) {
                (Ok(_), true) => ok += 1,
                (Err(CompileError::Unsupported { .. }), _) => rej += 1,
                (Err(_), false) => rej += 1,
                (Ok(_), false) => {
                    bad += 1;
                    println!("{f}:{span}: accepted")
                }
                (Err(e), true) => {
                    bad += 1;
                    println!("{f}:{span}: {e}")
                }
            }
        }
    }
    println!("{ok} compiled, {rej} refused, {bad} bad");
}
