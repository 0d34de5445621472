//! Every input of the corpora again: none may panic, crash or fail to end.

use purlin_fuzz::{TARGETS, unpack};
use std::path::Path;

fn replay(name: &str) {
    let target = purlin_fuzz::target(name).expect("a target");
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let kept = std::fs::read(&path).expect("a corpus");
    let inputs = unpack(&kept).expect("a corpus that is whole");
    assert!(!inputs.is_empty());
    for (i, input) in inputs.iter().enumerate() {
        // Shown if it fails: the input that did.
        println!(
            "{name} {i}: {} bytes, {:02x?}",
            input.len(),
            &input[..input.len().min(64)]
        );
        (target.run)(input);
    }
}

#[test]
fn each_target_has_a_test() {
    let names: Vec<_> = TARGETS.iter().map(|t| t.name).collect();
    assert_eq!(names, TESTED);
}

macro_rules! replays {
    ($($name:ident)*) => {
        const TESTED: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                replay(stringify!($name));
            }
        )*
    };
}

replays! { command_line decode_packet external_term frames loader match_spec re schedule unicode zlib }
