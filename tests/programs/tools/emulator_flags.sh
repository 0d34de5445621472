# Checks emulator flags that programs can read back, and rejected ones.
erl +S 1 -noshell -eval 'io:format("~p~n", [erlang:system_info(schedulers_online)]), halt().'
erl +P 2000000 -noshell -eval 'io:format("~p~n", [erlang:system_info(process_limit) >= 2000000]), halt().'
erl +hms 1000 -noshell -eval 'io:format("~p~n", [erlang:system_info(min_heap_size)]), halt().'
erl +A 4 +K true +sbwt none -noshell -eval 'io:format("~p~n", [erlang:system_info(thread_pool_size)]), halt().'
erl +t 100000 -noshell -eval 'io:format("~p~n", [erlang:system_info(atom_limit)]), halt().'
erl +hmqd off_heap -noshell -eval 'io:format("~p ~p~n", [erlang:system_info(message_queue_data), process_info(self(), message_queue_data)]), halt().'
erl +C multi_time_warp -noshell -eval 'io:format("~p~n", [erlang:system_info(time_warp_mode)]), halt().'
erl +pc unicode -noshell -eval 'io:format("~p~n", [io:printable_range()]), halt().'
erl +fnu -noshell -eval 'io:format("~p~n", [file:native_name_encoding()]), halt().'
for f in "+MYtt 256" "+MYtp 7" "+MYtt 1 +MYtt 512"; do
    erl $f -noshell -eval 'io:format("~p~n~p~n", [erlang:system_info({allocator, sys_alloc}), lists:keyfind(sys_alloc, 1, element(4, erlang:system_info(allocator)))]), halt().'
done
erl -noshell +nonsense 2>&1 | head -1
ERL_FLAGS="+S 1" erl -noshell -eval 'io:format("~p~n", [erlang:system_info(schedulers)]), halt().'
ERL_AFLAGS="-kernel k 1" ERL_ZFLAGS="-kernel k2 2" erl -noshell -eval 'io:format("~p ~p~n", [application:get_env(kernel, k), application:get_env(kernel, k2)]), halt().'
printf -- '-kernel fromfile yes\n' >args; erl -args_file args -noshell -eval 'io:format("~p~n", [application:get_env(kernel, fromfile)]), halt().'
printf '[{kernel, [{conf, 1}]}].\n' >c.config; erl -config c -noshell -eval 'io:format("~p~n", [application:get_env(kernel, conf)]), halt().'
erl -version 2>&1
