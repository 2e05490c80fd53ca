fn main() {
    let a: Vec<String> = std::env::args().collect();
    let opts = awsm::CompileOptions {
        opt_level: awsm::OptLevel::from_number(a[2].parse().unwrap()).unwrap(),
        bounds: if a[3] == "guard" { awsm::Bounds::Guard } else { awsm::Bounds::Software },
        emit: if a[4] == "asm" { awsm::Emit::Asm } else { awsm::Emit::LlvmIr },
        cpu: awsm::Cpu::Named("x86-64-v3".into()),
    };
    print!("{}", String::from_utf8(awsm::compile(&wat::parse_file(&a[1]).unwrap(), &opts, &()).unwrap()).unwrap());
}
