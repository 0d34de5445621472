//! The preset atoms: those that Rust code names. One row each: constant and text.
//!
//! The order of the rows gives the index, so the generated `am` module holds constants. The first
//! two must stay first, because their words are compared with often. The others are sorted by
//! constant. No text occurs twice, and each row is used: an atom that only one file names is a lazy
//! atom of that file.

/// Calls `$m!` with every row `(CONST, "text")`.
#[macro_export]
macro_rules! for_each_preset_atom {
    ($m:ident) => {
        $m! {
            (FALSE, "false") (TRUE, "true")
            (ACTIVE, "active") (ALIAS, "alias") (ALL, "all") (APPLY, "apply") (ASYNC, "async")
            (ATTRIBUTES, "attributes") (BADARG, "badarg") (BADARITH, "badarith") (BADARITY, "badarity")
            (BADFILE, "badfile") (BADFUN, "badfun") (BADKEY, "badkey") (BADMAP, "badmap") (BADMATCH, "badmatch")
            (BADOPT, "badopt") (BADRECORD, "badrecord") (BAG, "bag") (BIG, "big") (BINARY, "binary") (BLOCK, "block")
            (BOOLEAN, "boolean") (BREAKPOINT, "breakpoint") (CASE_CLAUSE, "case_clause") (CAUSE, "cause")
            (CODE, "code") (COMPILE, "compile") (COMPLETE, "complete") (COMPRESSED, "compressed")
            (CONNECTED, "connected") (CONST, "const") (COUNT, "count") (DATA, "data") (DEFAULT, "default")
            (DEMONITOR, "demonitor") (DOWN, "DOWN") (DUPLICATE_BAG, "duplicate_bag") (END_OF_TABLE, "$end_of_table")
            (ENOTSUP, "enotsup") (EOF, "eof") (ERLANG, "erlang") (ERROR, "error") (ERROR_HANDLER, "error_handler")
            (ERROR_INFO, "error_info") (ERROR_LOGGER, "error_logger") (EXIT, "exit") (EXIT_UC, "EXIT")
            (EXPLICIT_UNALIAS, "explicit_unalias") (EXPORTS, "exports") (EXTERNAL, "external") (FILE, "file")
            (FLUSH, "flush") (FULLSWEEP_AFTER, "fullsweep_after") (FUNCTION, "function") (FUNCTIONS, "functions")
            (FUNCTION_CLAUSE, "function_clause") (HIGH, "high") (IF_CLAUSE, "if_clause") (IGNORE, "ignore")
            (INFINITY, "infinity") (INFO, "info") (INTEGER, "integer") (INTERNAL_ERROR, "internal_error")
            (KILL, "kill") (KILLED, "killed") (LATIN1, "latin1") (LINE, "line") (LINK, "link") (LIST, "list")
            (LITTLE, "little") (LOCAL, "local") (LOW, "low") (MAX, "max") (MAX_HEAP_SIZE, "max_heap_size")
            (MD5, "md5") (MEMORY, "memory") (MESSAGE_QUEUE_DATA, "message_queue_data") (META, "meta") (MINUS, "-")
            (MIN_BIN_VHEAP_SIZE, "min_bin_vheap_size") (MIN_HEAP_SIZE, "min_heap_size") (MODULE, "module")
            (MONITOR, "monitor") (MULT, "*") (NATIVE, "native") (NIFS, "nifs") (NOCATCH, "nocatch")
            (NOCONNECTION, "noconnection") (NODE, "node") (NONE, "none") (NONODE_AT_NOHOST, "nonode@nohost")
            (NOPROC, "noproc") (NORMAL, "normal") (NOSUSPEND, "nosuspend") (NOTSUP, "notsup")
            (NOT_LOADED, "not_loaded") (OFF_HEAP, "off_heap") (OK, "ok") (ON_HEAP, "on_heap") (ON_LOAD, "on_load")
            (ORDERED_SET, "ordered_set") (PID, "pid") (PLUS, "+") (PORT, "port") (PORT_COUNT, "port_count")
            (PRIORITY, "priority") (PRIVATE, "private") (PROCESS, "process") (PROTECTED, "protected")
            (PUBLIC, "public") (READ, "read") (REGISTERED_NAME, "registered_name") (SAFE, "safe") (SEND, "send")
            (SET, "set") (SIZE, "size") (SPAWN, "spawn") (SPAWN_REPLY, "spawn_reply") (SYSTEM_LIMIT, "system_limit")
            (TABLE, "table") (TAG, "tag") (THROW, "throw") (TIMEOUT, "timeout") (TIMEOUT_VALUE, "timeout_value")
            (TIME_OFFSET, "time_offset") (TRACE, "trace") (TRAP_EXIT, "trap_exit")
            (TRY_CLAUSE, "try_clause") (TYPE, "type") (UNDEF, "undef") (UNDEFINED, "undefined")
            (UNDEFINED_FUNCTION, "undefined_function") (UNDEFINED_LAMBDA, "undefined_lambda") (UNDERSCORE, "_")
            (UNICODE, "unicode") (USED, "used") (UTF8, "utf8") (VALUE, "value") (WARNING, "warning") (WRITE, "write")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_no_text_is_there_twice() {
        macro_rules! constants {
            ($(($c:ident, $t:literal))*) => {
                &[$(stringify!($c)),*]
            };
        }
        let constants: &[&str] = for_each_preset_atom!(constants);
        assert_eq!(constants[..2], ["FALSE", "TRUE"]);
        assert!(constants[2..].is_sorted());
        let mut texts = PRESET.to_vec();
        texts.sort_unstable();
        assert!(texts.is_sorted_by(|a, b| a < b));
    }
}
