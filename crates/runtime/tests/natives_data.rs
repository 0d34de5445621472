//! Natives that convert, hash, inspect and encode terms, against those of an installed `erl`.

mod stock;

#[test]
fn agree_with_stock() {
    let script = include_str!("data/natives_data.erl");
    stock::compare("natives_data", script, 10_000);
}
