//! Native records: tests, field access, construction and update. Their layout is in
//! `purlin_term::record`.

use super::handler::op;
use super::operands::{set_source, source};
use super::room::collect_after;
use super::{exc, instr};
use crate::code;
use crate::cx::Cx;
use purlin_native::lazy_atoms;
use purlin_term::record::{Definition, Record};
use purlin_term::{Alloc, NIL, Term, am, definition};
use smallvec::SmallVec;

lazy_atoms! {
    badfield = "badfield";
    novalue = "novalue";
}

op! {
    op_is_record => is_record;
    op_is_record_of => is_record_of;
    op_is_record_open => is_record_open;
    op_get_record_fields => get_record_fields;
    op_get_record_field => get_record_field;
    op_new_record => new_record;
    op_new_record_of => new_record_of;
    op_change_record => change_record;
}

/// Values of a record under construction.
type Values = SmallVec<[Term; 16]>;

/// Why there is no record, or no value.
enum Wrong {
    /// The term is no such record.
    Record(Term),
    /// A record of that definition has no such field.
    Field(Term),
    /// The field has no value.
    Value(Term),
}

/// Whether code of module `open`, or of any module if it is nil, may access the fields of the
/// record.
fn is_open(r: Record, open: Term) -> bool {
    r.definition.is_exported() || r.definition.module() == open
}

/// Goes on at the label of the instruction if it has one, or raises.
///
/// # Safety
/// As for the instruction at `pc`, whose operand `label` is.
unsafe fn wrong(
    cx: &mut Cx,
    pc: *const u64,
    label: Option<*const u64>,
    of: Option<Definition>,
    why: Wrong,
) -> *const u64 {
    if let Some(to) = label {
        return to;
    }
    let (tag, what) = match (why, of) {
        (Wrong::Field(k), Some(d)) => (badfield(), of_field(cx, d, k)),
        (Wrong::Value(k), Some(d)) => (novalue(), of_field(cx, d, k)),
        (Wrong::Record(t) | Wrong::Field(t) | Wrong::Value(t), _) => (am::BADRECORD, t),
    };
    let fail = cx.error2(tag, what);
    exc::raise(cx, pc, fail, exc::First::None)
}

/// `{{Module, Name}, Field}`
fn of_field(cx: &mut Cx, d: Definition, key: Term) -> Term {
    let id = cx.tuple(&[d.module(), d.name()]);
    cx.tuple(&[id, key])
}

/// Stores the values of the `n` words of pairs at `list` in their fields.
///
/// # Safety
/// There must be `n` words of pairs at `list`, in a running instruction whose registers hold terms.
unsafe fn fill(
    cx: &mut Cx,
    d: Definition,
    values: &mut [Term],
    list: *const u64,
    n: usize,
) -> Result<(), Wrong> {
    let e = cx.heap.stop;
    let mut next = 0;
    for i in (0..n).step_by(2) {
        let key = source(cx, e, *list.add(i));
        let Some(at) = d.place(key, next) else {
            let keys = (i..n).step_by(2).map(|i| source(cx, e, *list.add(i)));
            return Err(Wrong::Field(d.least_unknown(keys).unwrap_or(key)));
        };
        values[at] = source(cx, e, *list.add(i + 1));
        next = at + 1;
    }
    Ok(())
}

/// Makes a record as `made` says (see `Env::record`), with the pairs of the instruction.
///
/// # Safety
/// As for [`fill`]; `made` must be a term of the process.
unsafe fn make<'a>(
    cx: &mut Cx,
    made: Term,
    list: *const u64,
    n: usize,
) -> Result<Term, (Option<Definition<'a>>, Wrong)> {
    let parts = match made.as_tuple() {
        Some(&[d, defaults]) => Definition::of(d).zip(defaults.as_tuple()),
        _ => None,
    };
    let (d, defaults) = parts.ok_or((None, Wrong::Record(made)))?;
    // A field without a default is marked until it gets a value.
    let given = |t: &Term| t.as_cons().map_or(Term::NON_VALUE, |(v, _)| v);
    let mut values: Values = defaults.iter().map(given).collect();
    fill(cx, d, &mut values, list, n).map_err(|w| (Some(d), w))?;
    let bare = d.keys().iter().zip(&values);
    let bare = bare.filter(|(_, v)| **v == Term::NON_VALUE).map(|(k, _)| k);
    if let Some(&k) = bare.min_by_key(|k| k.raw()) {
        return Err((Some(d), Wrong::Value(k)));
    }
    Ok(definition::record(&mut cx.heap, d, &values))
}

