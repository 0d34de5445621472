//! The preset atoms: those that Rust code names. One row each: constant and text.
//!
//! Row order gives the index, so the generated `am` module holds constants. Keep the rows sorted by text within
//! their group; the first two must stay first (their words are compared with often).

/// Calls `$m!` with every row `(CONST, "text")`.
#[macro_export]
macro_rules! for_each_preset_atom {
    ($m:ident) => {
        $m! {
            (FALSE, "false") (TRUE, "true")
            (EMPTY, "")
            (ACTIVE, "active") (ALIAS, "alias") (ALL, "all") (AND, "and") (ARGS, "args") (ASYNC, "async") (ATOM, "atom")
            (BADARG, "badarg") (BADARITH, "badarith") (BADARITY, "badarity") (BADFILE, "badfile") (BADFUN, "badfun")
            (BADKEY, "badkey") (BADMAP, "badmap") (BADMATCH, "badmatch") (BADRECORD, "badrecord")
            (BAG, "bag") (BIG, "big") (BINARY, "binary") (BREAKPOINT, "breakpoint") (BIT_SIZE, "bit_size") (BLOCK, "block") (BOOLEAN, "boolean")
            (BYTES, "bytes") (CASE_CLAUSE, "case_clause") (CAUSE, "cause") (CODE, "code") (COLON, ":") (COMPLETE, "complete")
            (COMPRESSED, "compressed") (CONNECTED, "connected") (CONST, "const") (COPY, "copy") (COUNT, "count")
            (CURRENT_FUNCTION, "current_function") (CURRENT_LOCATION, "current_location")
            (CURRENT_STACKTRACE, "current_stacktrace") (DATA, "data") (DEMONITOR, "demonitor")
            (DEFAULT, "default") (DELETED, "deleted") (DICTIONARY, "dictionary") (DOWN, "DOWN") (DUPLICATE_BAG, "duplicate_bag")
            (EMPTY_TUPLE, "{}") (END_OF_TABLE, "$end_of_table") (ENOENT, "enoent") (ENOTSUP, "enotsup") (EOF, "eof")
            (ERL_ERTS_ERRORS, "erl_erts_errors") (ERLANG, "erlang") (ERROR, "error") (ERROR_HANDLER, "error_handler")
            (ERROR_INFO, "error_info") (ERROR_LOGGER, "error_logger") (EXIT, "exit") (EXIT_UC, "EXIT") (EXITING, "exiting")
            (EXPLICIT_UNALIAS, "explicit_unalias") (EXPORTS, "exports") (EXTERNAL, "external") (FILE, "file") (FLOAT, "float")
            (FLUSH, "flush") (FULLSWEEP_AFTER, "fullsweep_after") (FUNCTION, "function") (FUNCTION_CLAUSE, "function_clause")
            (GARBAGE_COLLECTING, "garbage_collecting") (GARBAGE_COLLECTION, "garbage_collection")
            (GROUP_LEADER, "group_leader") (HEAP_SIZE, "heap_size") (HIGH, "high") (IF_CLAUSE, "if_clause") (IGNORE, "ignore")
            (INFINITY, "infinity") (INFO, "info") (INIT, "init") (INITIAL_CALL, "initial_call") (INTEGER, "integer")
            (INTERNAL_ERROR, "internal_error") (KILL, "kill") (KILLED, "killed") (LATIN1, "latin1") (LINE, "line") (LINK, "link")
            (LINKS, "links") (LIST, "list") (LITTLE, "little") (LOCAL, "local") (LOW, "low") (MAP, "map") (MAX, "max")
            (MAX_HEAP_SIZE, "max_heap_size") (MEMORY, "memory") (MESSAGE_QUEUE_DATA, "message_queue_data")
            (MESSAGE_QUEUE_LEN, "message_queue_len") (MESSAGES, "messages") (META, "meta") (MIN_BIN_VHEAP_SIZE, "min_bin_vheap_size")
            (MIN_HEAP_SIZE, "min_heap_size") (MODULE, "module") (MONITOR, "monitor") (MONITORED_BY, "monitored_by")
            (MONITORS, "monitors") (NATIVE, "native") (NEW, "new") (NIL_ATOM, "nil") (NOCATCH, "nocatch") (NOCONNECTION, "noconnection")
            (NONE, "none") (NONODE_AT_NOHOST, "nonode@nohost") (NOPROC, "noproc") (NORMAL, "normal") (NOSUSPEND, "nosuspend")
            (NOT_LOADED, "not_loaded") (NOTSUP, "notsup") (OFF, "off") (OFF_HEAP, "off_heap") (OK, "ok") (OLD, "old") (ON, "on")
            (ON_HEAP, "on_heap") (ON_LOAD, "on_load") (ORDERED_SET, "ordered_set") (PID, "pid") (PORT, "port")
            (PORT_COUNT, "port_count") (PRIORITY, "priority") (PRIVATE, "private") (PROCESS, "process") (PROTECTED, "protected")
            (PUBLIC, "public") (READ, "read") (REASON, "reason") (RECORD, "record") (REDUCTIONS, "reductions") (REFERENCE, "reference")
            (REGISTERED_NAME, "registered_name") (RUNNABLE, "runnable") (RUNNING, "running") (SAFE, "safe") (SET, "set")
            (SIGNED, "signed") (SIZE, "size") (STACK_SIZE, "stack_size") (STATUS, "status") (STRING, "string")
            (SUSPENDED, "suspended") (SUSPENDING, "suspending") (SYSTEM_LIMIT, "system_limit") (TABLE, "table") (TAG, "tag")
            (THROW, "throw") (TIME_OFFSET, "time_offset") (TIMEOUT, "timeout") (TIMEOUT_VALUE, "timeout_value")
            (TOTAL_HEAP_SIZE, "total_heap_size") (TRACE, "trace") (TRAP_EXIT, "trap_exit") (TRY_CLAUSE, "try_clause")
            (TUPLE, "tuple") (TYPE, "type") (UNDEF, "undef") (UNDEFINED, "undefined") (UNDEFINED_FUNCTION, "undefined_function")
            (UNDEFINED_LAMBDA, "undefined_lambda") (UNDERSCORE, "_") (UNICODE, "unicode") (UNLOADED, "unloaded")
            (UNSIGNED, "unsigned") (USED, "used") (USER, "user") (UTF8, "utf8") (UTF16, "utf16") (UTF32, "utf32") (VALUE, "value")
            (WAITING, "waiting") (WARNING, "warning") (WRITE, "write") (BADOPT, "badopt")
            (APPLY, "apply") (SPAWN, "spawn") (SEND, "send") (BANG, "!") (MINUS, "-") (PLUS, "+") (MULT, "*") (DIV_SLASH, "/")
            (DIV, "div") (REM, "rem") (BAND, "band") (BOR, "bor") (BXOR, "bxor") (BSL, "bsl") (BSR, "bsr") (BNOT, "bnot")
            (NOT, "not") (OR, "or") (XOR, "xor") (EQEQ, "==") (NEQ, "/=") (EXACT_EQ, "=:=") (EXACT_NEQ, "=/=") (LT, "<")
            (GT, ">") (LE, "=<") (GE, ">=") (PLUSPLUS, "++") (MINUSMINUS, "--")
            (ELEMENT, "element") (HD, "hd") (TL, "tl") (LENGTH, "length") (SELF, "self") (NODE, "node") (MODULE_INFO, "module_info")
            (ATTRIBUTES, "attributes") (COMPILE, "compile") (MD5, "md5") (NIFS, "nifs") (FUNCTIONS, "functions")
            (START, "start") (BOOT, "boot") (SIGNAL, "signal") (SPAWN_REPLY, "spawn_reply")
        }
    };
}

macro_rules! preset_names {
    ($(($c:ident, $t:literal))*) => {
        /// Texts of the preset atoms; the index in this list is the index in the atom table.
        pub const PRESET: &[&str] = &[$($t),*];
    };
}
for_each_preset_atom!(preset_names);
