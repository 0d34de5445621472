%% Stands in for the hook of that name that nearly every suite of OTP's asks for. OTP's own
%% configures and compiles the C code of suites, which this comparison leaves alone, and takes
%% longer over it than most suites.
-module(ts_install_cth).
-export([id/1, init/2]).

id(_) -> ?MODULE.
init(_, Options) -> {ok, Options}.
