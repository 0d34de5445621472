%% The bit syntax.
-module(binaries).
-export([bytes/2, header/1, sized/2, text/1, float/1, utf/1, tail/1, build/3, append/2, sized_build/2, utf_build/1,
         comprehend/1, string/0, table/1, fixed/1]).

bytes(<<B, T/binary>>, A) -> bytes(T, A + B);
bytes(<<>>, A) -> A.
header(<<V:4, L:4, Size:16/little, Sign:32/signed, Rest/binary>>) -> {V, L, Size, Sign, Rest}.
sized(<<N:8, B:N/binary, R/bitstring>>, _) -> {B, R};
sized(B, N) -> <<_:3, X:N>> = B, X.
text(<<"GET ", P/binary>>) -> P;
text(<<"POST", _/binary>>) -> post.
float(<<F:64/float, D:32/float-little>>) -> F + D.
utf(<<C/utf8, _/utf16, _/binary>>) -> C.
tail(<<_:16, B/binary>>) -> B.
build(X, Y, Z) -> <<X, Y:16/little, Z:32/float, "end">>.
append(B, X) -> <<B/binary, X:7, 1:1>>.
sized_build(N, B) -> <<N:N, B:N/binary, B/bitstring>>.
utf_build(C) -> <<C/utf8, C/utf16, C/utf32>>.
comprehend(B) -> << <<(X + 1)>> || <<X>> <= B >>.
string() -> <<"constant">>.
table(<<$a, T/binary>>) -> table(T);
table(<<$b, T/binary>>) -> [b | table(T)];
table(<<$c, T/binary>>) -> [c | table(T)];
table(<<$d, T/binary>>) -> [d | table(T)];
table(<<_, T/binary>>) -> T;
table(<<>>) -> [].
fixed(<<_:8, A:24, B:8>>) -> A + B.
