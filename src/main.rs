//! The `rampdeck` program.

fn main() -> std::process::ExitCode {
    rampdeck::cli::main().into()
}
