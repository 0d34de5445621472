//! Natives of module `os`: environment, process number, signals. Natives that read clocks are in
//! [`super::super::time::clocks`].

use crate::cx::{BifResult, Cx, Fail};
use crate::os_signals::{self, Action};
use crate::{bifs, filename, osenv};
use purlin_kernel::os::world;
use purlin_term::{Alloc, NIL, Term, am, atom};

/// A string for the environment, from a list of characters.
fn value_arg(t: Term) -> Result<Vec<u8>, Fail> {
    if t.is_atom() {
        return Err(Fail::Badarg);
    }
    filename::to_native(t).ok_or(Fail::Badarg)
}

fn name_arg(t: Term) -> Result<Vec<u8>, Fail> {
    value_arg(t).and_then(|n| {
        if n.contains(&b'=') {
            Err(Fail::Badarg)
        } else {
            Ok(n)
        }
    })
}

fn env_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let mut list = NIL;
    for (name, value) in osenv::all().into_iter().rev() {
        cx.bump(1);
        let name = filename::from_native_lossy(cx, &name);
        let value = filename::from_native_lossy(cx, &value);
        let pair = cx.tuple(&[name, value]);
        list = cx.cons(pair, list);
    }
    Ok(list)
}

fn getenv_1(cx: &mut Cx, [name]: [Term; 1]) -> BifResult {
    Ok(match osenv::get(&name_arg(name)?) {
        Some(v) => filename::from_native_lossy(cx, &v),
        None => am::FALSE,
    })
}

fn putenv_2(_: &mut Cx, [name, value]: [Term; 2]) -> BifResult {
    let (name, value) = (name_arg(name)?, value_arg(value)?);
    osenv::set(name, Some(value));
    Ok(am::TRUE)
}

fn unsetenv_1(_: &mut Cx, [name]: [Term; 1]) -> BifResult {
    osenv::set(name_arg(name)?, None);
    Ok(am::TRUE)
}

fn getpid_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let number = match world::is_on() {
        true => world::process(),
        false => std::process::id().into(),
    };
    Ok(cx.string(&number.to_string()))
}

fn set_signal_2(cx: &mut Cx, [signal, action]: [Term; 2]) -> BifResult {
    let action = match action.is_atom().then(|| atom::name(action)) {
        Some("default") => Action::Default,
        Some("ignore") => Action::Ignore,
        Some("handle") => Action::Handle,
        _ => return Err(cx.badarg_cause(am::BADOPT)),
    };
    if !signal.is_atom() {
        return Err(Fail::Badarg);
    }
    let n = os_signals::named(atom::name(signal)).ok_or(Fail::Badarg)?;
    // Some signals cannot be changed. As in stock, this is not reported.
    let _ = os_signals::set(n, action);
    Ok(am::OK)
}

bifs! {
    Plain "os":"env"/0 = env_0 [reads(Variable) recorded outside(Variable)];
    Plain "os":"getenv"/1 = getenv_1 [reads(Variable) recorded outside(Variable)];
    Plain "os":"putenv"/2 = putenv_2 [writes(Variable)];
    Plain "os":"unsetenv"/1 = unsetenv_1 [writes(Variable)];
    Plain "os":"getpid"/0 = getpid_0 [reads(All) recorded outside(Number)];
    Plain "os":"set_signal"/2 = set_signal_2;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_set_and_taken_away() {
        let mut cx = Cx::boxed(0);
        let cx = &mut *cx;
        let (name, value) = (cx.string("PURLIN_TEST_X"), cx.string("a=b"));
        assert_eq!(getenv_1(cx, [name]), Ok(am::FALSE));
        assert_eq!(putenv_2(cx, [name, value]), Ok(am::TRUE));
        let got = getenv_1(cx, [name]).expect("a value");
        assert!(purlin_term::compare::eq_exact(got, value));
        assert_eq!(unsetenv_1(cx, [name]), Ok(am::TRUE));
        assert_eq!(getenv_1(cx, [name]), Ok(am::FALSE));
        assert_eq!(getenv_1(cx, [value]), Err(Fail::Badarg));
        assert_eq!(getenv_1(cx, [am::OK]), Err(Fail::Badarg));
    }
}
