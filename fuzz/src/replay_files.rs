//! Replay files of the race finder. Input: a file, or the lines between the first one and the
//! checksum.

use purlin_explore::deviation::Deviation;
use purlin_explore::{checksum, file};

pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = file::read(&text);
    // Few inputs have a checksum that is right.
    let mut whole = format!("purlin schedule {}\n{}", file::FORMAT, text);
    if !whole.ends_with('\n') {
        whole.push('\n');
    }
    let sum = checksum(whole.as_bytes());
    let Ok(read) = file::read(&format!("{whole}sum {sum}\n")) else {
        return;
    };
    for deviation in &read.replay.schedule {
        assert_eq!(Deviation::parse(&deviation.text()), Some(*deviation));
    }
}
