//! The program. All of it is in the library: that is compiled while machine code is still made of the crates below it.

fn main() -> std::process::ExitCode {
    iotoll::main()
}
