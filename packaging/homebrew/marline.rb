class Marline < Formula
  desc "Web server, client and laboratory for HTTP/3 on wireless and mobile links"
  homepage "@repository@"
  version "@version@"
  license any_of: ["MIT", "Apache-2.0"]
  depends_on :linux

  on_intel do
    url "@downloads@/marline-@version@-x86_64-linux.tar.gz"
    sha256 "@sha256 marline-@version@-x86_64-linux.tar.gz@"
  end

  on_arm do
    url "@downloads@/marline-@version@-aarch64-linux.tar.gz"
    sha256 "@sha256 marline-@version@-aarch64-linux.tar.gz@"
  end

  def install
    bin.install "bin/marline"
    man1.install Dir["share/man/man1/*"]
    bash_completion.install "share/bash-completion/completions/marline"
    zsh_completion.install "share/zsh/site-functions/_marline"
    fish_completion.install "share/fish/vendor_completions.d/marline.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/marline --version")
  end
end
