defmodule Vgm.MixProject do
  use Mix.Project

  def project, do: [app: :vgm, version: "1.0.0", elixir: "~> 1.14", deps: []]
  def application, do: [extra_applications: [:crypto]]
end
