-module(put_new_race).
-export([main/0]).

%% As alias_race, by persistent_term:put_new/2, which OTP has from 28 on.
main() ->
    Me = self(),
    Pid = spawn(fun() -> Me ! begun, persistent_term:put_new(Me, true) end),
    receive begun -> ok end,
    receive after 10 -> ok end,
    halt(case is_process_alive(Pid) of false -> 0; true -> 1 end).
