#!/usr/bin/env bash
# Runs the tests of the workspace, and repeats which of them say that they could not test what they are for.
#
#   tools/unit.sh [ARGUMENT OF cargo test]...
#
# A test that needs what is not there prints `skipped: why`, and one that learnt nothing `note: why`. libtest shows what
# passing tests print only all at once: the rest is left to the log.
set -euo pipefail
cd "$(dirname "$0")/.."

"${CARGO:-cargo}" test --workspace --all-features "$@" -- --show-output 2>&1 | awk '
    /^successes:$/ { quiet = 1 }
    /^failures:$/ || /^test result: / { quiet = 0 }
    /^skipped: / || /^note: / { said[$0]++; next }
    !quiet { print; fflush() }
    END { for (line in said) print line (said[line] > 1 ? " (" said[line] " tests)" : "") }
'
