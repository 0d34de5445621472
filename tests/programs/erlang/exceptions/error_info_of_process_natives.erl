%% Checks the causes that `error_info` gives when natives of processes and tracing fail, and the
%% replies to asynchronous requests. @stress
-module(error_info_of_process_natives).
-export([main/0]).
main() ->
  P = list_to_pid("<0.30000.0>"), Pt=list_to_port("#Port<0.30000>"),
  L = [{trace_info,[on_load,strange]},{trace_info,[new,strange]},{trace_info,[self(),strange]},{trace_info,[P,strange]},{trace_info,[P,flags]},{trace_info,[{a,b,1},strange]},{trace_info,[{lists,map,2},strange]},{trace_info,[{lists,map,-2},flags]},{trace_info,[strange,flags]},{trace_info,["x",flags]},{trace_info,[send,flags]},{trace_info,[new_ports,strange]},{trace_info,[Pt,flags]},{trace_info,[{1,b,1},flags]},{trace_info,[{a,b},flags]},
   {trace,[P,true,[call]]},{trace,[P,strange,[call]]},{trace,["x",true,[call]]},{trace,[self(),true,[strange]]},{trace,[strange,true,[call]]},
   {suspend_process,[P]},{suspend_process,[self()]},{suspend_process,[P,[strange]]},{suspend_process,[a,[strange]]},{suspend_process,[P,[]]},
   {process_flag,[P,save_calls,-1]},{process_flag,[P,save_calls,1]},{process_flag,[self(),save_calls,-1]},{process_flag,[self(),strange,1]},{process_flag,[a,strange,1]},{process_flag,[save_calls,-1]},{process_flag,[save_calls,a]},{process_flag,[strange,a]},{process_flag,[trap_exit,a]},{process_flag,[self(),trap_exit,a]},{process_flag,[whereis(init),strange,a]},{process_flag,[whereis(init),save_calls,a]},
   {monitor,[strange,P]},{monitor,[process,1]},{monitor,[process,P,[strange]]},{monitor,[strange,P,[strange]]},{monitor,[time_offset,x]},{monitor,[process,P,[a|b]]},
   {register,[a,P]},{register,[1,P]},{register,[a,x]},{register,[undefined,P]},{register,[init,self()]},{register,[a,Pt]},{register,[a,whereis(init)]},{register,[kernel_sup,Pt]},
   {send,[a,b,[x]]},{send,["a",b,[]]},{send,["a",b]},{send,[nosuch,b]},{send_nosuspend,[a,b,[x]]},{send_nosuspend,["a",b]},{send_nosuspend,[nosuch,b]},
   {process_display,[1,x]},{process_display,[P,x]},{process_display,[P,backtrace]},
   {spawn_request,[lists,sort,[[]],[strange]]},{spawn_request,[lists,sort,[[]],[strange|x]]},{spawn_request,[lists,sort,[[]],[{reply_tag,x},strange]]},{spawn_request,[lists,sort,[[]],[strange,{reply_tag,x}]]},{spawn_request,[lists,sort,[[]],[strange,{reply,no}]]},{spawn_request,[lists,sort,[[]],[{reply,no},strange]]},{spawn_request,[lists,sort,[[]],x]},{spawn_request,[lists,sort,[[]|x],[strange]]},{spawn_request,[lists,sort,[[]],[{reply,success_only},strange]]},
   {spawn_request,[lists,sort,[[]],[{reply,strange}]]},{spawn_request,[lists,sort,[[]],[{min_heap_size,a},{reply,no}]]},{spawn_request,[lists,sort,[[]],[{monitor,[a]}]]},{spawn_request,[lists,sort,[[]],[{monitor,[a]}|x]]},{spawn_request,[lists,sort,[[]],[{min_heap_size,a}|x]]},
   {term_to_iovec,[[],[compressed]]},{term_to_iovec,[[],[{minor_version,1}]]},{term_to_iovec,[[],[{compressed,9}]]},{term_to_iovec,[[],[{compressed,0}]]},{term_to_iovec,[[],[local]]},
   {function_exported,[lists,map,-1]},{function_exported,[lists,map,1 bsl 70]},{function_exported,[lists,map,1 bsl 40]},{function_exported,[lists,map,(1 bsl 32)+2]},{is_builtin,[lists,map,-1]},{is_builtin,[erlang,abs,(1 bsl 32)+1]},{is_builtin,[erlang,abs,1.0]},
   {group_leader,[a,b]},{group_leader,[P,P]},
   {external_size,[fun() -> ok end]},{process_info,[1,a]},{process_info,[P,a]},{process_info,[P,[a|b]]}
   ],
  [begin flush(), io:format("~0p ~s~n",[{F, pl(A)}, try {R,_}={pl(apply(erlang,F,A)),1}, io_lib:format("~0p ~0p",[R,flush()]) catch error:E:Stk -> {M,F1,A1,I} = hd(Stk), io_lib:format("~0p ~0p",[E,{M,F1,length(A1),I}]) end]) end || {F,A} <- L].
pl(X) when is_pid(X) -> pid; pl(X) when is_reference(X) -> ref;  pl(X) when is_port(X) -> port; pl([H|T]) -> [pl(H)|pl(T)]; pl(T) when is_tuple(T) -> list_to_tuple(pl(tuple_to_list(T))); pl(X) -> X.
flush() -> receive X -> [pl(X)|flush()] after 0 -> [] end.
