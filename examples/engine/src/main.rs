//! The command `tagwire` with an engine of one's own beside the others.
//!
//! ```text
//! cargo run --release -- match check mine
//! cargo run --release -- match depth --engine list,bins,mine
//! cargo run --release -- bench latency --engine mine --posted 1K
//! ```

mod mine;

fn main() -> std::process::ExitCode {
    tagwire_cli::command().engine::<mine::Mine>("mine").main()
}
