%% Traces calls, collections and time slices while processes come and go and trace patterns change.
-module(heavy_tracing).
-export([main/0,w/1,fib/1,rec/1]).
fib(N) when N < 2 -> N; fib(N) -> heavy_tracing:fib(N-1) + fib(N-2).
rec(0) -> []; rec(N) -> [N|rec(N-1)].
w(0) -> ok; w(N) -> lists:sort(rec(200)), fib(10), catch (case N rem 7 of 0 -> error(x); _ -> ok end), spawn(fun() -> lists:map(fun(X) -> X+1 end, rec(20)) end), w(N-1).
main() ->
  T = spawn(fun() -> tr(0) end),
  Ps = [spawn_monitor(fun() -> receive go -> w(200) end end) || _ <- lists:seq(1,4)],
  io:format("~p~n",[erlang:trace(new_processes,true,[call,procs,garbage_collection,running,{tracer,T}])]),
  [erlang:trace(P,true,[call,procs,send,'receive',garbage_collection,set_on_spawn,{tracer,T}]) || {P,_} <- Ps],
  io:format("~p~n",[erlang:trace_pattern({heavy_tracing,'_','_'},[{'_',[],[{exception_trace},{message,{caller}}]}],[local])]),
  io:format("~p~n",[erlang:trace_pattern({lists,'_','_'},[{'_',[],[{return_trace}]}],[local]) > 100]),
  [P ! go || {P,_} <- Ps],
  spawn(fun() -> [begin erlang:trace_pattern({heavy_tracing,fib,1},I rem 2 =:= 0,[local]), erlang:trace_pattern({lists,map,2},true,[call_time,call_count]), timer:sleep(5) end || I <- lists:seq(1,60)] end),
  [receive {'DOWN',R,_,_,Why} -> io:format("~p~n",[Why]) end || {_,R} <- Ps],
  T ! {self(), n}, receive {n,N} -> io:format("~p~n",[N > 10000]) end,
  erlang:trace(all,false,[all]), erlang:trace_pattern({'_','_','_'},false,[local]), erlang:trace_pattern({'_','_','_'},false,[call_time,call_count]),
  w(10), io:format("ok~n").
tr(N) -> receive {P,n} -> P ! {n,N}, tr(N); _ -> tr(N+1) end.
