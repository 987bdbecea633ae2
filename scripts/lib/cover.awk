# Reads a coverage profile and prints how much of each package is reached, by
# the tests of all packages together. What a test starts as a process of its own
# (guard-monitor, workers that are killed) does not count, nor does what serves tests
# only.

/^mode: / || /\/(internal\/(test|e2e|demo)|benchmark|examples)/ { next }

{
  statements[$1] = $2
  if ($3 > 0) reached[$1] = 1
}

END {
  for (block in statements) {
    package = block
    sub(/\/[^\/]*$/, "", package)
    sub(/^github\.com\/belaygo\/belay\//, "", package)
    of[package] += statements[block]
    all += statements[block]
    if (block in reached) {
      have[package] += statements[block]
      sum += statements[block]
    }
  }
  for (package in of) printf "%5.1f%%  %s\n", 100 * have[package] / of[package], package | "sort -k2"
  close("sort -k2")
  printf "%5.1f%%  of %d statements\n", all ? 100 * sum / all : 0, all
}
