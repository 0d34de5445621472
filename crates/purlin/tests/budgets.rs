//! Budgets: limits of counts, rights, mailboxes, and `+Fbudget`.
//!
//! The programs are the functions of `data/budgets.erl`. Stock has no budgets, so what they print
//! is written here. Skipped with a message if there is no OTP.

mod scratch;

use scratch::Scratch;
use std::path::Path;

/// Runs a function of the module, with all schedulers, with one, and under stress of the collector,
/// and compares what it prints.
fn prints(function: &str, lines: &[&str]) {
    let Some(s) = Scratch::new() else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/budgets.erl");
    assert!(
        s.purlin(&["erlc", &source.to_string_lossy()])
            .status
            .success()
    );
    let text = lines.join("\n") + "\ndone\n";
    for flags in [&["+S", "2"][..], &["+S", "1"]] {
        let args = [
            &["erl", "-noshell"],
            flags,
            &["-run", "budgets", "main", function],
        ];
        let out = s.purlin(&args.concat());
        assert_eq!(
            String::from_utf8_lossy(&out.stdout),
            text,
            "{flags:?} {out:?}"
        );
    }
}

#[test]
fn counts_raise_system_limit() {
    prints(
        "counts",
        &[
            "{[true,true,false,false],",
            " {error,system_limit},",
            " true,",
            " [{error,system_limit}],",
            " [{error,system_limit}],",
            " [fresh_1,fresh_2,{error,system_limit}]}",
            "#{atoms => 2,ports => 0,processes => 2,tables => 0}",
        ],
    );
}

#[test]
fn a_refusal_gives_nothing_back() {
    prints("refusals", &["{true,1,2,1,1}"]);
}

#[test]
fn nothing_leaves_its_budget() {
    let refused = "{error,badarg}";
    prints(
        "rights",
        &[
            &format!("[{refused},"),
            &format!(" {refused},"),
            &format!(" {refused},"),
            &format!(" {refused},"),
            &format!(" {refused},"),
            " ok,2,true,",
            &format!(" {refused}]"),
            &format!("[{0},{0},{0},{0},{0}]", refused),
            refused,
        ],
    );
}

#[test]
fn limited_processes_run_after_others() {
    prints("behind", &["other [limited]"]);
}

#[test]
fn an_ended_budget_is_empty_and_forgotten() {
    prints("ends", &["[killed]", "undefined {error,badarg}", "gone []"]);
}

#[test]
fn a_sender_waits_for_room() {
    prints("wait", &["{status,suspended} [1,0,0,0]", "normal 0"]);
}

#[test]
fn messages_are_dropped() {
    prints("drop", &["[0,15,0,0]"]);
}

#[test]
fn the_receiver_ends() {
    prints("exits", &["{budget,messages} [0,0,1,0]"]);
}

#[test]
fn nobody_waits_who_does_not_want_to() {
    prints("nosuspend", &["[ok,ok,nosuspend,nosuspend]"]);
}

#[test]
fn a_circle_is_broken() {
    prints("circle", &["true"]);
}

#[test]
fn whom_the_receiver_waits_for_goes_on() {
    prints("awaited", &["answer 42", "[0,0,0,0]"]);
}

#[test]
fn nothing_is_lost_in_a_short_mailbox() {
    prints("many", &["true"]);
}

#[test]
fn senders_go_on_when_the_receiver_ends() {
    prints("ended", &["[normal,normal,normal,normal,normal]"]);
}

#[test]
fn a_share_of_a_processor() {
    prints("share", &["true true", "true"]);
}

#[test]
fn siblings_share_by_weight() {
    prints("weights", &["true", "true"]);
}

#[test]
fn someone_is_notified_first() {
    let refused = "{error,badarg}";
    prints(
        "notified",
        &[
            "8388608 true true true",
            "{budget,memory}",
            "true",
            "{budget,messages}",
            &format!("[{refused},{refused},{refused}]"),
        ],
    );
    prints("told_above", &["{budget,memory} true"]);
}

#[test]
fn a_report_has_lines() {
    prints("lines", &["true", "true", "true", "true", "true"]);
}

/// The connection is busy, the mailbox stays short, all arrive in order, and the budget counts it;
/// or the messages beyond the limit are dropped.
#[test]
fn senders_on_other_nodes_wait_for_the_connection() {
    let line = "{true,true,true,true} 40";
    prints("far", &[line, line]);
}

/// Messages to a mailbox that is never read hold up others on the same connection, for a bounded
/// time. Other connections and processes of this node are not held up.
#[test]
fn a_full_mailbox_holds_up_its_connection_only() {
    let line = "{arrived,[second,here,first]}";
    prints("far_beside", &[line, line]);
}

/// A program that never reads does not hold the budget of its port.
#[test]
fn ports_with_output_end_with_their_budget() {
    prints("ports_with_output", &["{2,[undefined,undefined],true}"]);
}

#[test]
fn messages_to_oneself() {
    prints(
        "self_sends",
        &[
            "wait {queued,9} [0,0,0,4]",
            "drop {queued,5} [0,4,0,0]",
            "exit {budget,messages} [0,0,1,0]",
        ],
    );
}

#[test]
fn a_budget_pays_for_what_leaves_it() {
    prints(
        "given_away",
        &["{[true,true,{error,system_limit}],2}", "{gone,2}"],
    );
}

#[test]
fn reads_beyond_the_limit_are_refused() {
    let refused = " {error,system_limit},";
    let first = "[{error,system_limit},";
    let rest = [refused; 5];
    let lines = [&[first][..], &rest, &[" 1000000,", " {ok,<<\"456\">>}]"]].concat();
    prints("reads", &lines);
}

