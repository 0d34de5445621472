# The project file that `mix` is told of (MIX_EXS) in the place of a project's own, which it then
# loads: dependencies come from folders, not from a registry. APPLICATIONS_DEPS is the folder with a
# folder for each of them. What is not there is an empty application: tools of those who write a
# project (documentation, coverage, linters) are named in many and used by no test.
# APPLICATIONS_LEFT_OUT is a file that their names are added to.
defmodule Applications.SCM do
  @behaviour Mix.SCM
  # Named by many projects for the sake of those who write them. They are in the list for their own
  # suites.
  @tools ~w(benchee credo ex_doc sobelow)a

  def fetchable?, do: false
  def format(opts), do: opts[:path]
  def format_lock(_opts), do: nil

  # A path within the project itself stays one: parts of an umbrella.
  def accepts_options(app, opts) do
    folder = within(Path.join(System.fetch_env!("APPLICATIONS_DEPS"), Atom.to_string(app)), Atom.to_string(app))
    own = opts[:path] && String.starts_with?(Path.expand(opts[:path]), File.cwd!() <> "/")

    cond do
      opts[:in_umbrella] || own ->
        nil

      File.dir?(folder) and app not in @tools ->
        Keyword.merge(Keyword.drop(opts, [:git, :github, :ref, :branch, :tag, :path, :submodules, :sparse, :subdir]),
          path: folder, dest: folder)

      true ->
        nowhere = Path.join(System.fetch_env!("APPLICATIONS_DEPS"), ".nothing")
        File.mkdir_p!(nowhere)
        # The project's own application may name it among those that it starts.
        beams = Path.join(opts[:build], "ebin")
        File.mkdir_p!(beams)
        File.write!(Path.join(beams, "#{app}.app"), "{application, #{app}, [{vsn, \"0\"}, {modules, []}, {registered, []}, {applications, [kernel, stdlib]}]}.\n")
        if file = System.get_env("APPLICATIONS_LEFT_OUT"), do: File.write!(file, "#{app}\n", [:append])
        [path: nowhere, dest: nowhere, app: false, compile: false] ++ Keyword.take(opts, [:only, :runtime, :optional, :override, :build, :targets])
    end
  end

  # A repository of several projects has that of its own name in a folder.
  defp within(folder, app) do
    inner = Path.join(folder, app)
    if File.exists?(Path.join(inner, "mix.exs")), do: inner, else: folder
  end

  def checked_out?(opts), do: File.dir?(opts[:dest])
  def lock_status(_opts), do: :ok
  def equal?(opts1, opts2), do: opts1[:dest] == opts2[:dest]
  def managers(_opts), do: []
  def checkout(opts), do: opts[:lock]
  def update(opts), do: opts[:lock]
end

Mix.SCM.prepend(Applications.SCM)
Code.compile_file("mix.exs")
