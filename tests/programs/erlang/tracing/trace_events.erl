%% Checks tracing: events of processes, calls with match specifications, counts, meta traces, and
%% errors.
-module(trace_events).
-export([main/0,f/1,g/1,loop/0]).
f(X) -> Y = g(X), Y+1.
g(0) -> 0;
g(bad) -> error(foo);
g(X) -> {a, X}, g(X-1).
loop() -> receive {call,X} -> trace_events:f(X), loop(); {crash} -> trace_events:f(bad); {spawn,P} -> Q = spawn_link(fun() -> receive stop -> ok end end), P ! Q, loop(); stop -> ok; {gc} -> garbage_collect(), loop(); M -> put(m,M), loop() end.
drain() -> drain([]).
drain(A) -> receive M -> drain([fix(M)|A]) after 100 -> lists:reverse(A) end.
fix(P) when is_pid(P) -> pid; fix(R) when is_reference(R) -> ref; fix(T) when is_tuple(T) -> list_to_tuple(fix(tuple_to_list(T))); fix([{old_heap_block_size,_}|_]) -> gcinfo; fix([H|T]) -> [fix(H)|fix(T)]; fix(F) when is_float(F) -> F; fix(X) -> X.
d(L,T) -> io:format("~p: ~p~n", [L, T]).
c(L,F) -> d(L, try F() catch C:R -> {C,R} end).
main() ->
  P = spawn(fun loop/0),
  c(trace1, fun() -> erlang:trace(P,true,[send,'receive',procs]) end),
  c(info, fun() -> erlang:trace_info(P,flags) end), c(info, fun() -> fix(erlang:trace_info(P,tracer)) end),
  P ! hello, P ! {spawn, self()}, 
  d(m1, drain()),
  c(trace1, fun() -> erlang:trace(P,false,[send,'receive',procs]) end),
  c(info, fun() -> erlang:trace_info(P,flags) end),
  c(pat, fun() -> erlang:trace_pattern({trace_events,'_','_'},true,[local]) end),
  c(trace2, fun() -> erlang:trace(P,true,[call]) end),
  P ! {call, 2}, d(m2, drain()),
  c(patinfo, fun() -> erlang:trace_info({trace_events,g,1},all) end),
  c(patinfo, fun() -> erlang:trace_info({trace_events,g,1},traced) end),
  c(patinfo, fun() -> erlang:trace_info({trace_events,g,1},match_spec) end),
  c(patinfo, fun() -> erlang:trace_info({trace_events,g,1},call_count) end),
  c(patinfo, fun() -> erlang:trace_info({trace_events,h,1},all) end),
  c(patoff, fun() -> erlang:trace_pattern({trace_events,'_','_'},false,[local]) end),
  P ! {call, 2}, d(m3, drain()),
  c(pat, fun() -> erlang:trace_pattern({trace_events,'_','_'},true,[]) end),
  P ! {call, 2}, d(m4, drain()),
  c(patinfo, fun() -> erlang:trace_info({trace_events,f,1},all) end),
  c(pat, fun() -> erlang:trace_pattern({trace_events,f,1},[{[1],[],[{message,one}]},{['$1'],[{'>','$1',1}],[{return_trace},{message,{{big,'$1'}}}]}],[local]) end),
  c(patinfo, fun() -> erlang:trace_info({trace_events,f,1},match_spec) end),
  P ! {call, 1}, P ! {call, 3}, P ! {call, 0}, d(m5, drain()),
  c(trace3, fun() -> erlang:trace(P,true,[call,arity,timestamp]) end),
  P ! {call, 1}, d(m6, [setelement(tuple_size(M), M, ts) || M <- drain()]),
  c(trace3, fun() -> erlang:trace(P,false,[arity,timestamp]) end),
  c(pat, fun() -> erlang:trace_pattern({trace_events,g,1},true,[call_count]) end),
  P ! {call, 5}, d(m7, drain()),
  c(cc, fun() -> erlang:trace_info({trace_events,g,1},call_count) end),
  c(pat, fun() -> erlang:trace_pattern({trace_events,g,1},pause,[call_count]) end),
  P ! {call, 5}, drain(), c(cc, fun() -> erlang:trace_info({trace_events,g,1},call_count) end),
  c(pat, fun() -> erlang:trace_pattern({trace_events,g,1},restart,[call_count]) end),
  P ! {call, 5}, drain(), c(cc, fun() -> erlang:trace_info({trace_events,g,1},call_count) end),
  c(pat, fun() -> erlang:trace_pattern({trace_events,f,1},[{'_',[],[{exception_trace}]}],[local]) end),
  c(gc, fun() -> erlang:trace(P,true,[garbage_collection,procs]) end),
  P ! {gc}, d(m8, lists:usort([case atom_to_list(element(3, M)) of "gc_" ++ _ -> gc; _ -> element(3, M) end || M <- drain()])),
  c(gc, fun() -> erlang:trace(P,false,[garbage_collection]) end),
  P ! {call,1}, d(m9, [M || M <- drain(), element(3, M) =:= call orelse element(3, M) =:= return_from]),
  logger:set_primary_config(level, none),
  P ! {crash}, d(m10, [case M of {trace,pid,exit,{R,_}} -> {exit,R}; {trace,pid,exception_from,X,{error,_}} -> {exc,X}; _ -> M end || M <- drain()]),
  c(dead, fun() -> erlang:trace(P,true,[call]) end),
  c(new, fun() -> erlang:trace(new,true,[procs]) end),
  c(new, fun() -> erlang:trace_info(new,flags) end),
  spawn(fun() -> register(foo, self()), unregister(foo) end),
  d(m11, drain()),
  c(new, fun() -> erlang:trace(new,false,[procs]) end),
  
  c(bad, fun() -> erlang:trace(all,true,[foo]) end), c(bad, fun() -> erlang:trace(foo,true,[call]) end),c(bad, fun() -> erlang:trace(all,'maybe',[call]) end),
  c(bad, fun() -> erlang:trace_pattern({trace_events,f},true,[]) end), c(bad, fun() -> erlang:trace_pattern({trace_events,f,1},foo,[]) end), c(bad, fun() -> erlang:trace_pattern({trace_events,f,1},true,[foo]) end), c(bad, fun() -> erlang:trace_pattern({trace_events,f,1},[{x}],[]) end),
  P2 = spawn(fun loop/0),
  c(sos, fun() -> erlang:trace(P2,true,[set_on_spawn,procs]) end),
  P2 ! {spawn, self()}, Q = receive X when is_pid(X) -> X end, d(m12, drain()), c(sosi, fun() -> erlang:trace_info(Q,flags) end),
  Q ! stop, d(m13, drain()),
  c(meta, fun() -> erlang:trace_pattern({trace_events,f,1},true,[{meta,self()}]) end),
  P2 ! {call,0}, d(m14, [lists:sublist(tuple_to_list(M),4) || M <- drain()]),
  c(meta, fun() -> fix(erlang:trace_info({trace_events,f,1},all)) end),
  c(send, fun() -> erlang:trace_pattern(send,true,[]) end), c(send, fun() -> erlang:trace_info(send,match_spec) end),
  c(run, fun() -> erlang:trace(P2,false,[all]) , erlang:trace(P2,true,[running]) end),
  P2 ! foo, d(m15, drain()),
  c(sched, fun() -> erlang:system_monitor(self(), [{long_schedule,1}]), ok end),
  ok.
