# As much of XML as playlists are made of: elements with namespaces, attributes, text, CDATA,
# references, comments, instructions, and a document type whose entities are plain text. A document
# in UTF-8 or ISO-8859-1. Where it is not well formed there is an error with its line. Entities are
# not taken from elsewhere, and don't grow: what one stands for has no reference in it that is not a
# character.
defmodule Vgm.Xml do
  @xml "http://www.w3.org/XML/1998/namespace"
  @space [?\s, ?\t, ?\r, ?\n]

  # Calls `fun` with `{:open, {namespace, name}, [{{namespace, name}, value}]}`, `{:text, text}` and
  # `:close`, and its last answer: `{:ok, answer}` or `{:error, reason}`.
  def parse(bytes, acc, fun) do
    with {:ok, text} <- text(bytes) do
      try do
        {:ok, document(text, %{acc: acc, fun: fun, entities: %{}, all: text})}
      catch
        {:wrong, rest, reason} -> {:error, "damaged: line #{line(text, rest)}: #{reason}"}
      end
    end
  end

  defp line(text, rest) do
    before = binary_part(text, 0, max(0, byte_size(text) - byte_size(rest)))
    length(:binary.matches(before, "\n")) + 1
  end

  defp text(<<0xEF, 0xBB, 0xBF, rest::binary>>), do: text(rest)

  defp text(bytes) do
    encoding =
      case Regex.run(~r/\A<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']/, binary_part(bytes, 0, min(200, byte_size(bytes)))) do
        [_, name] -> String.upcase(name)
        nil -> "UTF-8"
      end

    cond do
      encoding in ["ISO-8859-1", "LATIN1"] -> {:ok, :unicode.characters_to_binary(bytes, :latin1)}
      encoding not in ["UTF-8", "UTF8", "US-ASCII", "ASCII"] -> {:error, "damaged: its encoding #{encoding} isn't known"}
      String.valid?(bytes) -> {:ok, bytes}
      true -> {:error, "damaged: not UTF-8"}
    end
  end

  defp wrong(rest, reason), do: throw({:wrong, rest, reason})

  defp document(text, s) do
    {text, s} = prolog(text, s)

    case text do
      <<?<, c, _::binary>> when c not in [?/, ?!, ??] -> :ok
      <<>> -> wrong(text, "no element")
      _ -> wrong(text, "text outside of the document")
    end

    {rest, s} = content(text, s, [], true)
    {rest, s} = prolog(rest, s)
    if rest != <<>>, do: wrong(rest, "more than one document")
    s.acc
  end

  # What may be before and behind the document.
  defp prolog(<<c, rest::binary>>, s) when c in @space, do: prolog(rest, s)
  defp prolog(<<"<?", rest::binary>>, s), do: prolog(past(rest, "?>"), s)
  defp prolog(<<"<!--", rest::binary>>, s), do: prolog(past(rest, "-->"), s)
  defp prolog(<<"<!DOCTYPE", rest::binary>>, s), do: prolog_type(rest, s)
  defp prolog(rest, s), do: {rest, s}

  defp prolog_type(<<?>, rest::binary>>, s), do: prolog(rest, s)
  defp prolog_type(<<?[, rest::binary>>, s), do: subset(rest, s)
  defp prolog_type(<<quote, rest::binary>>, s) when quote in [?", ?'], do: prolog_type(past(rest, <<quote>>), s)
  defp prolog_type(<<_, rest::binary>>, s), do: prolog_type(rest, s)
  defp prolog_type(<<>>, _), do: wrong(<<>>, "it ends too early")

  # Declarations; of these only entities that are plain text count.
  defp subset(<<?], rest::binary>>, s), do: prolog_type(rest, s)
  defp subset(<<"<!--", rest::binary>>, s), do: subset(past(rest, "-->"), s)
  defp subset(<<"<?", rest::binary>>, s), do: subset(past(rest, "?>"), s)

  defp subset(<<"<!ENTITY", rest::binary>> = here, s) do
    case Regex.run(~r/\A\s+([^\s%"'<>&;]+)\s+(?:"([^"]*)"|'([^']*)')\s*>/, rest) do
      [all, name | values] ->
        value = List.last(values)
        if value =~ ~r/[<%]|&(?!#)/, do: wrong(here, "entity #{name} isn't plain text")
        {value, _} = {references(value, here, s), s}
        subset(binary_part(rest, byte_size(all), byte_size(rest) - byte_size(all)), %{s | entities: Map.put_new(s.entities, name, value)})

      nil ->
        declaration(rest, s)
    end
  end

  defp subset(<<"<!", rest::binary>>, s), do: declaration(rest, s)
  defp subset(<<_, rest::binary>>, s), do: subset(rest, s)
  defp subset(<<>>, _), do: wrong(<<>>, "it ends too early")

  defp declaration(<<?>, rest::binary>>, s), do: subset(rest, s)
  defp declaration(<<quote, rest::binary>>, s) when quote in [?", ?'], do: declaration(past(rest, <<quote>>), s)
  defp declaration(<<_, rest::binary>>, s), do: declaration(rest, s)
  defp declaration(<<>>, _), do: wrong(<<>>, "it ends too early")

  defp past(text, mark) do
    case :binary.split(text, mark) do
      [_, rest] -> rest
      [_] -> wrong(<<>>, "it ends too early")
    end
  end

  # Up to the end of the outermost element. `open` are names with the namespaces in them.
  defp content(rest, s, [], false), do: {rest, s}
  defp content(<<>>, _, [{name, _} | _], _), do: wrong(<<>>, "it ends within #{name}")
  defp content(<<"<!--", rest::binary>>, s, open, _), do: content(past(rest, "-->"), s, open, false)
  defp content(<<"<?", rest::binary>>, s, open, _), do: content(past(rest, "?>"), s, open, false)

  defp content(<<"<![CDATA[", rest::binary>>, s, open, _) do
    case :binary.split(rest, "]]>") do
      [text, rest] -> content(rest, call(s, {:text, text}), open, false)
      [_] -> wrong(<<>>, "it ends too early")
    end
  end

  defp content(<<"</", rest::binary>> = here, s, [{name, _} | open], _) do
    case Regex.run(~r/\A([^\s<>\/]+)\s*>/, rest) do
      [all, ^name] -> content(binary_part(rest, byte_size(all), byte_size(rest) - byte_size(all)), call(s, :close), open, false)
      _ -> wrong(here, "#{name} isn't closed")
    end
  end

  defp content(<<?<, rest::binary>> = here, s, open, _) do
    {name, rest} = name(rest, here)
    {attributes, ended, rest} = attributes(rest, here, s, [])
    scope = case open do
      [] -> %{"xml" => @xml}
      [{_, scope} | _] -> scope
    end

    scope =
      for {key, value} <- attributes, reduce: scope do
        scope ->
          case key do
            "xmlns" -> Map.put(scope, "", value)
            "xmlns:" <> prefix -> Map.put(scope, prefix, value)
            _ -> scope
          end
      end

    # An attribute without a prefix is of no namespace.
    named =
      for {key, value} <- attributes, key != "xmlns", not String.starts_with?(key, "xmlns:") do
        {if(key =~ ":", do: resolve(key, scope, here), else: {nil, key}), value}
      end

    s = call(s, {:open, resolve(name, scope, here), named})
    if ended, do: content(rest, call(s, :close), open, false), else: content(rest, s, [{name, scope} | open], false)
  end

  defp content(text, s, open, _) do
    {chars, rest} =
      case :binary.match(text, "<") do
        {at, _} -> {binary_part(text, 0, at), binary_part(text, at, byte_size(text) - at)}
        :nomatch -> {text, <<>>}
      end

    content(rest, call(s, {:text, references(chars, text, s)}), open, false)
  end

  defp call(s, event), do: %{s | acc: s.fun.(event, s.acc)}

  defp resolve(name, scope, here) do
    case String.split(name, ":", parts: 2) do
      [name] -> {Map.get(scope, ""), name}
      [prefix, name] when is_map_key(scope, prefix) -> {Map.fetch!(scope, prefix), name}
      [prefix, _] -> wrong(here, "no namespace #{prefix}")
    end
  end

  defp name(text, here) do
    case Regex.run(~r/\A[^\s<>\/=&"'!?]+/, text) do
      [name] -> {name, binary_part(text, byte_size(name), byte_size(text) - byte_size(name))}
      nil -> wrong(here, "no name after <")
    end
  end

  defp attributes(<<c, rest::binary>>, here, s, acc) when c in @space, do: attributes(rest, here, s, acc)
  defp attributes(<<"/>", rest::binary>>, _, _, acc), do: {acc, true, rest}
  defp attributes(<<?>, rest::binary>>, _, _, acc), do: {acc, false, rest}

  defp attributes(text, here, s, acc) do
    case Regex.run(~r/\A([^\s<>\/=&"']+)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/, text) do
      [all, key | values] ->
        if List.keymember?(acc, key, 0), do: wrong(here, "attribute #{key} is there twice")
        attributes(binary_part(text, byte_size(all), byte_size(text) - byte_size(all)), here, s, [{key, references(List.last(values), here, s)} | acc])

      nil ->
        wrong(here, "no attribute")
    end
  end

  defp references(text, here, s) do
    case :binary.split(text, "&") do
      [text] ->
        text

      [before, rest] ->
        case :binary.split(rest, ";") do
          [name, rest] -> before <> reference(name, here, s) <> references(rest, here, s)
          [_] -> wrong(here, "& without an end")
        end
    end
  end

  defp reference("amp", _, _), do: "&"
  defp reference("lt", _, _), do: "<"
  defp reference("gt", _, _), do: ">"
  defp reference("quot", _, _), do: "\""
  defp reference("apos", _, _), do: "'"
  defp reference("#x" <> digits, here, _), do: character(digits, 16, here)
  defp reference("#" <> digits, here, _), do: character(digits, 10, here)

  defp reference(name, here, s) do
    case s.entities do
      %{^name => value} -> value
      _ -> wrong(here, "no entity #{String.slice(name, 0, 20)}")
    end
  end

  defp character(digits, base, here) do
    case Integer.parse(digits, base) do
      {c, ""} when c in [9, 10, 13] or c in 0x20..0xD7FF or c in 0xE000..0xFFFD or c in 0x10000..0x10FFFF -> <<c::utf8>>
      _ -> wrong(here, "no character #{String.slice(digits, 0, 20)}")
    end
  end
end
