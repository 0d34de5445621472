# XSPF playlists: what is in playlist, trackList, track, location, all of the namespace of XSPF. Of
# a track's locations the first that is a file counts. References are relative to `xml:base`, or to
# the playlist's own place.
defmodule Vgm.Playlist do
  @xspf "http://xspf.org/ns/0/"
  @xml "http://www.w3.org/XML/1998/namespace"
  @track [{@xspf, "track"}, {@xspf, "trackList"}, {@xspf, "playlist"}]
  @path [{@xspf, "location"} | @track]

  # `{:ok, [{:file, path} | {:skipped, what}]}` in order.
  def read(file) do
    with {:ok, bytes} <- File.read(file) |> error(),
         {:ok, s} <- Vgm.Xml.parse(bytes, start(file), &event/2) do
      if s.playlist, do: {:ok, Enum.reverse(s.tracks)}, else: {:error, "no XSPF playlist"}
    end
  end

  defp start(file), do: %{stack: [], bases: [file |> Path.expand() |> Path.dirname()], track: [], text: "", tracks: [], playlist: false}

  defp error({:error, reason}), do: {:error, List.to_string(:file.format_error(reason))}
  defp error(ok), do: ok

  defp event({:open, name, attributes}, s) do
    base =
      case List.keyfind(attributes, {@xml, "base"}, 0) do
        {_, reference} -> based(hd(s.bases), reference)
        nil -> hd(s.bases)
      end

    s = %{s | stack: [name | s.stack], bases: [base | s.bases]}

    case s.stack do
      [{@xspf, "playlist"}] -> %{s | playlist: true}
      @track -> %{s | track: []}
      @path -> %{s | text: ""}
      _ -> s
    end
  end

  defp event({:text, text}, %{stack: @path} = s), do: %{s | text: s.text <> text}
  defp event({:text, _}, s), do: s

  defp event(:close, s) do
    s =
      case s.stack do
        @path -> %{s | track: [{hd(s.bases), String.trim(s.text)} | s.track]}
        @track -> %{s | tracks: [chosen(Enum.reverse(s.track)) | s.tracks]}
        _ -> s
      end

    %{s | stack: tl(s.stack), bases: tl(s.bases)}
  end

  defp chosen([]), do: {:skipped, "a track without a location"}

  defp chosen(locations) do
    Enum.find_value(locations, {:skipped, "a track whose location is no file: #{elem(hd(locations), 1)}"}, fn {base, location} ->
      case path(base, location) do
        nil -> nil
        path -> {:file, path}
      end
    end)
  end

  # The directory that references are relative to: all up to the last slash.
  defp based(base, reference) do
    case path(base, reference) do
      nil -> nil
      path -> if String.ends_with?(reference, "/"), do: path, else: Path.dirname(path)
    end
  end

  # The file that a reference means, without query and fragment.
  defp path(base, reference) do
    case Regex.run(~r/^([A-Za-z][A-Za-z0-9+.-]*):(.*)$/s, reference) do
      [_, scheme, rest] ->
        if String.downcase(scheme) == "file" do
          case Regex.run(~r{^(?://(?:localhost)?)?(/.*)$}s, rest) do
            [_, path] -> decoded(path)
            nil -> nil
          end
        end

      nil ->
        decoded = decoded(reference)
        if base != nil and decoded != nil and decoded != "" and not String.starts_with?(reference, "//"), do: Path.expand(decoded, base)
    end
  end

  defp decoded(text) do
    text = text |> String.split(["?", "#"], parts: 2) |> hd() |> URI.decode()
    if String.contains?(text, <<0>>), do: nil, else: text
  rescue
    ArgumentError -> nil
  end
end
