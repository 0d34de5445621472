#!/bin/sh
# What developers wait for in whole projects, on both runtimes in turn: time, processor time and
# memory by `purlin measure`, ratios Purlin by stock.
#
#   scripts/bench-projects.sh [mix] [jason] [dialyzer] [xref]      names choose; none: all that can be had here
#
# mix: `mix compile` of a project of a hundred modules that is made here. jason: Jason both ways,
# where JASON names the folder of its sources (it is not fetched). dialyzer: a table of types of the
# library kernel, where OTP has dialyzer. xref: the cross reference of the libraries stdlib and
# kernel.
# RUNS (5): runs of each that are kept. MODULES (100). PURLIN: the executable
# (target/release/purlin).
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
. scripts/executable.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
status=0

wanted() {
  [ -z "$names" ] && return 0
  case " $names " in *" $1 "*) return 0 ;; esac
  return 1
}
names=$*

# both NAME COMMAND: a command in shell, as it is and below `purlin exec`, in the folder of this
# run.
both() {
  name=$1 what=$2
  printf '%s\n' "cd \"$dir\" && $what" >"$dir/$name.sh"
  echo "== $name"
  "$PURLIN" measure --runs "${RUNS:-5}" --name stock --name Purlin --separator + \
    + sh "$dir/$name.sh" + "$PURLIN" exec -- sh "$dir/$name.sh" || status=1
}

if wanted mix && command -v mix >/dev/null; then
  mkdir -p "$dir/hundred/lib"
  cat >"$dir/hundred/mix.exs" <<'EX'
defmodule Hundred.MixProject do
  use Mix.Project
  def project, do: [app: :hundred, version: "0.1.0", deps: []]
  def application, do: []
end
EX
  i=0
  while [ $i -lt "${MODULES:-100}" ]; do
    next=$(((i + 1) % ${MODULES:-100}))
    cat >"$dir/hundred/lib/part$i.ex" <<EX
defmodule Hundred.Part$i do
  @moduledoc "Part $i of a project that is only compiled."
  defstruct id: $i, name: "part $i", tags: [], next: nil
  @type t :: %__MODULE__{id: integer, name: String.t(), tags: [atom], next: t | nil}

  @doc "A new one."
  @spec new(keyword) :: t
  def new(fields \\\\ []), do: struct!(__MODULE__, fields)

  @doc "Renames it, and the one behind it."
  def rename(%__MODULE__{next: nil} = p, name) when is_binary(name), do: %{p | name: String.trim(name)}
  def rename(%__MODULE__{next: n} = p, name), do: %{p | name: name, next: Hundred.Part$next.rename(n, name)}

  for {word, number} <- [one: 1, two: 2, three: 3, four: 4, five: 5] do
    def number(unquote(word)), do: unquote(number) + $i
  end

  def summary(list) do
    with [_ | _] <- list,
         numbers = Enum.map(list, &number/1),
         {low, high} <- Enum.min_max(numbers) do
      numbers |> Enum.filter(&(&1 > low)) |> Enum.group_by(&rem(&1, 3)) |> Map.put(:span, high - low)
    else
      [] -> %{}
    end
  end

  def classify(n) do
    cond do
      n < $i -> {:below, "#{n} is below #{$i}"}
      n == $i -> {:same, inspect(n)}
      true -> try do {:above, :erlang.binary_to_integer(to_string(n))} rescue e in ArgumentError -> {:error, e.message} end
    end
  end
end
EX
    i=$((i + 1))
  done
  both mix 'cd hundred && rm -rf _build && mix compile >/dev/null'
fi

if wanted jason; then
  if [ -n "${JASON:-}" ] && command -v elixirc >/dev/null; then
    mkdir -p "$dir/jason"
    # Decimal is optional to it, and not there: the compiler warns of its functions.
    find "$JASON/lib" -name '*.ex' ! -path '*/fragment*' -print >"$dir/sources"
    find "$JASON/lib" -name '*.ex' -path '*/fragment*' -print >>"$dir/sources"
    # shellcheck disable=SC2046
    elixirc --ignore-module-conflict -o "$dir/jason" $(cat "$dir/sources") >"$dir/elixirc" 2>&1 || {
      cat "$dir/elixirc"
      exit 1
    }
    cat >"$dir/both.exs" <<'EX'
document =
  for i <- 1..3000 do
    %{"id" => i, "name" => "item #{i} \u00e9\n", "price" => i / 4, "tags" => ["a", "b\"c", nil, true], "nested" => %{"x" => [1, 2, 3]}}
  end

text = Jason.encode!(document)
^document = Jason.decode!(text)
for _ <- 1..20, do: Jason.encode!(document)
for _ <- 1..20, do: Jason.decode!(text)
EX
    both jason 'elixir -pa jason both.exs'
  elif [ -n "$names" ]; then
    echo "jason: JASON names no folder, or Elixir is not installed" >&2
    status=1
  fi
fi

if wanted dialyzer; then
  if command -v dialyzer >/dev/null; then
    both dialyzer 'dialyzer --build_plt --output_plt types.plt --apps kernel >/dev/null; test $? -ne 1'
  elif [ -n "$names" ]; then
    echo "dialyzer: it is not installed" >&2
    status=1
  fi
fi

if wanted xref; then
  cat >"$dir/references.escript" <<'ERL'
#!/usr/bin/env escript
main(_) ->
    {ok, X} = xref:start([{xref_mode, functions}]),
    ok = xref:set_default(X, [{warnings, false}, {verbose, false}]),
    [{ok, _} = xref:add_application(X, code:lib_dir(L)) || L <- [stdlib, kernel]],
    {ok, _} = xref:q(X, "closure E | lists"),
    {ok, _} = xref:analyze(X, undefined_function_calls),
    {ok, _} = xref:analyze(X, exports_not_used).
ERL
  both xref 'escript references.escript'
fi
exit $status