unsafe fn is_record(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::IsRecord::at(pc);
    match op.src().value(cx).is_record() {
        true => op.next(),
        false => op.fail().to(),
    }
}
unsafe fn is_record_of(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::IsRecordOf::at(pc);
    match op.src().value(cx).as_record() {
        Some(r) if r.is(op.module(), op.name()) => op.next(),
        _ => op.fail().to(),
    }
}
unsafe fn is_record_open(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::IsRecordOpen::at(pc);
    match op.src().value(cx).as_record() {
        Some(r) if is_open(r, op.from()) => op.next(),
        _ => op.fail().to(),
    }
}
unsafe fn get_record_fields(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::GetRecordFields::at(pc);
    let Some(r) = op.src().value(cx).as_record() else {
        return op.fail().to();
    };
    let list = op.pairs();
    let e = cx.heap.stop;
    let mut next = 0;
    for i in (0..op.count()).step_by(2) {
        let key = source(cx, e, *list.add(i));
        match r.definition.place(key, next) {
            Some(at) => {
                set_source(cx, e, *list.add(i + 1), r.values[at]);
                next = at + 1;
            }
            None => return op.fail().to(),
        }
    }
    op.next()
}
unsafe fn get_record_field(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::GetRecordField::at(pc);
    let t = op.src().value(cx);
    let (module, name) = (op.module(), op.name());
    let meant = |r: &Record| match module == NIL {
        true => name == NIL || r.definition.name() == name,
        false => r.is(module, name) && r.definition.is_exported(),
    };
    let (of, why) = match t.as_record().filter(meant) {
        Some(r) => match r.get(op.field()) {
            Some(v) => {
                op.dst().put(cx, v);
                return op.next();
            }
            None => (Some(r.definition), Wrong::Field(op.field())),
        },
        None => (None, Wrong::Record(t)),
    };
    wrong(cx, pc, op.fail().given(), of, why)
}
unsafe fn new_record(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::NewRecord::at(pc);
    let made = op.definition().value(cx);
    match make(cx, made, op.pairs(), op.count()) {
        Ok(t) => {
            op.dst().put(cx, t);
            collect_after(cx, op.live(), op.dst().also());
            op.next()
        }
        Err((of, why)) => wrong(cx, pc, op.fail().given(), of, why),
    }
}
unsafe fn new_record_of(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::NewRecordOf::at(pc);
    let id = op.id().value(cx);
    let made = code::record(op.module(), op.name(), true);
    let result = match made {
        Some(made) => make(cx, made, op.pairs(), op.count()),
        None => Err((None, Wrong::Record(id))),
    };
    match result {
        Ok(t) => {
            op.dst().put(cx, t);
            collect_after(cx, op.live(), op.dst().also());
            op.next()
        }
        Err((of, why)) => wrong(cx, pc, op.fail().given(), of, why),
    }
}
unsafe fn change_record(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::ChangeRecord::at(pc);
    let t = op.src().value(cx);
    let (module, name) = (op.module(), op.name());
    let meant = |r: &Record| (module == NIL || r.is(module, name)) && is_open(*r, op.open());
    let (of, why) = match t.as_record().filter(meant) {
        Some(r) => {
            let mut values = Values::from_slice(r.values);
            match fill(cx, r.definition, &mut values, op.pairs(), op.count()) {
                Ok(()) => {
                    let new = match op.count() {
                        0 => t,
                        _ => definition::record(&mut cx.heap, r.definition, &values),
                    };
                    op.dst().put(cx, new);
                    collect_after(cx, op.live(), op.dst().also());
                    return op.next();
                }
                Err(why) => (Some(r.definition), why),
            }
        }
        None => (None, Wrong::Record(t)),
    };
    wrong(cx, pc, op.fail().given(), of, why)
}
