//! `sledge-grpc-prepare PACKAGE OUT`: writes the replacements for the package in a folder, and prints the arguments for cargo, one a line.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [package, out] = &arguments[..] else {
        eprintln!("usage: sledge-grpc-prepare PACKAGE OUT");
        return ExitCode::from(2);
    };
    match sledge_grpc_prepare::prepare(Path::new(package), Path::new(out)) {
        Ok(prepared) => {
            for argument in prepared.cargo_arguments() {
                println!("{argument}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
