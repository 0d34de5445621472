//! Compares natives that convert, hash, inspect and encode terms with those of an installed `erl`.

mod stock;

#[test]
fn agree_with_stock() {
    let script = include_str!("data/natives_data.erl");
    stock::compare("natives_data", script, 10_000);
}

#[test]
fn parts_of_an_encoding_make_the_whole() {
    use purlin_runtime::cx::Cx;
    use purlin_term::Alloc;
    let mut cx = Cx::boxed(0);
    let large = cx.binary(&[7; 300]);
    let larger = cx.binary(&[8; 5000]);
    let small = cx.binary(&[9; 10]);
    let odd = cx.sub_binary(larger, 3, 8 * 400);
    let aligned = cx.sub_binary(larger, 16, 8 * 400);
    let bits = cx.sub_binary(larger, 0, 8 * 400 + 3);
    let t = cx.tuple(&[large, small, odd, larger, bits, aligned, large]);
    let mut native = |name, t| {
        let b = stock::native("erlang", name, 1).expect("a native");
        stock::call(&mut cx, b, &[t]).expect("a value")
    };
    let whole = native("term_to_binary", t);
    let parts = native("term_to_iovec", t);
    assert_eq!(native("external_size", t), native("byte_size", whole));
    let bytes: Vec<u8> = parts
        .list_iter()
        .flat_map(|b| b.as_binary().expect("a binary").into_owned())
        .collect();
    assert_eq!(Some(&bytes[..]), whole.as_binary().as_deref());
    // Four of the binaries appear unchanged.
    let same = |x| parts.list_iter().filter(|&b| b == x).count();
    assert_eq!((same(large), same(larger), same(aligned)), (2, 1, 1));
}
