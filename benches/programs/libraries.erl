%% Native libraries: calls that do nothing, resources made and dropped, binaries passed, terms
%% built, digests, and jiffy on a large document where it is found. Run by bench.erl;
%% `scripts/bench.sh` compiles the library.
-module(libraries).
-compile([export_all, nowarn_export_all]).
-on_load(load/0).

load() -> erlang:load_nif(filename:join(filename:dirname(code:which(?MODULE)), "bench_nif"), []).

names() ->
    [nif_empty, nif_resource, nif_binary, nif_list, hash_small, hash_large]
        ++ [N || N <- [jiffy_decode, jiffy_encode], code:which(jiffy) =/= non_existing].

expected(nif_empty) -> 5000000;
expected(nif_resource) -> 1000000;
expected(nif_binary) -> 510;
expected(nif_list) -> 2000;
expected(hash_small) -> 32;
expected(hash_large) -> 32;
expected(jiffy_decode) -> 20000;
expected(jiffy_encode) -> 20000.

same(_) -> erlang:nif_error(undef).
resource() -> erlang:nif_error(undef).
sum(_) -> erlang:nif_error(undef).
list(_) -> erlang:nif_error(undef).

nif_empty() -> empty(0).
empty(5000000) -> 5000000;
empty(N) -> empty(same(N) + 1).

nif_resource() -> resources(0).
resources(1000000) -> 1000000;
resources(N) -> true = is_reference(resource()), resources(N + 1).

nif_binary() -> binaries(binary:copy(<<255>>, 1000000), 2000000, 0).
binaries(_, 0, S) -> S;
binaries(B, N, _) -> binaries(B, N - 1, sum(B)).

nif_list() -> lists(2000, 0).
lists(0, S) -> S;
lists(N, S) -> [{999, x} | _] = list(x), lists(N - 1, S + 1).

hash_small() -> hashes(<<"a small thing">>, 300000, 0).
hash_large() -> hashes(binary:copy(<<"large">>, 200000), 150, 0).
hashes(_, 0, S) -> S;
hashes(B, N, _) -> hashes(B, N - 1, byte_size(crypto:hash(sha256, B))).

%% 20,000 objects.
document() ->
    [#{<<"id">> => I, <<"name">> => <<"someone, number ", (integer_to_binary(I))/binary>>, <<"score">> => I / 7, <<"active">> => I rem 3 =:= 0,
       <<"tags">> => [<<"one">>, <<"two\n">>, null], <<"place">> => #{<<"lat">> => 52.5 + I, <<"long">> => -13.25}} || I <- lists:seq(1, 20000)].

jiffy_decode() ->
    Text = iolist_to_binary(jiffy:encode(document())),
    lists:last([length(jiffy:decode(Text, [return_maps])) || _ <- lists:seq(1, 10)]).

jiffy_encode() ->
    D = document(),
    Texts = [jiffy:encode(D) || _ <- lists:seq(1, 10)],
    length(jiffy:decode(lists:last(Texts))).
