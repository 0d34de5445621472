//! System limits, from small to large: the emulator starts, or ends with a message and a status. It
//! never hangs and never crashes.
//!
//! Skipped with a message if there is no stock `erl`.
#![cfg(target_os = "linux")]

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Time limit for a start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

const PROGRAM: &str = "P = open_port({spawn, \"echo port\"}, [{line, 10}]), receive {P, {data, {eol, T}}} -> io:format(\"~s~n\", [T]) end, \
    L = lists:seq(1, 2000), S = self(), [spawn(fun() -> S ! I end) || I <- L], \
    io:format(\"~p~n\", [lists:sum([receive I -> I end || I <- L])]), halt().";
const OUTPUT: &str = "port\n2001000\n";

/// The output and status of a program that ran under a limit.
struct Ended {
    status: Option<ExitStatus>,
    output: String,
    words: String,
}

impl Ended {
    fn ran(&self) -> bool {
        self.status.is_some_and(|s| s.success())
    }
    /// It ran correctly, or gives the reason why not.
    fn check(&self, what: &str) {
        let told = format!("{what}: {:?}\n{}\n{}", self.status, self.output, self.words);
        let status = self
            .status
            .unwrap_or_else(|| panic!("waits for ever: {told}"));
        assert!(!self.words.contains("panicked"), "{told}");
        assert!(!self.words.contains("a fault in itself"), "{told}");
        for word in ["memory allocation of", "backtrace", "overflowed its stack"] {
            assert!(!self.words.contains(word), "{told}");
        }
        match status.success() {
            true => assert_eq!(self.output, OUTPUT, "{told}"),
            false => assert!(!self.words.trim().is_empty(), "{told}"),
        }
    }
}

fn there_is_erl() -> bool {
    let there = Command::new("erl").arg("-version").output().is_ok();
    if !there {
        println!("skipped: no erl");
    }
    there
}