#[test]
fn a_queue_of_a_port_is_on_the_bill() {
    prints("port_queue", &["true"]);
}

/// A process that uses ever more memory ends at the limit of its budget, whose peak is no more than
/// a tenth above it. The small process beside it stays.
fn bomb(way: &str, ends: &str) {
    prints(way, &[ends, "true true"]);
}

#[test]
fn a_heap_ends_at_the_limit() {
    bomb("heap", "{budget,memory}");
}
#[test]
fn binaries_end_at_the_limit() {
    bomb("binaries", "{budget,memory}");
}
#[test]
fn a_mailbox_ends_at_the_limit() {
    bomb("messages", "{budget,memory}");
}
#[test]
fn a_table_ends_at_the_limit() {
    bomb("table", "{budget,memory}");
}
/// Blocks outside of heaps count wherever they are.
#[test]
fn binaries_and_terms_in_other_places_end_at_the_limit() {
    for way in [
        "binary_messages",
        "region_messages",
        "binary_table",
        "timers",
        "counters",
        "outside",
    ] {
        bomb(way, "{budget,memory}");
    }
}
#[test]
fn a_single_large_binary_is_refused() {
    bomb("large", "[{error,system_limit}]");
}
/// A binary that is appended to gets a block that the limit has room for, or none.
#[test]
fn appended_binaries_are_refused() {
    for way in ["appends", "copied_appends", "old_appends"] {
        bomb(way, "system_limit");
    }
}
/// Tables are weighed whatever writes to them.
#[test]
fn a_table_that_is_updated_ends_at_the_limit() {
    bomb("update_table", "{budget,memory}");
    bomb("counter_table", "{budget,memory}");
    bomb("replaced", "{budget,memory}");
    bomb("insert_lists", "system_limit");
    bomb("many_inserts", "system_limit");
}
/// Terms that the next collection copies count twice, whether code makes them or a native.
#[test]
fn what_is_copied_has_room() {
    for way in [
        "sequences",
        "mapping",
        "map_update",
        "sorts",
        "flattening",
        "lookups",
    ] {
        bomb(way, "{budget,memory}");
    }
    for way in ["merges", "from_list", "tuples", "decoded"] {
        bomb(way, "{error,system_limit}");
    }
}
/// Signals in transit count, and so do answers of other processes on their way.
#[test]
fn what_is_on_its_way_counts() {
    bomb("requests", "{budget,memory}");
    bomb("peeking", "[{error,system_limit}]");
}
#[test]
fn no_process_is_made_beyond_the_limit() {
    bomb("processes", "full");
}

const SHOP: &str = r#"
-module(shop).
-export([start/2, stop/1, init/1, work/0]).
start(_, _) -> supervisor:start_link(shop, []).
stop(_) -> ok.
init(_) -> {ok, {#{}, [#{id => work, start => {shop, work, []}}]}}.
work() -> {ok, proc_lib:spawn_link(fun() ->
    L = [catch spawn(fun() -> timer:sleep(infinity) end) || _ <- lists:seq(1, 10)],
    io:format("~p~n", [length([P || P <- L, is_pid(P)])]),
    timer:sleep(infinity) end)}.
"#;

/// The masters of an application, its supervisor and worker are four processes of its budget.
#[test]
fn an_application_has_a_budget_by_a_flag() {
    let Some(s) = Scratch::new() else { return };
    s.write("shop.erl", SHOP);
    s.write(
        "shop.app",
        "{application, shop, [{mod, {shop, []}}, {applications, [kernel, stdlib]}, \
         {modules, [shop]}, {registered, []}, {vsn, \"1\"}]}.",
    );
    assert!(s.purlin(&["erlc", "shop.erl"]).status.success());
    let eval = "ok = application:start(shop), timer:sleep(300), \
                [io:format(\"~p~n\", [maps:with([name, parent], purlin:budget_info(B))]) \
                 || B <- purlin:budgets()], halt().";
    let flags = ["+Fbudget", "app:shop,processes=6,memory=64m"];
    let out = s.purlin(&[&["erl", "-noshell"], &flags[..], &["-eval", eval]].concat());
    let text = String::from_utf8_lossy(&out.stdout);
    assert_eq!(text, "2\n#{name => shop,parent => undefined}\n", "{out:?}");
    let out = s.purlin(&["erl", "-noshell", "+Fbudget", "app:shop,size=6"]);
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(text.contains("bad budget app:shop,size=6"), "{out:?}");
}

/// Processes that a registered process starts belong to its budget; it does not itself.
#[test]
fn what_a_registered_process_starts_has_a_budget_by_a_flag() {
    let Some(s) = Scratch::new() else { return };
    let eval = "register(pool, self()), \
                S = fun() -> catch spawn(fun() -> timer:sleep(infinity) end) end, \
                L = [S() || _ <- lists:seq(1, 5)], [B] = purlin:budgets(), \
                #{use := #{processes := N}} = purlin:budget_info(B), \
                io:format(\"~p ~p~n\", [length([P || P <- L, is_pid(P)]), N]), halt().";
    let flags = ["+Fbudget", "name:pool,processes=3"];
    let out = s.purlin(&[&["erl", "-noshell"], &flags[..], &["-eval", eval]].concat());
    let text = String::from_utf8_lossy(&out.stdout);
    assert_eq!(text, "3 3\n", "{out:?}");
}

#[test]
fn what_objects_of_tables_have_in_common_is_billed_once() {
    prints("billed_once", &["true true", "true true"]);
}

#[test]
fn a_dictionary_does_not_grow_beyond_the_limit() {
    prints("dictionary", &["{true,true}"]);
}
