//! Natives of library modules that return a setting of the command line.

use crate::cx::{BifResult, Cx};
use crate::options::{PrintableChars, WarningMap};
use purlin_term::{Term, am};

fn printable_range_0(_cx: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(match crate::options::current().flags.printable_chars {
        PrintableChars::Latin1 => am::LATIN1,
        PrintableChars::Unicode => am::UNICODE,
    })
}
fn warning_map_0(_cx: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(match crate::options::current().flags.warnings {
        WarningMap::Info => am::INFO,
        WarningMap::Warning => am::WARNING,
        WarningMap::Error => am::ERROR,
    })
}

crate::bifs! {
    Plain "io":"printable_range"/0 = printable_range_0;
    Plain "error_logger":"warning_map"/0 = warning_map_0;
}