/// Runs the program after `prepare`, which makes only system calls.
fn run(flags: &[&str], prepare: impl Fn() -> i32 + Send + Sync + 'static) -> Ended {
    let mut c = Command::new(env!("CARGO_BIN_EXE_purlin"));
    c.arg("erl").args(flags);
    c.args(["-noshell", "-noinput", "-eval", PROGRAM]);
    c.env("ERL_CRASH_DUMP_SECONDS", "0")
        .env("HOME", "/")
        .current_dir("/");
    c.stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // SAFETY: only system calls between fork and exec.
    unsafe {
        c.pre_exec(move || match prepare() {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let mut child = c.spawn().expect("starts");
    let begun = Instant::now();
    let status = loop {
        match child.try_wait().expect("is waited for") {
            Some(status) => break Some(status),
            None if begun.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let mut bytes = (Vec::new(), Vec::new());
    let _ = child.stdout.take().map(|mut o| o.read_to_end(&mut bytes.0));
    let _ = child.stderr.take().map(|mut e| e.read_to_end(&mut bytes.1));
    let text = |b: Vec<u8>| String::from_utf8_lossy(&b).into_owned();
    Ended {
        status,
        output: text(bytes.0),
        words: text(bytes.1),
    }
}

fn limited(resource: libc::__rlimit_resource_t, to: u64) -> i32 {
    let limit = libc::rlimit {
        rlim_cur: to,
        rlim_max: to,
    };
    // SAFETY: a valid limit.
    unsafe { libc::setrlimit(resource, &limit) }
}

/// Tries all values. Returns the smallest with which the program runs, as it then must with all
/// larger ones.
fn sweep(name: &str, resource: libc::__rlimit_resource_t, values: &[u64]) -> Option<u64> {
    let mut least = None;
    for &value in values {
        let ended = run(&["+S", "2"], move || limited(resource, value));
        let what = format!("{name} of {value}");
        ended.check(&what);
        match (ended.ran(), least) {
            (true, None) => least = Some(value),
            (false, Some(least)) => panic!(
                "{what}: does not run, as it does with {least}: {}",
                ended.words
            ),
            _ => {}
        }
    }
    println!("{name}: runs from {least:?} on");
    least
}

const MB: u64 = 1 << 20;

#[test]
fn memory_that_can_be_written() {
    if there_is_erl() {
        let values = [4, 8, 12, 16, 18, 20, 22, 24, 28, 32, 40, 48, 64, 200].map(|n| n * MB);
        let least = sweep("RLIMIT_DATA", libc::RLIMIT_DATA, &values);
        assert!(least.is_some_and(|n| n <= 200 * MB), "{least:?}");
    }
}

#[test]
fn addresses() {
    if there_is_erl() {
        let values = [100, 110, 120, 140, 160, 256, 512, 1024, 4096, 8192].map(|n| n * MB);
        let values = [&values[..], &[2 << 40]].concat();
        let least = sweep("RLIMIT_AS", libc::RLIMIT_AS, &values);
        assert!(least.is_some_and(|n| n <= 4096 * MB), "{least:?}");
        for mb in [24, 30, 40, 60, 100] {
            let ended = run(&["+S", "2"], move || limited(libc::RLIMIT_AS, mb * MB));
            // No other message before the one that says what was refused.
            let lines = ended.words.lines().count();
            assert!(ended.ran() || lines == 1, "{mb} MB: {:?}", ended.words);
        }
    }
}

#[test]
fn descriptors() {
    if there_is_erl() {
        let values = [8, 10, 12, 14, 15, 16, 17, 18, 20, 24, 31, 1024];
        let least = sweep("RLIMIT_NOFILE", libc::RLIMIT_NOFILE, &values);
        assert!(least.is_some_and(|n| n <= 31), "{least:?}");
    }
}

#[test]
fn stacks_and_files() {
    if there_is_erl() {
        let values = [
            32 << 10,
            48 << 10,
            64 << 10,
            128 << 10,
            256 << 10,
            MB,
            8 * MB,
        ];
        assert!(sweep("RLIMIT_STACK", libc::RLIMIT_STACK, &values).is_some());
        let values = [0, 1000, 100_000, 10 * MB, 100 * MB];
        // The program writes to a pipe, so the system need not kill it.
        let least = sweep("RLIMIT_FSIZE", libc::RLIMIT_FSIZE, &values);
        assert_eq!(least, Some(0));
    }
}

/// A user with no other processes, so that limits per user can be tested.
const NOBODY: u32 = 64_322;

#[test]
fn threads() {
    // SAFETY: a plain call.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root can become a user who has no processes");
        return;
    }
    if !there_is_erl() {
        return;
    }
    let mut least = None;
    for n in [1, 2, 3, 4, 5, 6, 8, 12, 16, 18, 20, 22, 24, 28, 60] {
        let ended = run(&["+S", "2"], move || {
            // SAFETY: plain calls.
            unsafe {
                limited(libc::RLIMIT_NPROC, n)
                    | libc::setgroups(0, std::ptr::null())
                    | libc::setresgid(NOBODY, NOBODY, NOBODY)
                    | libc::setresuid(NOBODY, NOBODY, NOBODY)
            }
        });
        if ended.words.contains("Permission denied") {
            println!("skipped: another user can't run the executable");
            return;
        }
        ended.check(&format!("RLIMIT_NPROC of {n}"));
        if ended.ran() {
            least = least.or(Some(n));
        } else if let Some(least) = least {
            panic!(
                "{n} threads: does not run, as it does with {least}: {}",
                ended.words
            );
        }
    }
    println!("RLIMIT_NPROC: runs from {least:?} on");
    assert!(least.is_some());
}

/// Makes these system calls fail with that error, for this process and its children.
fn refuse(calls: &[libc::c_long], error: i32) -> i32 {
    const LOAD: u16 = 0x20;
    const EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7FFF_0000;
    const REFUSE: u32 = 0x0005_0000;
    let op = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // No memory is allocated between fork and exec.
    let mut program = [op(RETURN, 0, 0, ALLOW); 16];
    program[0] = op(LOAD, 0, 0, 0);
    for (i, call) in calls.iter().enumerate() {
        program[1 + i] = op(EQUAL, (calls.len() - i) as u8, 0, *call as u32);
    }
    program[calls.len() + 1] = op(RETURN, 0, 0, ALLOW);
    program[calls.len() + 2] = op(RETURN, 0, 0, REFUSE | error as u32);
    let program = libc::sock_fprog {
        len: calls.len() as u16 + 3,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: plain system calls; the program outlives them.
    unsafe {
        match libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) {
            0 => libc::prctl(libc::PR_SET_SECCOMP, 2, &raw const program),
            r => r,
        }
    }
}

#[test]
fn system_calls_that_are_refused() {
    if !there_is_erl() {
        return;
    }
    const SETS: [&[libc::c_long]; 6] = [
        &[libc::SYS_eventfd2],
        &[libc::SYS_epoll_create1],
        &[libc::SYS_epoll_create1, libc::SYS_eventfd2],
        &[libc::SYS_epoll_ctl],
        &[libc::SYS_epoll_pwait],
        &[
            libc::SYS_pidfd_open,
            libc::SYS_membarrier,
            libc::SYS_memfd_create,
        ],
    ];
    for calls in SETS {
        for error in [libc::EPERM, libc::ENOSYS] {
            let ended = run(&[], move || refuse(calls, error));
            ended.check(&format!("refused {calls:?}"));
            assert!(ended.ran(), "refused {calls:?}: {}", ended.words);
        }
    }
}

/// Creates atoms and keeps them until there are as many as `+t` allows. Every way to a new atom
/// then fails by an exception or an error value, and the node continues. (Stock ends.)
const ATOMS: &str = r#"
{ok, m, Code} = compile:forms([{attribute,1,module,m}, {attribute,1,export,[{f,0}]},
    {function,1,f,0,[{clause,1,[],[],[{atom,1,zz_known}]}]}], []),
New = binary:replace(Code, <<"zz_known">>, <<"zz_fresh">>),
B = fun(Name) -> <<131, 119, (byte_size(Name)), Name/binary>> end,
Fill = fun F(N) ->
    case catch list_to_atom("atom_" ++ integer_to_list(N)) of
        A when is_atom(A) -> put(N, A), F(N + 1);
        {'EXIT', {Why, _}} -> {N > 1000, Why}
    end
end,
Try = fun(F) -> try F() catch C:R -> {C, R} end end,
First = Fill(0),
Rest = [Try(F) || F <- [
    fun() -> binary_to_atom(<<"new_1">>) end,
    fun() -> binary_to_term(B(<<"new_2">>)) end,
    fun() -> binary_to_term(B(<<"new_3">>), [safe]) end,
    fun() -> element(1, erlang:prepare_loading(m, New)) end,
    fun() -> element(2, erlang:prepare_loading(m, New)) end,
    fun() -> code:load_binary(m, "m", New) end,
    fun() -> binary_to_existing_atom(<<"new_4">>) end,
    fun() -> binary_to_atom(<<"lists">>) end,
    fun() -> {module, m} = code:load_binary(m, "m", Code), m:f() end,
    fun() -> is_reference(monitor(process, spawn(fun() -> ok end))) end,
    fun() -> element(1, catch inet:getaddr("127.0.0.1", inet)) end]],
%% Modules that are not loaded yet have atoms of their own.
erlang:display([First | Rest]),
halt().
"#;

/// Runs `purlin erl` in a folder, with room for 60,000 atoms. Its standard output must contain
/// `wanted`, spaces and line breaks aside. The logger, which cannot load the code of its formatter,
/// may add a line.
fn with_few_atoms(folder: &Path, args: &[&str], wanted: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_purlin"))
        .args(["erl", "+t", "60000"])
        .args(args)
        .current_dir(folder)
        .env("ERL_CRASH_DUMP_SECONDS", "0")
        .stdin(Stdio::null())
        .output()
        .expect("runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let words: String = text.split_whitespace().collect();
    assert!(words.contains(wanted), "{text}\n{output:?}");
}

#[test]
fn too_many_atoms_are_an_exception() {
    if !there_is_erl() {
        return;
    }
    let limit = "{error,system_limit}";
    let wanted = format!(
        "[{{true,system_limit}},{limit},{limit},{{error,badarg}},error,system_limit,{limit},\
         {{error,badarg}},lists,zz_known,true,ok]"
    );
    with_few_atoms(
        Path::new("."),
        &["-noshell", "-noinput", "-eval", ATOMS],
        &wanted,
    );
}

/// Fills the table of atoms of a node, to which another sends terms with new atoms: in the header
/// of a message, as a reason, and in a large message, which the receiver decodes. Each time the
/// connection ends, and the receiving node continues. What has no new atoms arrives.
const ATOMS_OF_NODES: &str = r#"
os:cmd("epmd -daemon"),
logger:set_primary_config(level, none),
{ok, _} = net_kernel:start(list_to_atom("full" ++ os:getpid()), #{name_domain => shortnames}),
process_flag(trap_exit, true),
New = "binary_to_atom(integer_to_binary(I))",
Large = "[{" ++ New ++ ", lists:seq(1, 50)} || I <- lists:seq(100000, 100900)]",
Eval = "register(go, spawn(fun() -> Run = fun Run() -> receive
        {message, P} -> I = 100, P ! " ++ New ++ ";
        {reason, P} -> I = 200, exit(P, " ++ New ++ ");
        {large_message, P} -> P ! " ++ Large ++ ";
        {large_reason, P} -> exit(P, " ++ Large ++ ");
        {known, P} -> P ! [{ok, lists:seq(1, 50)} || _ <- lists:seq(1, 900)]
    end, Run() end, Run() end)).",
Options = #{name => peer:random_name(), connection => standard_io, args => ["-connect_all", "false", "-eval", Eval]},
{ok, Peer, Node} = peer:start(Options),
pong = net_adm:ping(Node),
Fill = fun F(N) ->
    case catch list_to_atom("atom_" ++ integer_to_list(N)) of
        A when is_atom(A) -> put(N, A), F(N + 1);
        _ -> ok
    end
end,
Fill(0),
Told = [begin
    pong = net_adm:ping(Node),
    monitor_node(Node, true),
    {go, Node} ! {Kind, self()},
    {Kind, receive {nodedown, Node} -> down; M when is_list(M) -> length(M) after 20000 -> none end}
end || Kind <- [message, reason, large_message, large_reason, known]],
erlang:display(Told),
catch peer:stop(Peer),
erlang:display(stopped),
halt().
"#;

#[test]
fn too_many_atoms_of_another_node_end_its_connection() {
    if !there_is_erl() {
        return;
    }
    // Nodes that know nothing of each other: `global` would end the connections of all.
    let wanted = "[{message,down},{reason,down},{large_message,down},{large_reason,down},\
                  {known,900}]stopped";
    let flags = ["-connect_all", "false", "-noinput", "-eval", ATOMS_OF_NODES];
    with_few_atoms(Path::new("."), &flags, wanted);
}

/// A library makes atoms when there are as many as `+t` allows: what exists is found, and the rest
/// is an error of its call.
#[test]
fn too_many_atoms_of_a_library() {
    if !there_is_erl() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("purlin_atoms_{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let root = Command::new("erl")
        .args([
            "-noshell",
            "-eval",
            "io:put_chars(code:root_dir()), halt().",
        ])
        .output()
        .expect("erl runs");
    let headers = format!(
        "{}/usr/include",
        String::from_utf8_lossy(&root.stdout).trim()
    );
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/nif/atoms.c");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-I", &headers, source, "-o"])
        .arg(folder.join("atoms.so"))
        .status();
    if !built.is_ok_and(|s| s.success()) {
        println!("skipped: no C compiler");
        return;
    }
    let wanted = "{before,{made_1,true,made_2,made_3}}{after,{badarg,false,false,badarg}}\
                  {known,{ok,true,true,ok}}";
    let flags = ["-noshell", "-noinput", "-eval", ATOMS_OF_A_LIBRARY];
    with_few_atoms(&folder, &flags, wanted);
    let _ = std::fs::remove_dir_all(&folder);
}

const ATOMS_OF_A_LIBRARY: &str = r#"
{ok, atoms, Code} = compile:forms([{attribute,1,module,atoms}, {attribute,1,export,[{load,0}, {make,1}, {known,1}, {new,1}, {length,1}]},
    {function,1,load,0,[{clause,1,[],[],[{call,1,{remote,1,{atom,1,erlang},{atom,1,load_nif}},[{string,1,"./atoms"},{nil,1}]}]}]}
    | [{function,1,F,1,[{clause,1,[{var,1,'_'}],[],[{call,1,{remote,1,{atom,1,erlang},{atom,1,nif_error}},[{atom,1,undef}]}]}]} || F <- [make, known, new, length]]], []),
{module, atoms} = code:load_binary(atoms, "atoms", Code),
ok = atoms:load(),
Try = fun(F) -> try F() catch error:R -> R end end,
Show = fun(When, V) -> erlang:display({When, V}) end,
Show(before, {atoms:make("made_1"), atoms:known("made_1"), atoms:new("made_2"), atoms:length("made_3")}),
Fill = fun F(N) ->
    case catch list_to_atom("atom_" ++ integer_to_list(N)) of
        A when is_atom(A) -> put(N, A), F(N + 1);
        _ -> ok
    end
end,
Fill(0),
Show('after', {Try(fun() -> atoms:make("made_4") end), atoms:known("made_5"), atoms:new("made_6"), Try(fun() -> atoms:length("made_7") end)}),
Show(known, {atoms:make("ok"), atoms:known("made_1"), atoms:new("true"), atoms:length("ok")}),
halt().
"#;

/// Makes five times as many atoms as there may be, and keeps few of them; monitors a process by
/// more names than there may be; then keeps all atoms.
const DEAD_ATOMS: &str = r#"
Make = fun F(_, 0, Kept) -> Kept;
    F(Name, N, Kept) ->
        A = list_to_atom(Name ++ integer_to_list(N)),
        F(Name, N - 1, case N rem 1000 of 0 -> [A | Kept]; _ -> Kept end)
end,
Kept = Make("few_", 300000, []),
erlang:display({length(Kept), [atom_to_list(A) || A <- Kept] =:= ["few_" ++ integer_to_list(N * 1000) || N <- lists:seq(1, 300)]}),
erlang:display(erlang:system_info(atom_count) =< 60000),
Pid = spawn(fun() -> receive never -> ok end end),
Watch = fun F(0) -> ok;
    F(N) ->
        A = list_to_atom("watched_" ++ integer_to_list(N)),
        register(A, Pid),
        R = erlang:monitor(process, A),
        unregister(A),
        demonitor(R),
        F(N - 1)
end,
erlang:display(Watch(150000)),
All = fun F(N, As) ->
    try list_to_atom("all_" ++ integer_to_list(N)) of A -> F(N + 1, [A | As]) catch error:Why -> {Why, As} end
end,
{Reason, As} = All(0, []),
erlang:display({Reason, length(As) > 20000, length([A || A <- As, atom_to_list(A) =:= ""])}),
halt().
"#;

#[test]
fn dead_atoms_make_room() {
    if !there_is_erl() {
        return;
    }
    let flags = ["+Fatoms", "collect", "-noinput", "-eval", DEAD_ATOMS];
    with_few_atoms(
        Path::new("."),
        &flags,
        "{300,true}trueok{system_limit,true,0}",
    );
}
