-module(zz).
-export([f/1]).
f(X) -> {zz,X}.
