//! Module `prim_file` of the installation on this runtime's natives.

mod common;

#[test]
fn files_behave_as_in_stock() {
    purlin_runtime::filename::configure(
        purlin_runtime::options::FilenameEncoding::Utf8,
        purlin_runtime::options::FilenameWarning::Ignore,
    );
    common::against_stock(
        "prim_file_sample.erl",
        &["erlang", "prim_buffer", "prim_file", "lists"],
    );
}
