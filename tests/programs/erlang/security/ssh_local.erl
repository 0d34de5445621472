%% Runs SSH in one runtime: a daemon with keys and passwords, commands, a file subsystem, and
%% rejected requests. @seconds 120
-module(ssh_local).
-export([main/0]).

main() ->
    {ok, _} = application:ensure_all_started(ssh),
    logger:set_primary_config(level, none),
    {ok, Dir} = file:get_cwd(),
    Host = filename:join(Dir, "host"),
    User = filename:join(Dir, "user"),
    Files = filename:join(Dir, "files"),
    [ok = file:make_dir(D) || D <- [Host, User, Files]],
    key(Host, "ssh_host_ecdsa_key", {namedCurve, secp256r1}, 'ECPrivateKey'),
    key(User, "id_ecdsa", {namedCurve, secp384r1}, 'ECPrivateKey'),
    Public = public(User, "id_ecdsa"),
    ok = file:write_file(filename:join(User, "authorized_keys"), ssh_file:encode([{Public, [{comment, "x"}]}], auth_keys)),
    {ok, Daemon} = ssh:daemon(loopback, 0, [{system_dir, Host}, {user_dir, User}, {user_passwords, [{"joe", "secret"}]},
        {exec, {direct, fun(Command) -> {ok, lists:reverse(Command)} end}},
        {subsystems, [ssh_sftpd:subsystem_spec([{root, Files}])]}]),
    {ok, Info} = ssh:daemon_info(Daemon),
    Port = proplists:get_value(port, Info),
    Base = [{silently_accept_hosts, true}, {user_interaction, false}, {save_accepted_host, false}, {user_dir, User}],
    Connect = fun(Opts) -> ssh:connect("localhost", Port, Opts ++ Base, 100000) end,
    Password = [{user, "joe"}, {password, "secret"}, {auth_methods, "password"}],
    %% By password, over each way of agreeing on a key.
    [begin
        {ok, C} = Connect([{preferred_algorithms, [{kex, [Kex]}]} | Password]),
        io:format("~p ~p~n", [Kex, command(C, "abc")]),
        ssh:close(C)
     end || Kex <- ['curve25519-sha256', 'ecdh-sha2-nistp256', 'ecdh-sha2-nistp521', 'diffie-hellman-group14-sha256',
                    'diffie-hellman-group-exchange-sha256']],
    [begin
        {ok, C} = Connect([{preferred_algorithms, [{cipher, [Cipher]}]} | Password]),
        io:format("~p ~p~n", [Cipher, command(C, lists:duplicate(1000, $x) ++ "y")]),
        ssh:close(C)
     end || Cipher <- ['aes128-ctr', 'aes256-gcm@openssh.com', 'chacha20-poly1305@openssh.com', 'aes128-cbc']],
    %% By key.
    {ok, K} = Connect([{user, "whoever"}, {auth_methods, "publickey"}]),
    io:format("key ~p~n", [command(K, "123")]),
    {error, Refused} = Connect([{user, "joe"}, {password, "wrong"}, {auth_methods, "password"}]),
    io:format("~s~n", [Refused]),
    {error, Kexless} = Connect([{preferred_algorithms, [{kex, ['diffie-hellman-group1-sha1']}]},
        {modify_algorithms, [{append, [{kex, ['diffie-hellman-group1-sha1']}]}]} | Password]),
    io:format("~s~n", [Kexless]),
    files(K),
    ssh:close(K),
    ok = ssh:stop_daemon(Daemon),
    io:format("~p~n", [element(1, Connect(Password))]).

key(Dir, Name, Params, Type) ->
    Key = public_key:generate_key(Params),
    Pem = public_key:pem_encode([public_key:pem_entry_encode(Type, Key)]),
    ok = file:write_file(filename:join(Dir, Name), Pem),
    ok = file:change_mode(filename:join(Dir, Name), 8#600).

public(Dir, Name) ->
    {ok, Pem} = file:read_file(filename:join(Dir, Name)),
    [Entry] = public_key:pem_decode(Pem),
    Key = public_key:pem_entry_decode(Entry),
    {{'ECPoint', element(5, Key)}, element(4, Key)}.

command(C, Text) ->
    {ok, Ch} = ssh_connection:session_channel(C, 60000),
    success = ssh_connection:exec(C, Ch, Text, 60000),
    result(C, Ch, <<>>, none).

result(C, Ch, Data, Status) ->
    receive
        {ssh_cm, C, {data, Ch, _, D}} -> result(C, Ch, <<Data/binary, D/binary>>, Status);
        {ssh_cm, C, {eof, Ch}} -> result(C, Ch, Data, Status);
        {ssh_cm, C, {exit_status, Ch, S}} -> result(C, Ch, Data, S);
        {ssh_cm, C, {closed, Ch}} -> {erlang:md5(Data), byte_size(Data), Status}
    after 60000 -> timeout
    end.

files(C) ->
    {ok, S} = ssh_sftp:start_channel(C),
    Data = binary:copy(<<"0123456789abcdef">>, 20000),
    io:format("~p~n", [[
        ssh_sftp:write_file(S, "/a", Data),
        ssh_sftp:read_file(S, "/a") =:= {ok, Data},
        ssh_sftp:make_dir(S, "/d"),
        ssh_sftp:rename(S, "/a", "/d/b"),
        element(2, ssh_sftp:list_dir(S, "/d")),
        ssh_sftp:read_file(S, "/none"),
        ssh_sftp:delete(S, "/d/b"),
        ssh_sftp:del_dir(S, "/d")]]),
    ssh_sftp:stop_channel(S).
