//! Scratch driver: emit IN OUT [so|ir|asm|obj] [guard|software|none] [0-3] [cpu]
use awsm::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let get = |i: usize| a.get(i).map(String::as_str);
    let wasm = wat::parse_file(&a[1]).unwrap();
    let options = CompileOptions {
        emit: match get(3) {
            Some("ir") => Emit::LlvmIr,
            Some("asm") => Emit::Asm,
            Some("obj") => Emit::Obj,
            _ => Emit::So,
        },
        bounds: match get(4) {
            Some("software") => Bounds::Software,
            Some("none") => Bounds::None,
            _ => Bounds::Guard,
        },
        opt_level: OptLevel::from_number(get(5).unwrap_or("3").parse().unwrap()).unwrap(),
        cpu: match get(6) {
            None | Some("native") => Cpu::Native,
            Some("baseline") => Cpu::Baseline,
            Some(n) => Cpu::Named(n.into()),
        },
    };
    let t = std::time::Instant::now();
    match compile(&wasm, &options, &T(std::time::Instant::now())) {
        Ok(b) => {
            std::fs::write(&a[2], b).unwrap();
            eprintln!("{:?}", t.elapsed())
        }
        Err(e) => {
            eprintln!("error: {e}");
            std::process::exit(1)
        }
    }
}

struct T(std::time::Instant);
impl Progress for T {
    fn begin(&self, p: Phase, n: usize) { if n > 0 || p > Phase::Validate { eprintln!("{:?} {} {n}", self.0.elapsed(), p.name()) } }
    fn advance(&self, _: usize) {}
}
