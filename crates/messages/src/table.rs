//! The codes, their causes and their cures.

use crate::{Code, Message};

macro_rules! messages {
    ($($number:literal $name:ident $meaning:literal: $cause:literal, $cure:literal;)*) => {
        $(#[doc = $meaning] pub const $name: Code = Code($number);)*

        /// All messages, by their numbers.
        pub const TABLE: &[Message] = &[$(Message {
            code: $name,
            name: stringify!($name),
            meaning: $meaning,
            cause: $cause,
            cure: $cure,
        },)*];
    };
}

messages! {
    1 NO_COMMAND "no command":
        "`purlin` was called without a command.",
        "`purlin --help` lists the commands.";
    2 NO_SUCH_COMMAND "no such command, or no such option before it":
        "The first word is not a command of Purlin.",
        "Correct it as the message proposes. `purlin --help` lists the commands. A command of your \
         own is run by `purlin exec -- COMMAND`.";
    3 NO_SUCH_OPTION "the command has no such option":
        "A word that begins with `-` is not an option of this command.",
        "`purlin help COMMAND` lists its options. A file of that name is written `./-name`.";
    4 NO_VALUE "an option needs a value":
        "The command line ends after an option that takes a value.",
        "Write the value after the option. `purlin help COMMAND` says what it is.";
    5 BAD_VALUE "the value of an option is out of its range":
        "An option or argument takes a number, a time or one of some words, and got something else.",
        "Use a value that the message names.";
    6 MISSING_ARGUMENT "an argument is missing":
        "The command needs a file, a command, a folder or a process.",
        "Add it. The message has the form of the whole command.";
    7 SURPLUS_ARGUMENT "there is an argument too many":
        "The command takes fewer arguments, or they belong after `--`.",
        "Remove it, or call the command once for each.";
    8 DO_NOT_FIT "these options, files or arguments do not go together":
        "Each of them is right by itself. What they ask for together does not exist.",
        "Leave one of them out, as the message says. `purlin help COMMAND` says what each is for.";
    9 NO_SUCH_TOPIC "no such topic":
        "`help` or `explain` was asked about something that it does not know.",
        "`purlin help` and `purlin help explain` list the topics.";
    10 UNKNOWN_KIND "the kind of the file is not known":
        "Neither the ending of its name nor its first line says what kind of program the file is.",
        "Give it an ending that the message names, or begin an escript with `#!`.";

    20 CANNOT_READ "a file cannot be read":
        "It does not exist, belongs to another user, or the system reports an error.",
        "Correct the name or the permissions. The words after the last colon are the system's.";
    21 CANNOT_WRITE "a file cannot be written":
        "Its folder does not exist or cannot be written, or the file system is full.",
        "Name another file, or make the folder.";
    22 CANNOT_PRINT "standard output cannot be written":
        "It is closed, or is a file on a full file system.",
        "Direct the output elsewhere.";
    23 NO_OWN_EXECUTABLE "Purlin cannot find its own executable":
        "`/proc` is not mounted, or the executable was removed while it ran.",
        "Mount `/proc`, and call Purlin again.";
    24 CANNOT_MAKE "a file or folder that is needed cannot be made":
        "The place is full or cannot be written, or `erts DIR` finds a folder that it would have to \
         overwrite.",
        "Free or name another place: `TMPDIR` for what is temporary, `XDG_CACHE_HOME` for links.";
    25 CANNOT_RUN "a program cannot be run":
        "The system refuses to execute it: it is no program, is for another processor, or its \
         interpreter is missing.",
        "Try the program by itself. The words after the last colon are the system's.";
    26 COMMAND_NOT_FOUND "there is no such command":
        "No folder of `PATH` has a program of that name.",
        "Correct the name, or install the command.";
    27 LOST_COMMAND "the end of a command cannot be waited for":
        "The system no longer knows the process, for example since its parent ignores SIGCHLD.",
        "Call the command again, from a shell.";
    28 NO_FOLDER_FOR_LINKS "there is no place for the links called erl, erlc and escript":
        "Neither `HOME` nor a folder for temporary files is there.",
        "Set `HOME` or `TMPDIR`.";
    29 LOW_STACK "the limit of the stack is too low":
        "The limit of the stack is below 64 kilobytes.",
        "Raise it: `ulimit -s 8192`.";
    30 WRONG_FILE "the file is not what the command reads":
        "The file is empty, damaged, too large, a folder, or of another kind or version.",
        "Name a file that Purlin has written for this command, or make it again with this version.";

    40 NO_OTP "no Erlang/OTP found":
        "There is no `erl` on `PATH`, and none in the usual folders.",
        "Install Erlang/OTP 25 or later, or name the folder of an installation by `--otp-root` or \
         `PURLIN_OTP_ROOT`.";
    41 BAD_OTP_ROOT "the named folder is not an Erlang/OTP installation":
        "`--otp-root`, `PURLIN_OTP_ROOT` or `--against` names a folder without `releases` and `lib`.",
        "Name the folder that `code:root_dir()` returns.";
    42 SEARCH_IN_SEARCH "Purlin was called by its own search for Erlang/OTP":
        "The `erl` on `PATH` is a script that calls Purlin again.",
        "Put stock's `erl` on `PATH`, or name its folder by `--otp-root`.";
    43 NO_ELIXIR "no Elixir found":
        "There is no `elixir` on `PATH`.",
        "Install Elixir 1.14 or later.";
    44 NO_STOCK "there is no stock emulator to compare with":
        "The installation has no `bin/erl`, or that is Purlin.",
        "Name another installation: `purlin bench --against DIR`.";

    50 OTHER_EMULATOR "the command has started another emulator":
        "A process below the command runs the installation's `beam.smp`: the command names it \
         itself, or the user may not read Purlin's executable.",
        "Make the command call `erl` by its name. `PURLIN_EXEC` says whether that is a warning or \
         an error.";
    51 OWN_EMULATOR "the release runs on an emulator of its own":
        "The release was made with `include_erts: true`, and calls its own `beam.smp`.",
        "Make it with `include_erts: false`, or with the folder that `purlin erts DIR` makes. See \
         `docs/releases.md`.";
    52 ASSEMBLED_EMULATOR "a release was made that contains stock's emulator":
        "The command has made a release with `include_erts: true`, which copies stock's emulator.",
        "Set `include_erts` to the folder that `purlin erts DIR` makes. See `docs/releases.md`.";

    60 NO_PROCESS "there is no such process":
        "No process of the system has that number.",
        "`purlin help processes` lists the emulators that can be asked.";
    61 NO_PURLIN "the process is not a Purlin that answers":
        "The process is another program, was started with `+Fexplain false`, or has another folder \
         for its socket (`XDG_RUNTIME_DIR`).",
        "`purlin help processes` lists the emulators that can be asked.";
    62 OTHER_USER "the process has ended, or belongs to another user":
        "An emulator answers its own user only.",
        "Ask as the user of the emulator.";
    63 NO_ANSWER "the process does not answer":
        "The emulator is stopped, or has no processor time.",
        "Continue it (SIGCONT), or ask again when the machine has less to do.";
    64 CANNOT_ASK "the process cannot be asked":
        "The system refuses the connection to its socket.",
        "The words after the last colon are the system's.";
    65 BROKEN_ANSWER "the answer cannot be read":
        "The process or the file has an answer of another version of Purlin, or a damaged one.",
        "Use the `purlin` of the version that the emulator runs.";
    66 NODE_REFUSES "the emulator refuses the question":
        "The emulator cannot answer it now: for example a snapshot is being taken already.",
        "The message has the emulator's reason.";
    67 NONE_RUNNING "no Purlin of this user is running that answers":
        "No emulator of this user runs, or each has `+Fexplain false`.",
        "Start one: `purlin erl`.";
    68 SEVERAL_RUNNING "several emulators are running":
        "`purlin observe` without a process number takes the only one.",
        "Name one of those that the message lists.";
    69 NOTHING_LEFT "the program left nothing to explain":
        "It did not run on Purlin, was killed, or ended with `erlang:halt(0, [{flush, false}])`.",
        "`purlin explain exec -- COMMAND` wants a command that calls `erl` by its name.";
    70 CHECK_HOLDS "a condition of --fail-if holds":
        "The program spends more than you allow.",
        "The message has the measure and its value. `purlin explain` says where it comes from.";
    71 BAD_CHECK "a condition of --fail-if cannot be read":
        "It names no measure, or the answer has no such measure.",
        "Write `MEASURE > NUMBER`, with `%`, `kB`, `MB` or `GB` after it. See `docs/explain.md`.";
    72 CANNOT_LISTEN "the page cannot be served":
        "Another program listens on that port, or this user may not.",
        "Leave `--port` out, and a free port is taken.";
    73 NOT_TAKEN "the collector does not take what is sent":
        "The collector refuses the data, or does not answer.",
        "Look at its address and its log. Purlin goes on sending.";

    80 COMMAND_FAILED "a measured command failed":
        "It ended with a status other than 0, or by a signal.",
        "Try it with `--show`. `--any-status` measures commands that end so.";
    81 ENDED_EARLY "the measurement was ended by a signal":
        "Ctrl-C or another signal ended it. What is printed is from the runs until then.",
        "Take fewer `--runs` for a result in less time.";

    90 NO_PROJECT "the folder is not a project":
        "It has no `mix.exs`, no `rebar.config` and no `releases/start_erl.data`.",
        "Name the folder of a project or a release.";
    91 NO_RELEASE "rebar3 made no release":
        "`rebar.config` has no `relx` section, or it makes the release elsewhere.",
        "Try `purlin exec -- rebar3 release`.";
    92 NO_ESCRIPT "mix made no escript":
        "`mix.exs` has `escript:`, but `mix escript.build` has made no file in the project's folder.",
        "Try `purlin mix escript.build`, and remove `path:` from its options.";
    93 NOT_LAID_OUT "the files of the program could not be gathered":
        "The program does not compile, or an application that it needs is missing.",
        "The lines above say which. `--apps` adds applications.";
    94 TOO_DEEP "a folder is nested too deeply":
        "Links to folders make a circle.",
        "Remove the link.";
    95 NAME_NOT_UTF8 "the name of a file is not UTF-8":
        "The table of an executable has names in UTF-8 only.",
        "Rename the file.";
    96 NO_RESOLVER "the program that resolves host names cannot be put into the executable":
        "In this installation `inet_gethost` is a script, which cannot be started from memory.",
        "Put an Erlang/OTP with the program itself on `PATH`.";
    97 RELEASE_DOES_NOT_FIT "the release cannot be put into an executable":
        "It is incomplete, or was made with another version of OTP.",
        "Make it again with the OTP that `purlin version` names, or name its OTP by `--otp-root`.";
    98 TOOL_FAILED "mix, rebar3 or the compiler failed":
        "The project does not build.",
        "The lines above are the tool's. Try it by itself, as `purlin mix release`.";
    99 LIBRARY_NEEDS_LIBRARY "a native library will not load":
        "It is linked with another library of the program, which the system looks for in folders, \
         not in the executable.",
        "Link the other library statically, or install it beside the executable.";
    100 LIBRARY_NEEDS_FILES "a native library may miss its files":
        "Files beside it will be inside the executable. C code that opens them by name cannot find \
         them.",
        "If the library opens them from C, install them beside the executable. If Erlang code does, \
         all is well.";
    101 DAMAGED_EXECUTABLE "the executable is damaged":
        "The file was cut off or changed after `purlin build` had made it.",
        "Copy or make it again.";

    110 NOT_BEAM "not a BEAM file":
        "The file does not begin as `.beam` files do, or its chunks do not add up.",
        "Name a file that `erlc` or `elixirc` has made, and make it again if it was cut off.";
    111 MISSING_CHUNK "a chunk is missing":
        "The `.beam` file has no code, atoms or another chunk that each module has.",
        "Compile the module again. A tool that strips files may have removed too much.";
    112 DAMAGED_CHUNK "a chunk is damaged":
        "The contents of a chunk are not as its format says.",
        "Compile the module again.";
    113 OTHER_MODULE "the file has another module":
        "The name of the module in the file is not the name that it is loaded by.",
        "Rename the file, or compile the module again.";
    114 TOO_NEW "the module is for a later release":
        "It has instructions of a later Erlang/OTP than those that Purlin knows.",
        "Compile it with an Erlang/OTP that `COMPATIBILITY.md` names.";
    115 TOO_OLD "the module is older than OTP 21":
        "It has an instruction that no compiler since OTP 21 makes.",
        "Compile it again.";
    116 DAMAGED_CODE "the code of the module is damaged":
        "An instruction or operand does not exist, or refers to something that the file does not \
         have.",
        "Compile the module again. If it is undamaged, this is a fault of Purlin: report it with \
         the file.";
    117 UNSAFE_CODE "the code breaks a rule on which running it relies":
        "The flow of control leads somewhere, or leaves registers, as no compiler makes it.",
        "Compile the module again. If a compiler has made it so, this is a fault of Purlin: report \
         it with the file.";
    118 NO_FUNCTION "the module has no such function":
        "`disasm` was asked for a function that the module does not have.",
        "`purlin disasm FILE.beam` shows all functions.";
    119 NO_MACHINE_CODE "there is no machine code for this machine":
        "Purlin makes machine code for x86-64 and aarch64.",
        "Name a processor: `--machine x86-64`.";
    120 DAMAGED_TABLE "a table of the module is damaged":
        "A literal, a record, an atom or the attributes of the module do not decode.",
        "Compile the module again.";

    130 NO_EMULATOR_BEGUN "the command has started no emulator of Purlin":
        "It does not call `erl`, or calls one by its path. Nothing was run in another order.",
        "Name a command that runs the program: `purlin schedules -- mix test`.";
    131 OTHER_BUILD "the replay file was made by another build of Purlin":
        "Another build may choose other steps for the same operations.",
        "If the replay goes another way, use the build that the message names, or search again.";
    132 NO_FRESH_FOLDER "the fresh folder of the runs cannot be made":
        "The folder for temporary files is full or cannot be written, or the current one cannot be \
         copied.",
        "Set `TMPDIR` to another place, or call the command in a smaller folder.";
    133 NOT_ONE_LINE "a name or word is no text of one line":
        "Replay files have names and words as lines of UTF-8.",
        "Rename it.";
    134 NO_TESTS "there are no tests to search":
        "`--each-test` found no test, or none has the text of `--test` in its name.",
        "Call it in the folder of the application, and try the tests without `schedules`.";
    135 NO_REPLAY_FILE "the replay file cannot be read by the emulator":
        "It was changed or removed after `purlin replay` had read it.",
        "Name a file that is not being written.";
    136 FRESH_FOLDER_LOST "the emulator cannot take over the fresh folder":
        "Another process has removed or changed the folder for temporary files.",
        "Set `TMPDIR` to a folder that no other program cleans.";
    140 NOT_DECIDED "the seed does not decide all that the program does":
        "Two runs with one seed differ, and `--strict` calls that a failure.",
        "`docs/schedules.md` lists what no seed decides. `--fresh-dir` helps if it is files.";
    141 RUNS_DIFFER "two runs of the program as it is differ":
        "The program depends on something that the seed does not decide: files that it leaves, \
         other nodes, native libraries.",
        "`--fresh-dir` begins each run with the same files. The search goes on, and may find less.";
    142 TOO_LITTLE_TIME "the program takes longer than --for":
        "One run takes more than the time of the whole search.",
        "Raise `--for`, or search a smaller test.";
    143 DOES_NOT_END "the program does not end":
        "The program as it is, without any change of its order, does not end by itself.",
        "Give it an end (`init:stop()`, `halt()`), or search a test of it.";
    144 FROM_NOT_CALLED "the program does not call the function of --from":
        "The function has another name or arity, or nothing happens after it.",
        "Correct it, or leave `--from` out.";
    145 NO_BASE "the program as it is has ended before its run could be recorded":
        "It ends in another way than by a halt: a signal, or a native library that exits.",
        "Run it by `purlin exec` first, and see what ends it.";
    146 REPLAY_DIFFERS "the replay went another way":
        "The program, its input, or something that no seed decides has changed since.",
        "Search again with the program as it is now.";
    147 SEARCH_REFUSED "the system refuses what a search needs":
        "The system gives no more memory, processes or descriptors.",
        "Lower `--jobs`, or raise the limits (`ulimit -a`).";
    148 RESULT_LOST "the result cannot be written":
        "Standard output or the replay file cannot be written.",
        "Name another file by `--to`.";
    149 REPLAY_FAILS "the replay meets something that was not recorded":
        "The program asks the system for something else than in the recorded run.",
        "Search again with the program as it is now.";
    150 RUN_CANNOT_POLL "a run of a search cannot watch its descriptors":
        "The system gives no more descriptors to the process of the run.",
        "Lower `--jobs`, or raise the limit (`ulimit -n`).";
    151 WORLD_REFUSES "the emulator cannot join the world of its cluster":
        "The search that has started it has ended, or is of another build of Purlin.",
        "Start it by `purlin schedules --nodes`, with one build of Purlin.";
    152 WORLD_LOST "a cluster cannot be run":
        "A node did not begin, or the system refuses what the run of a cluster needs.",
        "Run the command without `--nodes` first, and see what it says.";

    160 BAD_FLAG_VALUE "the value of one of Purlin's own flags is wrong":
        "A flag `+F…` has a value that it does not take.",
        "`purlin help erl` lists the flags and their values.";
    161 NO_SUCH_FLAG "Purlin has no such flag":
        "A flag begins with `+F` and is none of Purlin's own.",
        "`purlin help erl` lists the flags.";
    162 BAD_MEMORY_LIMIT "the value of +Mlimit is wrong":
        "`+Mlimit` takes a size of at least `16m`, with `k`, `m` or `g` behind it, or `off`.",
        "See `docs/containers.md`.";
    163 BAD_JIT_MODE "the value of PURLIN_JIT is wrong":
        "`PURLIN_JIT` takes `off`, `hot`, `always` or `chaos:SEED`.",
        "Correct or unset it.";
    164 INTERPRETED "the system allows no machine code":
        "A security policy forbids memory that can be executed. The program runs, and is \
         interpreted.",
        "Allow it for Purlin, or start with `+Fjit off`, which says nothing.";
    165 NO_JIT_LOG "the log of PURLIN_JIT_LOG cannot be written":
        "Its folder does not exist or cannot be written.",
        "Name another file.";
    166 NO_PERF_MAP "the map for perf cannot be written":
        "`+JPperf` writes to a folder that cannot be written, or that others could change.",
        "Name another folder by `+JPperfdirectory`. See `docs/perf.md`.";
    167 METRICS_NOT_SERVED "the metrics cannot be served":
        "The address of `+Fmetrics` is in use, is wrong, or this user may not listen there.",
        "Name another address or port. See `docs/operating.md`.";
    168 METRICS_ARE_OPEN "other machines can read the metrics":
        "The address of `+Fmetrics` is not that of the loopback device, and needs no password.",
        "Use `127.0.0.1` or a Unix socket, or see that only those who may reach it.";
    169 NOT_ENCRYPTED "measurements are sent without encryption":
        "The collector of `+Fotlp` is on another machine.",
        "Send to a collector on this machine, which encrypts.";
    170 NOTHING_SENT "nothing is sent to the collector":
        "The exporter of `+Fotlp` cannot be started.",
        "The message has the reason. See `docs/operating.md`.";
    171 NO_PERF_DUMP "the dump for perf cannot be written":
        "`+JPperf` writes to a folder that cannot be written, or that others could change.",
        "Name another folder by `+JPperfdirectory`. See `docs/perf.md`.";
    172 NOT_DELIVERED "the collector of +Fotlp does not take what is sent":
        "It does not answer, or refuses the data.",
        "Look at its address and its log. The node goes on trying, and says nothing more until that \
         changes.";
}
