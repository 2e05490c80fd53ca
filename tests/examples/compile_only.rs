use wast::*;
fn main() {
    let level = std::env::args().nth(1).unwrap();
    let b = std::env::args().nth(2).unwrap();
    let filter = std::env::args().nth(3).unwrap_or_default();
    let opts = awsm::CompileOptions {
        opt_level: awsm::OptLevel::from_number(level.parse().unwrap()).unwrap(),
        bounds: if b == "guard" { awsm::Bounds::Guard } else { awsm::Bounds::Software },
        ..Default::default()
    };
    let mut n = 0;
    let mut bad = 0;
    let t = std::time::Instant::now();
    for s in sledge_tests::spec::official().into_iter().chain(sledge_tests::spec::ours().unwrap()) {
        if !s.name.contains(&filter) {
            continue;
        }
        let t1 = std::time::Instant::now();
        let n1 = n;
        let mut lexer = lexer::Lexer::new(&s.text);
        lexer.allow_confusing_unicode(true);
        let buf = parser::ParseBuffer::new_with_lexer(lexer).unwrap();
        let w = match parser::parse::<Wast>(&buf) {
            Ok(w) => w,
            Err(e) => {
                println!("{}: {}", s.name, e.message());
                continue;
            }
        };
        for d in w.directives {
            let line = d.span().linecol_in(&s.text).0 + 1;
            let (bytes, ok) = match d {
                WastDirective::Module(mut m) => (m.encode(), true),
                WastDirective::AssertUnlinkable { mut module, .. } => (module.encode(), true),
                WastDirective::AssertTrap { exec: WastExecute::Wat(mut m), .. } => (m.encode(), true),
                WastDirective::AssertInvalid { mut module, .. } | WastDirective::AssertMalformed { mut module, .. } => {
                    match module.encode() {
                        Ok(b) => (Ok(b), false),
                        Err(_) => continue,
                    }
                }
                _ => continue,
            };
            let bytes = match bytes {
                Ok(b) => b,
                Err(e) => {
                    println!("{}:{line}: {}", s.name, e.message());
                    continue;
                }
            };
            n += 1;
            let r = std::panic::catch_unwind(|| awsm::compile(&bytes, &opts, &()));
            match (r, ok) {
                (Ok(Ok(_)), true) => {}
                (
                    Ok(Err(
                        awsm::CompileError::Invalid { .. }
                        | awsm::CompileError::Unsupported { .. }
                        | awsm::CompileError::Limit { .. },
                    )),
                    false,
                ) => {}
                (Ok(Err(e)), _) => {
                    bad += 1;
                    println!("{}:{line}: valid={ok}: {e}", s.name)
                }
                (Ok(Ok(_)), false) => {
                    bad += 1;
                    println!("{}:{line}: accepted an invalid module", s.name)
                }
                (Err(_), _) => {
                    bad += 1;
                    println!("{}:{line}: PANIC", s.name)
                }
            }
        }
        if t1.elapsed().as_millis() > 3000 {
            println!("# {} {} modules {} ms", s.name, n - n1, t1.elapsed().as_millis());
        }
    }
    println!("{n} modules, {bad} bad, {:?}", t.elapsed());
}
