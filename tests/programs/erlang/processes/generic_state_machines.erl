%% Checks gen_statem with a door: time-outs, postponed events, internal events, state enter calls.
-module(generic_state_machines).
-behaviour(gen_statem).
-export([main/0, init/1, callback_mode/0, locked/3, open/3, terminate/3]).

callback_mode() -> [state_functions, state_enter].
init(Code) -> {ok, locked, #{code => Code, buttons => []}}.
locked(enter, Old, D) -> io:format("enter locked from ~p~n", [Old]), {keep_state, D#{buttons => []}};
locked(cast, {button, B}, #{code := Code, buttons := Bs} = D) ->
    case Bs ++ [B] of
        Code -> {next_state, open, D, [{state_timeout, 50, lock}, {next_event, internal, hurray}]};
        New when length(New) < length(Code) -> {keep_state, D#{buttons => New}};
        _ -> io:format("wrong~n"), {keep_state, D#{buttons => []}}
    end;
locked({call, From}, walk, _) -> {keep_state_and_data, [postpone, {{timeout, From}, 1000, x}]};
locked({call, From}, state, _) -> {keep_state_and_data, [{reply, From, locked}]};
locked({timeout, _}, x, _) -> keep_state_and_data.
open(enter, Old, _) -> io:format("enter open from ~p~n", [Old]), keep_state_and_data;
open(internal, hurray, _) -> io:format("hurray~n"), keep_state_and_data;
open(state_timeout, lock, D) -> {next_state, locked, D};
open({call, From}, walk, _) -> {keep_state_and_data, [{reply, From, through}]};
open({call, From}, state, _) -> {keep_state_and_data, [{reply, From, open}]};
open({timeout, _}, x, _) -> keep_state_and_data;
open(cast, _, _) -> {keep_state_and_data, postpone}.
terminate(R, S, _) -> io:format("terminate ~p in ~p~n", [R, S]).

main() ->
    {ok, P} = gen_statem:start(?MODULE, [1, 2], []),
    io:format("~p~n", [gen_statem:call(P, state)]),
    [gen_statem:cast(P, {button, B}) || B <- [1, 9]],
    Req = gen_statem:send_request(P, walk),
    [gen_statem:cast(P, {button, B}) || B <- [1, 2]],
    io:format("~p~n", [gen_statem:receive_response(Req, 2000)]),
    io:format("~p~n", [gen_statem:call(P, state)]),
    timer:sleep(150),
    io:format("~p~n", [gen_statem:call(P, state)]),
    gen_statem:stop(P).
