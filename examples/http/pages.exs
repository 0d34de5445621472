# A small HTTP/1.1 server of pages written in EEx, with stock libraries only. Its templates are
# compiled to functions that give I/O lists, not strings: texts and values go to the socket as they
# are, and nothing is joined on the way.
#
#     purlin run examples/http/pages.exs 8080          (0: any port that is free)
#
#     GET /              what there is
#     GET /table?rows=N  a table with N rows
#     GET /hello/NAME    greets; NAME is escaped
#     POST /upload       takes any body, plain or chunked, and shows its size and first bytes

defmodule IoEngine do
  @moduledoc "EEx as an I/O list. Values are escaped, unless they are `{:safe, iodata}`."
  @behaviour EEx.Engine

  def init(_), do: %{parts: [], bindings: []}
  def handle_begin(state), do: %{state | parts: [], bindings: []}
  def handle_text(state, _meta, text), do: %{state | parts: [text | state.parts]}
  def handle_end(state), do: body(state)
  def handle_body(state), do: {:safe, body(state)}

  def handle_expr(state, "=", expr) do
    var = Macro.unique_var(:part, __MODULE__)
    bind = quote(do: unquote(var) = IoEngine.to_io(unquote(expr)))
    %{state | parts: [var | state.parts], bindings: [bind | state.bindings]}
  end

  def handle_expr(state, "", expr), do: %{state | bindings: [expr | state.bindings]}

  defp body(%{parts: parts, bindings: bindings}) do
    {:__block__, [], Enum.reverse([Enum.reverse(parts) | bindings])}
  end

  def to_io({:safe, io}), do: io
  def to_io(list) when is_list(list), do: list
  def to_io(text) when is_binary(text), do: escape(text, 0, 0, text)
  def to_io(other), do: other |> to_string() |> to_io()

  # Parts of the text stay where they are: what is made is a list of references to them.
  defp escape(text, from, n, rest) do
    case rest do
      <<c, rest::binary>> when c in '<>&"' ->
        [binary_part(text, from, n), entity(c) | escape(text, from + n + 1, 0, rest)]

      <<_, rest::binary>> ->
        escape(text, from, n + 1, rest)

      <<>> when from == 0 ->
        text

      <<>> ->
        [binary_part(text, from, n)]
    end
  end

  defp entity(?<), do: "&lt;"
  defp entity(?>), do: "&gt;"
  defp entity(?&), do: "&amp;"
  defp entity(?"), do: "&quot;"
end

defmodule Pages do
  require EEx

  EEx.function_from_string(:def, :layout, ~S"""
  <!doctype html>
  <html><head><meta charset="utf-8"><title><%= title %></title></head>
  <body><h1><%= title %></h1>
  <%= body %>
  <p><small>Rendered on <%= :erlang.system_info(:system_version) |> to_string() %></small></p>
  </body></html>
  """, [:title, :body], engine: IoEngine)

  EEx.function_from_string(:def, :index, ~S"""
  <p>Try <a href="/table?rows=20">a table</a>, <a href="/hello/world">a greeting</a>, or POST to /upload.</p>
  """, [], engine: IoEngine)

  EEx.function_from_string(:def, :table, ~S"""
  <table>
  <%= for n <- 1..rows//1 do %><tr><td><%= n %></td><td><%= n * n %></td><td>the number <%= n %> and its square &amp; nothing
  else, in a row whose text is long enough to be worth sharing among all the rows of all the pages that are served</td></tr>
  <% end %></table>
  """, [:rows], engine: IoEngine)

  EEx.function_from_string(:def, :hello, ~S"""
  <p>Hello, <b><%= name %></b>!</p>
  """, [:name], engine: IoEngine)

  EEx.function_from_string(:def, :upload, ~S"""
  <p><%= size %> bytes came. They begin with <code><%= first %></code></p>
  """, [:size, :first], engine: IoEngine)

  def page(title, body) do
    {:safe, io} = layout(title, body)
    io
  end
end

defmodule Server do
  @idle 60_000
  @most 1_073_741_824

  def start(port) do
    options = [:binary, ip: {127, 0, 0, 1}, active: false, packet: :http_bin, reuseaddr: true, backlog: 1024, nodelay: true]
    {:ok, listener} = :gen_tcp.listen(port, options)
    {:ok, port} = :inet.port(listener)
    for _ <- 1..16, do: spawn_link(fn -> acceptor(listener) end)
    port
  end

  # A connection that breaks ends the process of that connection only.
  defp acceptor(listener) do
    case :gen_tcp.accept(listener) do
      {:ok, socket} ->
        pid = spawn(fn -> receive do: (:go -> connection(socket)) end)
        :ok = :gen_tcp.controlling_process(socket, pid)
        send(pid, :go)

      {:error, _} ->
        Process.sleep(50)
    end

    acceptor(listener)
  end

  defp connection(socket) do
    with {:ok, {:http_request, method, {:abs_path, path}, version}} <- :gen_tcp.recv(socket, 0, @idle),
         {:ok, headers} <- headers(socket, %{}),
         {:ok, size, first} <- body(socket, headers) do
      {status, io} = route(method, URI.parse(path), size, first)
      keep = keep?(headers, version)
      io = if method == :HEAD, do: [head(status, io, keep)], else: [head(status, io, keep) | io]

      case :gen_tcp.send(socket, io) do
        :ok when keep -> connection(socket)
        _ -> :gen_tcp.close(socket)
      end
    else
      {:error, reason} when reason in [:closed, :timeout] ->
        :gen_tcp.close(socket)

      _ ->
        :gen_tcp.send(socket, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        :gen_tcp.close(socket)
    end
  end

  defp headers(socket, so_far) do
    case :gen_tcp.recv(socket, 0, @idle) do
      {:ok, {:http_header, _, name, _, value}} -> headers(socket, Map.put(so_far, name, value))
      {:ok, :http_eoh} -> {:ok, so_far}
      {:ok, _} -> :bad
      error -> error
    end
  end

  defp keep?(headers, version) do
    case String.downcase(Map.get(headers, :Connection, "")) do
      "close" -> false
      "keep-alive" -> true
      _ -> version >= {1, 1}
    end
  end

  # How long the body is, and its first bytes.
  defp body(socket, headers) do
    result =
      case headers do
        %{:"Transfer-Encoding" => _} ->
          chunks(socket, 0, "")

        %{:"Content-Length" => n} ->
          case Integer.parse(n) do
            {n, ""} when n in 0..@most -> take(socket, n, 0, "")
            _ -> :bad
          end

        _ ->
          {:ok, 0, ""}
      end

    :inet.setopts(socket, packet: :http_bin)
    result
  end

  defp take(_socket, 0, size, first), do: {:ok, size, first}

  defp take(socket, n, size, first) do
    :inet.setopts(socket, packet: :raw)

    with {:ok, data} <- :gen_tcp.recv(socket, min(n, 65_536), @idle) do
      first = if first == "", do: :binary.copy(binary_part(data, 0, min(60, byte_size(data)))), else: first
      take(socket, n - byte_size(data), size + byte_size(data), first)
    end
  end

  defp chunks(socket, size, first) do
    :inet.setopts(socket, packet: :line)

    with {:ok, line} <- :gen_tcp.recv(socket, 0, @idle) do
      case Integer.parse(line, 16) do
        {0, _} ->
          with {:ok, _} <- :gen_tcp.recv(socket, 0, @idle), do: {:ok, size, first}

        {n, _} when n > 0 and size + n <= @most ->
          with {:ok, size, first} <- take(socket, n, size, first),
               {:ok, "\r\n"} <- :gen_tcp.recv(socket, 2, @idle),
               do: chunks(socket, size, first)

        _ ->
          :bad
      end
    end
  end

  defp route(method, %{path: "/upload"}, size, first) when method == :POST do
    # What isn't text is shown as Elixir would write it.
    first = if String.printable?(first), do: first, else: inspect(first)
    {"200 OK", Pages.page("Upload", Pages.upload(size, first))}
  end

  defp route(method, uri, _size, _first) when method in [:GET, :HEAD] do
    case uri do
      %{path: "/"} ->
        {"200 OK", Pages.page("It serves", Pages.index())}

      %{path: "/table", query: "rows=" <> rows} ->
        case Integer.parse(rows) do
          {rows, ""} when rows in 0..100_000 -> {"200 OK", Pages.page("Squares", Pages.table(rows))}
          _ -> {"404 Not Found", Pages.page("No such table", "")}
        end

      %{path: "/hello/" <> name} ->
        {"200 OK", Pages.page("Hello", Pages.hello(URI.decode(name)))}

      _ ->
        {"404 Not Found", Pages.page("Nothing here", "")}
    end
  end

  defp route(_method, _uri, _size, _first), do: {"405 Method Not Allowed", Pages.page("GET or HEAD", "")}

  defp head(status, io, keep) do
    [
      "HTTP/1.1 ", status, "\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: ",
      io |> IO.iodata_length() |> Integer.to_string(),
      if(keep, do: "\r\n\r\n", else: "\r\nConnection: close\r\n\r\n")
    ]
  end
end

port = System.argv() |> List.first("8080") |> String.to_integer() |> Server.start()
IO.puts("http://127.0.0.1:#{port}/")
Process.sleep(:infinity)
