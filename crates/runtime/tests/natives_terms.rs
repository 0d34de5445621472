//! Compares natives of numbers, tuples, lists and maps with those of an installed `erl`.

mod stock;

#[test]
fn agree_with_stock() {
    let script = include_str!("data/natives_terms.erl");
    stock::compare("natives_terms", script, 3_000);
}
